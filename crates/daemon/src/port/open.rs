//! How a port begins: anew, or where a predecessor has left it.

use super::adopt::{Adopter, Kick};
use super::answers::{Answers, Heard};
use super::bus::LiveBus;
use super::carried::Carried;
use super::hal::now;
use super::inheritance::{Inherited, at_rest, by_software, configurations, is_of_family};
use super::journal::Journal;
use super::slot::Slot;
use super::uplink::{Maker, Uplink};
use super::waiting::Naps;
use super::{Common, Inbox, LISTENERS, Phase, Port, PortError, RECEIVE_BUFFER, UPLINK, WAKER};
use crate::config::PortConfig;
use crate::config::file::LinkLocal;
use crate::confine::Threads;
use crate::vault::{PortVault, Vault};
use host::cpus::Cpus;
use host::poll::{Interest, Poller};
use host::socket::Stream;
use pcie::Function;
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};

/// Under which names the vault has what is the port's own.
pub(super) const JOURNAL: &str = "journal";
/// So many successors may begin with what was noted of a port at rest, and so many with the notes at all: if they die of
/// it, the next does without.
const TRUST_REST: u64 = 2;
const TRUST_NOTES: u64 = 4;

/// How much of what a predecessor has noted is used.
enum Trust {
    /// There is no predecessor.
    Nothing,
    Everything,
    Notes,
    /// Only who the clients are, to let them go.
    Clients,
}

impl Port {
    /// Brings up card, drivers, sockets and uplink, or goes on with those that a predecessor has left in the vault. The
    /// port's threads give up the rights that `threads` names.
    ///
    /// # Errors
    /// [`PortError`]; what was made is taken down again.
    pub(crate) fn open(
        config: &PortConfig,
        vault: &Vault,
        inbox: &Inbox,
        threads: &Threads,
        common: &Common,
    ) -> Result<Self, PortError> {
        let anywhere = Cpus::allowed()?;
        config.cpus.check(&anywhere)?;
        let vault = PortVault::new(vault, &config.name);
        let (journal, trust) = notes(config, &vault)?;
        let journal = Arc::new(journal);
        let Common { wires, programs, .. } = common;
        let (port, watcher) = (&inbox.waker, &threads.control);
        let maker = Maker { vault: &vault, port, watcher, wires, programs };
        let mut uplink = Uplink::open(config, &maker)?;
        Uplink::forget_others(config, &vault);
        let memory = config.client_memory.unwrap_or_else(host::limits::machine_memory);
        let (errands, done) = mpsc::channel();
        let functions = (config.name.as_str(), config.vfs.len());
        let mut bus =
            LiveBus::new(functions, memory, &errands, &inbox.waker, &threads.helper, config.family)?;
        let slots = Slot::open_all(config, &journal, &vault, &bus)?;
        let (card, exact) = card(config, uplink.link(), &journal, &trust, &mut bus)?;
        let poller = poller(inbox, &mut uplink, &slots)?;
        let mut port = Self {
            name: config.name.clone(),
            mac: config.mac,
            card: card.card,
            bus,
            uplink,
            link_local: config.link_local,
            cpus: Cpus::default(),
            anywhere,
            slots,
            hung_up: Vec::new(),
            phase: Phase::Serving,
            poller,
            naps: Naps::new(config.wait),
            heard: Heard::default(),
            answers: Answers::default(),
            done,
            carried: Carried::default(),
            buffer: vec![0; RECEIVE_BUFFER].into(),
            watched: card.watched,
            poisoned: host::memory::poison_events(),
            rest: journal.rest(),
            unproven: !matches!(trust, Trust::Nothing),
            journal,
            vault: vault.clone(),
            flights: common.flights.clone(),
        };
        for (slot, state) in port.slots.iter_mut().zip(&card.functions) {
            slot.restore(state, port.bus.reach_mut(slot.function));
        }
        port.take_over(&vault, &trust, exact);
        port.begin();
        Ok(port)
    }

    /// Gives the card what it has from the port, and carries counters over.
    fn begin(&mut self) {
        self.card.set_link(self.uplink.link());
        self.card.forward_link_local(self.link_local == LinkLocal::Forward);
        self.show_links();
        self.carry_counters_over();
    }

    /// Serves the predecessor's clients from now on. The function of a client that cannot be served is reset.
    fn take_over(&mut self, vault: &PortVault, trust: &Trust, exact: bool) {
        let mut strangers = Vec::new();
        if matches!(trust, Trust::Everything | Trust::Notes) {
            let mut adopter = Adopter { vault, poller: &self.poller, bus: &mut self.bus };
            for (index, slot) in self.slots.iter_mut().enumerate() {
                let had_client = slot.keeping.journal.progress().stream != 0;
                strangers.extend(adopter.adopt(index, slot).map(|stream| (slot.function, stream)));
                if had_client && slot.connection.is_none() {
                    self.card.reset_function(slot.function);
                    slot.keeping.note_software(&mut *self.card);
                }
                slot.kick = slot.connection.as_ref().filter(|_| !exact).map(|_| Kick::new(now()));
                slot.pages = slot.keeping.pages(slot.function, &mut *self.card, exact);
            }
        }
        let needed: Vec<u64> = self.slots.iter().flat_map(|slot| slot.keeping.needed()).collect();
        let lost = vault.forget_others(&needed);
        // Clients of functions that are not there any more, or that cannot be gone on with.
        let lost = lost.into_iter().filter_map(|fd| Stream::adopt(fd).ok());
        strangers.extend(lost.map(|stream| (Function::Pf, stream)));
        strangers.into_iter().for_each(|(function, stream)| self.hang_up(function, stream));
    }
}

/// A predecessor's notes, or new ones.
fn notes(config: &PortConfig, vault: &PortVault) -> Result<(Journal, Trust), PortError> {
    let mut trust = Trust::Nothing;
    if let Some(fd) = vault.copy_named(JOURNAL) {
        let adopted =
            Journal::adopt(fd).and_then(|journal| journal.check_room(config.vfs.len()).map(|()| journal));
        match adopted {
            Ok(journal) => {
                let attempt = journal.attempt();
                let trust = match attempt {
                    _ if !is_of_family(config, &journal.software()) => Trust::Clients,
                    attempt if attempt <= TRUST_REST => Trust::Everything,
                    attempt if attempt <= TRUST_NOTES => Trust::Notes,
                    _ => Trust::Clients,
                };
                tracing::info!(port = config.name, attempt, "going on with what a predecessor has left");
                if !matches!(trust, Trust::Clients) {
                    return Ok((journal, trust));
                }
                tracing::error!(
                    port = config.name,
                    "its notes are not used: others died of them, or it has another family now"
                );
            }
            Err(error) => tracing::error!(port = config.name, %error, "clients cannot be served on"),
        }
        trust = Trust::Clients;
    }
    let journal = Journal::new(config.family.limits().vfs)?;
    vault.keep_named(JOURNAL, journal.as_fd());
    Ok((journal, trust))
}

/// The card: as it was at rest, which is exact; or set up by the software that was in force; or new.
fn card(
    config: &PortConfig,
    link: bool,
    journal: &Journal,
    trust: &Trust,
    bus: &mut LiveBus,
) -> Result<(Inherited, bool), PortError> {
    let rest = journal.rest().read().filter(|_| matches!(trust, Trust::Everything));
    if let Some(bytes) = rest {
        match at_rest(config, &bytes, bus) {
            Ok(card) => return Ok((card, true)),
            Err(error) => tracing::error!(port = config.name, %error, "the card starts anew"),
        }
    }
    let software = journal.software();
    if matches!(trust, Trust::Everything | Trust::Notes) && !software.is_empty() {
        match by_software(config, link, &software, configurations(config, journal), bus) {
            Ok(card) => return Ok((card, false)),
            Err(error) => tracing::error!(port = config.name, %error, "the policy starts anew"),
        }
    }
    Ok((Inherited::anew(config, link, bus)?, false))
}

/// What the port waits on: its inbox, its uplink, and clients for each function.
fn poller(inbox: &Inbox, uplink: &mut Uplink, slots: &[Slot]) -> Result<Poller, PortError> {
    let poller = Poller::new()?;
    poller.add(&inbox.waker, WAKER, Interest::READ)?;
    uplink.join(&poller, UPLINK)?;
    for (slot, token) in slots.iter().zip(LISTENERS..) {
        poller.add(&slot.listener, token, Interest::READ)?;
    }
    Ok(poller)
}
