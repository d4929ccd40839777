//! Opens a port: a new one, or one that continues from the previous process's state.

use super::clients::Clients;
use super::clients::errand::{Desk, Errands};
use super::clients::holdings::Holdings;
use super::clients::listening::FunctionPlace;
use super::clients::slot::Slot;
use super::command::Inbox;
use super::engine::Engine;
use super::engine::bus::LiveBus;
use super::engine::uplink::{Maker, Programs, Uplink, Wires};
use super::error::PortError;
use super::run::{Phase, Port};
use super::succession::Succession;
use super::waiting::Naps;
use crate::clock::{Clock, HostClock};
use crate::config::PortConfig;
use crate::confine::Threads;
use crate::flight::files::Files;
use crate::vault::{PortVault, Vault};
use host::cpus::Cpus;
use host::socket::Stream;
use i82576::Time;
use pcie::Function;

/// Resources that all ports of a host share.
#[derive(Debug, Clone)]
pub(crate) struct Common {
    pub(crate) wires: Wires,
    /// XDP programs that ports attach to interfaces. They are loaded before the process gives up its rights.
    pub(crate) programs: Programs,
    /// Folder for flight recordings of quarantined VFs.
    pub(crate) flights: Files,
}

impl Port {
    /// Brings up the card, drivers, sockets and uplink, or resumes those that the previous process has left in the
    /// vault. The port's threads give up the rights that `threads` names.
    ///
    /// # Errors
    /// [`PortError`]. Everything that was opened is closed again.
    pub(crate) fn open(
        config: &PortConfig,
        vault: &Vault,
        inbox: &Inbox,
        threads: &Threads,
        common: &Common,
    ) -> Result<Self, PortError> {
        let anywhere = Cpus::allowed()?;
        config.cpus.check(&anywhere)?;
        let now = HostClock.now();
        let mut succession = Succession::open(config, PortVault::new(vault, &config.name))?;
        let Common { wires, programs, flights } = common;
        let maker = Maker {
            vault: succession.vault(),
            port: &inbox.waker,
            watcher: &threads.control,
            wires,
            programs,
            now,
        };
        let uplink = Uplink::open(config, &maker)?;
        Uplink::forget_others(config, succession.vault());
        let memory = config.client_memory.unwrap_or_else(host::limits::machine_memory);
        let functions = (config.name.as_str(), config.vfs.len());
        let mut bus = LiveBus::new(functions, memory, &threads.helper, config.family)?;
        let (desk, done) = Desk::open(&config.name, &inbox.waker, &threads.helper)?;
        let slots = slots(config, &succession, &bus, &desk)?;
        let card = succession.card(config, uplink.link(), &mut bus, now)?;
        let mut engine = Engine::new(card.card, bus, uplink, config.link_local);
        let poller = Clients::poller_of(&inbox.waker)?;
        engine.join_uplink(&poller, now)?;
        let clients = Clients::new(poller, config.wait, done, card.watched, flights.clone());
        let mut port = Self {
            name: config.name.clone(),
            mac: config.mac,
            engine,
            clients,
            succession,
            desk,
            cpus: Cpus::default(),
            anywhere,
            phase: Phase::Serving,
            naps: Naps::new(config.wait),
        };
        // Opening uplinks and sockets may have taken a while. The clients' timeouts do not count that time.
        let now = HostClock.now();
        for (at, mut slot) in slots.into_iter().enumerate() {
            if let Some(state) = card.functions.get(at) {
                slot.restore(state, port.engine.reach_mut(slot.function));
            }
            port.take_over(slot, now)?;
        }
        port.begin(now);
        Ok(port)
    }

    /// Adds a function with its socket, and serves the client that the previous process served on this function.
    fn take_over(&mut self, slot: Slot, now: Time) -> Result<(), PortError> {
        let Self { engine, clients, succession, .. } = self;
        let (function, mut orphan) = (slot.function, None);
        clients.add_inherited(slot, |poller, token, slot| {
            orphan = succession.adopt(slot, engine, (poller, token), now);
        })?;
        if let Some(orphan) = orphan {
            clients.hang_up(function, orphan, engine, now);
        }
        Ok(())
    }

    /// Disconnects clients that cannot be served, starts the engine, and carries counters over.
    fn begin(&mut self, now: Time) {
        let lost: Vec<Stream> = self.succession.forget_others(self.clients.slots());
        for orphan in lost {
            self.clients.hang_up(Function::Pf, orphan, &self.engine, now);
        }
        self.engine.begin();
        self.clients.show_links(&mut self.engine, now);
        if let Some(noted) = self.succession.open_counters() {
            self.clients.resume_answers(&noted.answers);
            let (status, answers) = (self.report(now).status(), self.clients.save_answers());
            self.succession.carry_counters_over(noted, &status, self.engine.configured_uplink(), answers);
        }
    }
}

/// Opens the socket of each function that the port offers.
fn slots(
    config: &PortConfig,
    succession: &Succession,
    bus: &LiveBus,
    desk: &Desk,
) -> Result<Vec<Slot>, PortError> {
    let slot = |place: FunctionPlace<'_>| {
        let worker = bus.reach(place.function).worker();
        let successor = succession.of_client(place.function, worker.clone());
        let errands = Errands::new(place.function, worker.clone(), desk.clone());
        let listener = place.listen(succession.vault())?;
        Ok(Slot::new(&place, listener, Holdings::new(successor, errands)))
    };
    FunctionPlace::all(config).map(slot).collect()
}
