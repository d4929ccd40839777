//! A function's place in the live host: its socket, its client if there is one, and what is counted over all
//! clients. Left out: the function itself, which the card and the SR-IOV manager hold.

use super::PortError;
use super::adopt::Kick;
use super::bus::{LiveBus, Reach};
use super::connection::Connection;
use super::ending::WindDown;
use super::family::Family;
use super::hal::now;
use super::journal::Journal;
use super::keeping::Keeping;
use super::pages::SharedPages;
use super::tell::Told;
use crate::config::{PortConfig, VfConfig};
use crate::control::status::Interventions;
use crate::flight::Flight;
use crate::limit::Limit;
use crate::state::port::ClientState;
use crate::vault::PortVault;
use host::folder;
use host::socket::{Access, BindError, Listener, Stream};
use i82576::{MacAddress, Time};
use pcie::Function;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfio_user::server::Counters;

/// Messages a minute that a client can make the host log about one function.
const LOG_BURST: u32 = 20;

/// A function's place.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) function: Function,
    pub(super) name: String,
    /// The address it starts with.
    pub(super) mac: MacAddress,
    pub(super) socket: PathBuf,
    pub(super) listener: Listener,
    pub(super) connection: Option<Connection>,
    /// What the client may map.
    pub(super) pages: Option<SharedPages>,
    /// What is kept of the client for a successor.
    pub(super) keeping: Keeping,
    /// Who has connected after the client hung up, and before everything it had sent was handled.
    pub(super) next: Option<Stream>,
    /// The client is to be let go, and is served until it falls silent.
    pub(super) ending: Option<WindDown>,
    /// The guest's driver has to start anew, and is called until it does.
    pub(super) kick: Option<Kick>,
    /// The connection has more to do than its last visit did.
    pub(super) more: bool,
    /// What it has to do came no earlier than this.
    pub(super) heard: Time,
    /// The guest masters the bus or has done so, and its memory was looked at then.
    pub(super) judged: bool,
    /// It was found to write to private copies of what was handed over.
    pub(super) private_memory: bool,
    /// The client has been told that it shares no memory.
    pub(super) warned: bool,
    pub(super) log: Limit,
    pub(super) told: Told,
    pub(super) flight: Flight,
    /// Counts of clients that are gone.
    past: Interventions,
}

impl Slot {
    /// A place for each function that the port offers: the PF, or the VFs.
    pub(super) fn open_all(
        config: &PortConfig,
        journal: &Arc<Journal>,
        vault: &PortVault,
        bus: &LiveBus,
    ) -> Result<Vec<Self>, PortError> {
        let pf = config.pf_socket.iter().map(|socket| Place {
            function: Function::Pf,
            name: &config.name,
            mac: config.mac,
            socket,
            access: config.access,
        });
        let places = pf.chain(config.vfs.iter().map(Place::of_vf));
        let slot = |place: Place<'_>| {
            let keeping = Keeping::new(journal, place.function, vault, bus);
            Ok(Self::new(&place, place.listen(vault)?, keeping))
        };
        places.map(slot).collect()
    }

    /// A place for a function, at its socket.
    pub(super) fn new(place: &Place<'_>, listener: Listener, keeping: Keeping) -> Self {
        let Place { function, name, mac, socket, .. } = *place;
        Self {
            function,
            name: name.to_owned(),
            mac,
            socket: socket.to_owned(),
            listener,
            connection: None,
            pages: None,
            keeping,
            next: None,
            ending: None,
            kick: None,
            more: false,
            heard: Time::ZERO,
            judged: false,
            private_memory: false,
            warned: false,
            log: Limit::per_minute(LOG_BURST),
            told: Told::default(),
            flight: Flight::default(),
            past: Interventions::default(),
        }
    }

    /// Shows a VF the link that the PF driver has decided on, and none while its client is let go.
    pub(super) fn show_link(&mut self, card: &mut dyn Family, bus: &mut LiveBus) {
        if let Some(vf) = self.function.vf()
            && let Err(error) = card.show_link(vf, self.ending.is_some(), bus)
        {
            self.log.warn(now(), &self.name, "its policy is not in force", &error);
        }
    }

    /// Under which name the vault has the socket.
    pub(super) fn kept_listener(&self) -> String {
        kept_listener(&self.name)
    }

    /// What passed between card and VMM, over all clients so far.
    pub(super) fn interventions(&self, interrupts: u64) -> Interventions {
        let now = self.connection.as_ref().map(Connection::counters).unwrap_or_default();
        Interventions { interrupts, ..add(self.past, now) }
    }

    /// What a successor needs to know beside the notes.
    pub(super) fn state(&self, reach: &Reach) -> ClientState {
        ClientState {
            interventions: self.interventions(reach.interrupts),
            pin: reach.pin(),
            judged: (self.judged, self.private_memory),
            warned: self.warned,
        }
    }

    /// Goes on as a predecessor.
    pub(super) fn restore(&mut self, state: &ClientState, reach: &mut Reach) {
        self.past = state.interventions;
        reach.interrupts = state.interventions.interrupts;
        reach.restore_pin(state.pin);
        (self.judged, self.private_memory) = state.judged;
        self.warned = state.warned;
    }

    /// The client is gone; what it made the host do stays counted.
    pub(super) fn retire(&mut self, counters: Counters) {
        self.past = add(self.past, counters);
        (self.ending, self.kick) = (None, None);
        (self.more, self.warned) = (false, false);
        (self.judged, self.private_memory) = (false, false);
    }
}

/// A function as the configuration has it.
pub(super) struct Place<'a> {
    function: Function,
    name: &'a str,
    mac: MacAddress,
    socket: &'a Path,
    access: Access,
}

fn kept_listener(name: &str) -> String {
    format!("listen.{name}")
}

impl<'a> Place<'a> {
    /// A VF's.
    pub(super) fn of_vf(vf: &'a VfConfig) -> Self {
        let function = Function::Vf(vf.index.get());
        Self { function, name: &vf.name, mac: vf.mac, socket: &vf.socket, access: vf.access }
    }

    /// The function's socket: a predecessor's, if it has left one, else a new one.
    pub(super) fn listen(&self, vault: &PortVault) -> Result<Listener, PortError> {
        self.bind(vault).map_err(|source| PortError::Socket { name: self.name.to_owned(), source })
    }

    fn bind(&self, vault: &PortVault) -> Result<Listener, BindError> {
        let kept = kept_listener(self.name);
        if let Some(fd) = vault.copy_named(&kept)
            && let Some(listener) = Listener::adopt(fd, self.socket)
        {
            return Ok(listener);
        }
        let folder = self.socket.parent().unwrap_or(Path::new("/"));
        // Everybody may pass through it; the socket says who may connect.
        folder::make(folder, folder::PASSABLE)?;
        if let Some(closed) = closed_to_others(folder, self.access) {
            let (name, closed) = (self.name, closed.display());
            tracing::warn!(function = name, "who may connect cannot get there: {closed} is closed to others");
        }
        let listener = Listener::bind(self.socket, self.access)?;
        vault.keep_named(&kept, listener.as_fd());
        Ok(listener)
    }
}

/// The folder that keeps out those who are to connect, if there is one.
fn closed_to_others(folder: &Path, access: Access) -> Option<PathBuf> {
    let nobody = u32::MAX;
    match (access.owner, access.group) {
        (Some(owner), group) => folder::barrier(folder, owner, group.unwrap_or(nobody)),
        (None, Some(group)) => folder::barrier(folder, nobody, group),
        (None, None) if access.mode & 0o006 != 0 => folder::barrier(folder, nobody, nobody),
        (None, None) => None,
    }
}

fn add(past: Interventions, now: Counters) -> Interventions {
    Interventions {
        reads: past.reads + now.reads,
        posted_writes: past.posted_writes + now.posted_writes,
        synchronous_writes: past.synchronous_writes + now.synchronous_writes,
        interrupts: past.interrupts,
    }
}
