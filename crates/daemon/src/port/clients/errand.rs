//! Blocking calls for a client, which may take long, such as mapping the client's memory, checking its eventfds, and
//! closing both. A function's [`BlockingWorker`] makes the calls while the port's loop continues. The result comes back
//! as a [`CompletedBlockingCall`].
//!
//! Each function has a worker thread of its own. So one client's memory, however large, delays no other client, and
//! neither do descriptors that block when they are closed. `device` uses the results.

use super::journal::{NOT_KEPT, SavedDmaWindow};
use super::keeper::FdSaver;
use crate::vault::PortFileDescriptorStore;
use host::confine::{PreparedSandbox, SandboxError};
use host::dma::{MapDmaRegionError, MappedDmaRegion, MappedLog, MemorySamples, PendingDmaRegion, PendingLog};
use host::eventfd::{EventFd, EventFdError};
use host::memory::{self, FileIdentity, FileMapError};
use host::poll::ThreadWaker;
use host::socket::StreamSocket;
use host::worker::{BlockingWorker, DeferredCloseFd};
use pcie::Function;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use vhost_user::inflight::{InflightError, InflightLayout};
use vhost_user::message::InflightArea;

/// Number of a function's pending blocking calls at which the port stops reading from its client, and accepts no further
/// ones. Each call may hold memory or a file descriptor.
const MOST: usize = 64;

/// Completed blocking call for a client, with its outcome, from the worker thread.
#[derive(Debug)]
pub(in crate::port) struct CompletedBlockingCall {
    pub(super) function: Function,
    /// Number of the client for which the call was made ([`BlockingCallQueue::next_client`]).
    pub(super) client: u64,
    pub(super) outcome: BlockingCallOutcome,
    /// Worker thread that made the call, and the store in which the call kept file descriptors.
    worker: BlockingWorker,
    vault: PortFileDescriptorStore,
}

impl CompletedBlockingCall {
    /// Releases the kept file descriptors of a call whose client is gone, and drops its outcome, on the worker thread
    /// that made the call. The function may be gone too.
    pub(super) fn release(self) {
        let Self { outcome, worker, vault, .. } = self;
        worker.run(move || {
            outcome.numbers().into_iter().for_each(|number| vault.forget(number));
            drop(outcome);
        });
    }
}

/// Outcome of a blocking call on the function's worker thread.
#[derive(Debug)]
pub(in crate::port) enum BlockingCallOutcome {
    /// Result of mapping a DMA window and keeping its file: the window, or the reason for the failure.
    Mapped(Result<MappedDmaWindow, MapDmaRegionError>),
    /// Eventfds for interrupt vectors of one type, from vector `start` on, with the numbers under which they are kept;
    /// or the reason why a file descriptor is not an eventfd.
    Assigned { index: u32, start: u32, eventfds: Result<Vec<(EventFd, u64)>, EventFdError> },
    /// File descriptors of an incomplete message were kept, under these numbers.
    PartialKept(Vec<u64>),
    /// Result of mapping a memory region of a vhost-user client. No file descriptor of the region is kept.
    RegionMapped(Result<MappedDmaRegion, MapDmaRegionError>),
    /// A migration log of a vhost-user client was mapped. Nothing of it is kept.
    LogMapped(Result<MappedLog, MapDmaRegionError>),
    /// A client's records of unfinished descriptors were checked. Nothing of them is kept.
    InflightChecked(Result<(), InflightError>),
    /// Result of using a file descriptor as an eventfd for a ring of a vhost-user client. The descriptor is not kept.
    RingEventfd { ring: u32, purpose: RingEventfdPurpose, eventfd: Result<EventFd, EventFdError> },
    /// All earlier blocking calls of the function have ended.
    CaughtUp,
    /// Samples of the client's memory were read: true if they hold only zeros. No client waits for this.
    MemorySampled(bool),
    /// The jobs that the worker thread had are done. The function accepts clients again.
    QueueEmptied,
}

/// Purpose of an eventfd for a ring of a vhost-user client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) enum RingEventfdPurpose {
    /// The guest signals the eventfd when it has made buffers available.
    Kick,
    /// The card signals the eventfd when it has used buffers.
    Call,
}

/// DMA window of a client that the worker thread has mapped.
#[derive(Debug)]
pub(in crate::port) struct MappedDmaWindow {
    pub(super) region: MappedDmaRegion,
    /// Saved form of the DMA window for the successor process, with the number of the window's file.
    pub(super) window: SavedDmaWindow,
    pub(super) identity: FileIdentity,
}

impl BlockingCallOutcome {
    /// Returns the numbers under which this blocking call has kept file descriptors for the successor process.
    fn numbers(&self) -> Vec<u64> {
        match self {
            Self::Mapped(Ok(mapped)) => vec![mapped.window.file],
            Self::Assigned { eventfds: Ok(eventfds), .. } => {
                eventfds.iter().map(|(_, number)| *number).collect()
            }
            Self::PartialKept(numbers) => {
                numbers.iter().copied().filter(|number| *number != NOT_KEPT).collect()
            }
            Self::Mapped(Err(_))
            | Self::Assigned { .. }
            | Self::RegionMapped(_)
            | Self::LogMapped(_)
            | Self::InflightChecked(_)
            | Self::RingEventfd { .. }
            | Self::CaughtUp
            | Self::MemorySampled(_)
            | Self::QueueEmptied => Vec::new(),
        }
    }
}

/// Channel to which the worker threads of all functions of a port report.
#[derive(Debug, Clone)]
pub(in crate::port) struct BlockingCallCompletionSender {
    /// Worker thread that keeps file descriptors of new clients. The thread closes no descriptor, because a close could
    /// block, and so no client can delay the thread.
    clerk: BlockingWorker,
    done: mpsc::Sender<CompletedBlockingCall>,
    /// Waker by which worker threads notify the port's loop of results.
    waker: ThreadWaker,
    /// Store in which the blocking calls keep file descriptors for the successor process.
    vault: PortFileDescriptorStore,
}

impl BlockingCallCompletionSender {
    /// Starts the thread that keeps new clients' file descriptors in the port's file descriptor store. The thread gives
    /// up the rights that `confined` names. The receiver gets the outcomes of blocking calls.
    pub(in crate::port) fn open(
        vault: &PortFileDescriptorStore,
        waker: &ThreadWaker,
        confined: &PreparedSandbox,
    ) -> Result<(Self, mpsc::Receiver<CompletedBlockingCall>), SandboxError> {
        let clerk = BlockingWorker::start_confined(&format!("keep {}", vault.port()), confined)?;
        let (done, receiver) = mpsc::channel();
        Ok((Self { clerk, done, waker: waker.clone(), vault: vault.clone() }, receiver))
    }
}

/// Blocking calls for one function's clients, on the function's worker thread.
#[derive(Debug)]
pub(in crate::port) struct BlockingCallQueue {
    function: Function,
    worker: BlockingWorker,
    desk: BlockingCallCompletionSender,
    /// Number of the connected client. Numbers are never used twice.
    client: u64,
}

impl BlockingCallQueue {
    /// Creates the function's queue of blocking calls, with its worker thread.
    pub(in crate::port) fn new(
        function: Function,
        worker: BlockingWorker,
        desk: BlockingCallCompletionSender,
    ) -> Self {
        Self { function, worker, desk, client: next_client() }
    }

    /// Begins to count blocking calls for another client. Outcomes of earlier calls belong to former clients.
    pub(super) fn next_client(&mut self) {
        self.client = next_client();
    }

    /// Returns true if the blocking call was made for a former client.
    pub(super) fn is_of_former_client(&self, done: &CompletedBlockingCall) -> bool {
        done.client != self.client
    }

    /// Maps a DMA window on the worker thread, and keeps a file descriptor of the window's file for the successor
    /// process.
    pub(super) fn map(
        &self,
        region: PendingDmaRegion,
        file: DeferredCloseFd,
        window: SavedDmaWindow,
        keeper: FdSaver,
    ) {
        self.run(move || BlockingCallOutcome::Mapped(map(region, file.into_inner(), window, &keeper)));
    }

    /// Checks on the worker thread that a client's file descriptors are eventfds, and keeps them for the successor
    /// process. If one of the file descriptors is invalid, none is used.
    pub(super) fn assign(&self, index: u32, start: u32, fds: Vec<DeferredCloseFd>, keeper: FdSaver) {
        self.run(move || {
            let eventfds = fds.into_iter().map(|fd| EventFd::adopt(fd.into_inner()));
            let eventfds = eventfds.collect::<Result<Vec<_>, _>>().map(|eventfds| keeper.keep_all(eventfds));
            BlockingCallOutcome::Assigned { index, start, eventfds }
        });
    }

    /// Maps a memory region of a vhost-user client on the worker thread.
    pub(super) fn map_region(&self, region: PendingDmaRegion, file: DeferredCloseFd) {
        self.run(move || BlockingCallOutcome::RegionMapped(region.map(file.into_inner())));
    }

    /// Maps a migration log on the worker thread.
    pub(super) fn map_log(&self, log: PendingLog, file: DeferredCloseFd) {
        self.run(move || BlockingCallOutcome::LogMapped(log.map(file.into_inner())));
    }

    /// Checks on the worker thread that a part of a file has no record of an unfinished descriptor, and closes the file.
    pub(super) fn check_inflight(&self, layout: InflightLayout, area: InflightArea, file: DeferredCloseFd) {
        self.run(move || {
            let checked = layout.check(area.size, |at, into| {
                let offset = area.offset.saturating_add(at);
                memory::read_memory_file(file.as_fd(), offset, into).is_ok()
            });
            BlockingCallOutcome::InflightChecked(checked)
        });
    }

    /// Checks on the worker thread that a file descriptor for a vhost-user ring is an eventfd, and wraps the
    /// descriptor.
    pub(super) fn take_eventfd(&self, ring: u32, purpose: RingEventfdPurpose, fd: DeferredCloseFd) {
        self.run(move || {
            let eventfd = EventFd::adopt(fd.into_inner());
            BlockingCallOutcome::RingEventfd { ring, purpose, eventfd }
        });
    }

    /// Keeps the file descriptors of an incomplete message for the successor process, on the worker thread. The client
    /// waits until that is done.
    pub(super) fn keep_partial(&self, fds: Vec<DeferredCloseFd>, keeper: FdSaver) {
        self.run(move || {
            let fds: Vec<OwnedFd> = fds.into_iter().map(DeferredCloseFd::into_inner).collect();
            BlockingCallOutcome::PartialKept(keeper.keep_useful(&fds))
        });
    }

    /// Keeps a new client's file descriptors for the successor process, on the port's keeping thread. The client waits
    /// until that is done.
    pub(super) fn keep_client(&self, fds: Vec<(u64, OwnedFd)>, keeper: FdSaver) {
        self.run_on(&self.desk.clerk, move || {
            for (number, fd) in fds {
                keeper.keep(number, fd.as_fd());
            }
            BlockingCallOutcome::CaughtUp
        });
    }

    /// Reads samples of the client's memory on the worker thread.
    pub(super) fn sample_memory(&self, samples: MemorySamples) {
        self.run(move || BlockingCallOutcome::MemorySampled(samples.are_blank()));
    }

    /// Reports when the jobs that the worker thread has now are done.
    pub(super) fn report_emptied_queue(&self) {
        self.run(|| BlockingCallOutcome::QueueEmptied);
    }

    /// Makes a blocking call that does nothing: its outcome reports that all earlier blocking calls have ended.
    pub(super) fn catch_up(&self) {
        self.run(|| BlockingCallOutcome::CaughtUp);
    }

    /// Drops a value on the worker thread, because the value may hold a client's file descriptors.
    pub(super) fn discard(&self, what: impl Send + 'static) {
        self.worker.discard(what);
    }

    /// Closes, on the worker thread, the connection of a client that the function cannot accept. The socket may hold
    /// unread file descriptors.
    pub(super) fn turn_away(&self, stream: StreamSocket) {
        stream.hang_up();
        self.discard(stream);
    }

    /// Wraps a client's file descriptor, so that the worker thread closes the descriptor.
    pub(in crate::port) fn keep(&self, fd: OwnedFd) -> DeferredCloseFd {
        self.worker.keep(fd)
    }

    /// Returns true if so much work is pending on the worker thread that the client has to wait.
    pub(super) fn are_many(&self) -> bool {
        self.backlog() >= MOST
    }

    /// Returns the number of jobs that the worker thread has not finished.
    pub(in crate::port) fn backlog(&self) -> usize {
        self.worker.backlog()
    }

    fn run(&self, errand: impl FnOnce() -> BlockingCallOutcome + Send + 'static) {
        self.run_on(&self.worker, errand);
    }

    fn run_on(&self, worker: &BlockingWorker, errand: impl FnOnce() -> BlockingCallOutcome + Send + 'static) {
        let (function, client) = (self.function, self.client);
        let BlockingCallCompletionSender { done, waker, vault, .. } = self.desk.clone();
        let own = worker.clone();
        worker.run(move || {
            let outcome = errand();
            // If the port has ended meanwhile, the outcome is dropped here, and with it its descriptors.
            let _ = done.send(CompletedBlockingCall { function, client, outcome, worker: own, vault });
            waker.wake();
        });
    }
}

/// Returns a number that no client of this process has had. A VF may be withdrawn and offered again while blocking
/// calls for its former clients are pending.
fn next_client() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

fn map(
    region: PendingDmaRegion,
    file: OwnedFd,
    mut window: SavedDmaWindow,
    keeper: &FdSaver,
) -> Result<MappedDmaWindow, MapDmaRegionError> {
    if !memory::is_memory(file.as_fd()) {
        // Another process may share such a file and make its close block, which would block the keeper.
        return Err(FileMapError::WrongKind.into());
    }
    let identity = FileIdentity::of_memory(file.as_fd()).map_err(FileMapError::System)?;
    let kept = keeper.keep_file(&identity, file.as_fd());
    window.file = kept.number;
    match region.map(file) {
        Ok(region) => Ok(MappedDmaWindow { region, window, identity }),
        Err(error) => {
            keeper.take_back(kept);
            Err(error)
        }
    }
}
