//! A function's place in the live host: its socket, its client if there is one, and what is counted over all
//! clients. Left out: the function itself, which the card and the SR-IOV manager hold.

use super::PortError;
use super::connection::Connection;
use crate::config::PortConfig;
use crate::control::status::Interventions;
use crate::limit::Limit;
use host::folder;
use host::socket::{Access, Listener, Stream};
use i82576::MacAddress;
use pcie::Function;
use std::path::{Path, PathBuf};
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
    /// Who has connected after the client hung up, and before everything it had sent was handled.
    pub(super) next: Option<Stream>,
    /// The connection has more to do than its last visit did.
    pub(super) more: bool,
    /// The guest masters the bus or has done so, and its memory was looked at then.
    pub(super) judged: bool,
    /// It was found to write to private copies of what was handed over.
    pub(super) private_memory: bool,
    /// The client has been told that it shares no memory.
    pub(super) warned: bool,
    pub(super) log: Limit,
    /// Counts of clients that are gone.
    past: Interventions,
}

impl Slot {
    /// A place for each function that the port offers: the PF, or the VFs.
    pub(super) fn open_all(config: &PortConfig) -> Result<Vec<Self>, PortError> {
        let pf = config.pf_socket.iter();
        let pf = pf.map(|socket| Self::open(Function::Pf, &config.name, config.mac, (socket, config.access)));
        let vfs = config.vfs.iter();
        let vfs =
            vfs.map(|vf| Self::open(Function::Vf(vf.index.get()), &vf.name, vf.mac, (&vf.socket, vf.access)));
        pf.chain(vfs).collect()
    }

    fn open(
        function: Function,
        name: &str,
        mac: MacAddress,
        (socket, access): (&Path, Access),
    ) -> Result<Self, PortError> {
        let failure = |source| PortError::Socket { name: name.to_owned(), source };
        let folder = socket.parent().unwrap_or(Path::new("/"));
        // Everybody may pass through it; the socket says who may connect.
        folder::make(folder, folder::PASSABLE).map_err(|error| failure(error.into()))?;
        if let Some(closed) = closed_to_others(folder, access) {
            let closed = closed.display();
            tracing::warn!(function = name, "who may connect cannot get there: {closed} is closed to others");
        }
        let listener = Listener::bind(socket, access).map_err(failure)?;
        Ok(Self {
            function,
            name: name.to_owned(),
            mac,
            socket: socket.to_owned(),
            listener,
            connection: None,
            next: None,
            more: false,
            judged: false,
            private_memory: false,
            warned: false,
            log: Limit::per_minute(LOG_BURST),
            past: Interventions::default(),
        })
    }

    /// What passed between card and VMM, over all clients so far.
    pub(super) fn interventions(&self, interrupts: u64) -> Interventions {
        let now = self.connection.as_ref().map(Connection::counters).unwrap_or_default();
        Interventions { interrupts, ..add(self.past, now) }
    }

    /// The client is gone; what it made the host do stays counted.
    pub(super) fn retire(&mut self, counters: Counters) {
        self.past = add(self.past, counters);
        (self.more, self.warned) = (false, false);
        (self.judged, self.private_memory) = (false, false);
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
