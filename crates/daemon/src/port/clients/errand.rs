//! What a client's requests make the host do that may take long: mapping its memory, taking its eventfds, and letting go
//! of both. A function's [`Worker`] does it, and the port's loop goes on; what is done comes back as a [`Done`].
//!
//! Each function has a worker of its own. So one client's memory, however much there is, delays no other client, and
//! neither do descriptors that never close. Left out: what an errand's outcome does to the function.

use super::journal::{NOT_KEPT, Window};
use super::keeper::Keeper;
use host::confine::{ConfineError, Prepared};
use host::dma::{MapRegionError, MappedRegion, PendingRegion};
use host::eventfd::{AdoptError, EventFd};
use host::memory::{self, FileIdentity, MapError};
use host::poll::Waker;
use host::socket::Stream;
use host::worker::{LateFd, Worker};
use pcie::Function;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

/// Errands that are not done at which nothing more is read from a client: each may hold memory or a descriptor.
const MOST: usize = 64;

/// An errand of a client's that is done.
#[derive(Debug)]
pub(in crate::port) struct Done {
    pub(super) function: Function,
    /// Which of the function's clients wanted it.
    pub(super) client: u64,
    pub(super) outcome: Outcome,
}

/// What an errand has come to.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A window of memory is mapped and kept, or why it is not.
    Mapped(Result<Mapped, MapRegionError>),
    /// Descriptors for vectors of an interrupt type from `start` on are eventfds, kept under these numbers, or why one is
    /// not.
    Assigned { index: u32, start: u32, eventfds: Result<Vec<(EventFd, u64)>, AdoptError> },
    /// Descriptors of a message that has not come whole are kept under these numbers.
    PartialKept(Vec<u64>),
    /// All errands before this one are done.
    CaughtUp,
}

/// A window that is mapped.
#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) region: MappedRegion,
    /// With the number of its file.
    pub(super) window: Window,
    pub(super) identity: FileIdentity,
}

impl Outcome {
    /// Returns the numbers under which descriptors were kept for this.
    pub(super) fn numbers(&self) -> Vec<u64> {
        match self {
            Self::Mapped(Ok(mapped)) => vec![mapped.window.file],
            Self::Assigned { eventfds: Ok(eventfds), .. } => {
                eventfds.iter().map(|(_, number)| *number).collect()
            }
            Self::PartialKept(numbers) => {
                numbers.iter().copied().filter(|number| *number != NOT_KEPT).collect()
            }
            Self::Mapped(Err(_)) | Self::Assigned { .. } | Self::CaughtUp => Vec::new(),
        }
    }
}

/// Where the errands of all functions of a port report.
#[derive(Debug, Clone)]
pub(in crate::port) struct Desk {
    /// Closes nothing, and so waits for no client: it has new clients kept.
    clerk: Worker,
    done: mpsc::Sender<Done>,
    /// Wakes the port's loop.
    waker: Waker,
}

impl Desk {
    /// Starts the thread that has new clients of a port kept; it gives up the rights that `confined` names. Errands that are
    /// done come out of the receiver.
    pub(in crate::port) fn open(
        port: &str,
        waker: &Waker,
        confined: &Prepared,
    ) -> Result<(Self, mpsc::Receiver<Done>), ConfineError> {
        let clerk = Worker::start_confined(&format!("keep {port}"), confined)?;
        let (done, receiver) = mpsc::channel();
        Ok((Self { clerk, done, waker: waker.clone() }, receiver))
    }
}

/// The errands of one function.
#[derive(Debug)]
pub(in crate::port) struct Errands {
    function: Function,
    worker: Worker,
    desk: Desk,
    /// Number of the client that is served: no function has had another by it.
    client: u64,
}

impl Errands {
    /// Creates the errands of a function, which its thread does.
    pub(in crate::port) fn new(function: Function, worker: Worker, desk: Desk) -> Self {
        Self { function, worker, desk, client: next_client() }
    }

    /// What was wanted so far was wanted by another client than the one from now on.
    pub(super) fn next_client(&mut self) {
        self.client = next_client();
    }

    /// Whether this is of a client that is gone.
    pub(super) fn is_of_the_past(&self, done: &Done) -> bool {
        done.client != self.client
    }

    /// Has a window mapped, and its file kept for a successor.
    pub(super) fn map(&self, region: PendingRegion, file: LateFd, window: Window, keeper: Keeper) {
        self.run(move || Outcome::Mapped(map(region, file.into_inner(), window, &keeper)));
    }

    /// Has descriptors taken as eventfds, and kept for a successor. All are looked at before one is used.
    pub(super) fn assign(&self, index: u32, start: u32, fds: Vec<LateFd>, keeper: Keeper) {
        self.run(move || {
            let eventfds = fds.into_iter().map(|fd| EventFd::adopt(fd.into_inner()));
            let eventfds = eventfds.collect::<Result<Vec<_>, _>>().map(|eventfds| keeper.keep_all(eventfds));
            Outcome::Assigned { index, start, eventfds }
        });
    }

    /// Has the descriptors of a message that has not come whole kept for a successor. The client waits until then.
    pub(super) fn keep_partial(&self, fds: Vec<LateFd>, keeper: Keeper) {
        self.run(move || {
            let fds: Vec<OwnedFd> = fds.into_iter().map(LateFd::into_inner).collect();
            Outcome::PartialKept(keeper.keep_useful(&fds))
        });
    }

    /// Has a new client's descriptors kept for a successor. The client waits until then.
    pub(super) fn keep_client(&self, fds: Vec<(u64, OwnedFd)>, keeper: Keeper) {
        self.run_on(&self.desk.clerk, move || {
            for (number, fd) in fds {
                keeper.keep(number, fd.as_fd());
            }
            Outcome::CaughtUp
        });
    }

    /// Has itself told when everything so far is done.
    pub(super) fn catch_up(&self) {
        self.run(|| Outcome::CaughtUp);
    }

    /// Has something dropped that may hold descriptors of a client.
    pub(super) fn discard(&self, what: impl Send + 'static) {
        self.worker.discard(what);
    }

    /// Turns a client away, in whose socket there may be descriptors that nobody has received.
    pub(super) fn turn_away(&self, stream: Stream) {
        stream.hang_up();
        self.discard(stream);
    }

    /// A descriptor of a client's, which the worker closes.
    pub(in crate::port) fn keep(&self, fd: OwnedFd) -> LateFd {
        self.worker.keep(fd)
    }

    /// Whether so much is to be done that the client has to wait for it.
    pub(super) fn are_many(&self) -> bool {
        self.worker.backlog() >= MOST
    }

    fn run(&self, errand: impl FnOnce() -> Outcome + Send + 'static) {
        self.run_on(&self.worker, errand);
    }

    fn run_on(&self, worker: &Worker, errand: impl FnOnce() -> Outcome + Send + 'static) {
        let (function, client) = (self.function, self.client);
        let (done, waker) = (self.desk.done.clone(), self.desk.waker.clone());
        worker.run(move || {
            // If the port has ended meanwhile, the outcome is dropped here, as it should be.
            let _ = done.send(Done { function, client, outcome: errand() });
            waker.wake();
        });
    }
}

/// A number that no client of this process has had: a VF may be withdrawn and offered again while errands of its former
/// clients are under way.
fn next_client() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

fn map(
    region: PendingRegion,
    file: OwnedFd,
    mut window: Window,
    keeper: &Keeper,
) -> Result<Mapped, MapRegionError> {
    if !memory::is_memory(file.as_fd()) {
        // Another process that holds it could hold up the keeper when that closes it.
        return Err(MapError::WrongKind.into());
    }
    let identity = FileIdentity::of_memory(file.as_fd()).map_err(MapError::System)?;
    let kept = keeper.keep_file(&identity, file.as_fd());
    window.file = kept.number;
    match region.map(file) {
        Ok(region) => Ok(Mapped { region, window, identity }),
        Err(error) => {
            keeper.take_back(kept);
            Err(error)
        }
    }
}
