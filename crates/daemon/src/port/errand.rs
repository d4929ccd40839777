//! What a client's requests make the host do that may take long: mapping its memory, taking its eventfds, and letting go
//! of both. A function's [`Worker`] does it, and the port's loop goes on; what is done comes back as a [`Done`].
//!
//! Each function has a worker of its own. So one client's memory, however much there is, delays no other client, and
//! neither do descriptors that never close. Left out: what an errand's outcome does to the function.

use super::Port;
use super::device::FunctionDevice;
use super::hal::now;
use host::dma::{MapRegionError, MappedRegion, PendingRegion, RemovedRegions};
use host::eventfd::{AdoptError, EventFd};
use host::memory::MapError;
use host::poll::Waker;
use host::socket::Stream;
use host::worker::{LateFd, Worker};
use pcie::Function;
use std::sync::mpsc;

/// Errands that are not done at which nothing more is read from a client: each may hold memory or a descriptor.
const MOST: usize = 64;

/// An errand of a client's that is done.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) function: Function,
    /// Which of the function's clients wanted it.
    pub(super) client: u64,
    pub(super) outcome: Outcome,
}

/// What an errand has come to.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A window of memory is mapped, or why it is not.
    Mapped(Result<MappedRegion, MapRegionError>),
    /// Descriptors for vectors of an interrupt type from `start` on are eventfds, or why one is not.
    Assigned { index: u32, start: u32, eventfds: Result<Vec<EventFd>, AdoptError> },
    /// All errands before this one are done.
    CaughtUp,
}

/// The errands of one function.
#[derive(Debug)]
pub(super) struct Errands {
    function: Function,
    worker: Worker,
    done: mpsc::Sender<Done>,
    /// Wakes the port's loop.
    waker: Waker,
    /// Number of the client that is served.
    client: u64,
}

impl Errands {
    /// A thread for the errands of a function. What is done goes to `done`.
    pub(super) fn start(
        function: Function,
        port: &str,
        done: mpsc::Sender<Done>,
        waker: Waker,
    ) -> std::io::Result<Self> {
        let name = match function {
            Function::Pf => format!("mem {port}"),
            Function::Vf(n) => format!("mem {n} {port}"),
        };
        Ok(Self { function, worker: Worker::start(&name)?, done, waker, client: 0 })
    }

    /// What was wanted so far was wanted by another client than the one from now on.
    pub(super) fn next_client(&mut self) {
        self.client += 1;
    }

    /// Whether this is of a client that is gone.
    pub(super) fn is_of_the_past(&self, done: &Done) -> bool {
        done.client != self.client
    }

    /// Has a window mapped.
    pub(super) fn map(&self, region: PendingRegion, file: LateFd) {
        self.run(move || Outcome::Mapped(region.map(file.into_inner())));
    }

    /// Has descriptors taken as eventfds. All are looked at before one is used.
    pub(super) fn assign(&self, index: u32, start: u32, fds: Vec<LateFd>) {
        self.run(move || {
            let eventfds = fds.into_iter().map(|fd| EventFd::adopt(fd.into_inner())).collect();
            Outcome::Assigned { index, start, eventfds }
        });
    }

    /// Has itself told when everything so far is done.
    pub(super) fn catch_up(&self) {
        self.run(|| Outcome::CaughtUp);
    }

    /// Has windows unmapped that the card does not reach any more.
    pub(super) fn unmap(&self, regions: RemovedRegions) {
        if !regions.is_light() {
            self.discard(regions);
        }
    }

    /// Has something dropped that may hold descriptors of a client.
    pub(super) fn discard(&self, what: impl Send + 'static) {
        self.worker.discard(what);
    }

    /// Ends a connection, in which there may be descriptors that nobody has received.
    pub(super) fn hang_up(&self, stream: Stream) {
        stream.hang_up();
        self.discard(stream);
    }

    /// A descriptor of a client's, which the worker closes.
    pub(super) fn keep(&self, fd: std::os::fd::OwnedFd) -> LateFd {
        self.worker.keep(fd)
    }

    /// Whether so much is to be done that the client has to wait for it.
    pub(super) fn are_many(&self) -> bool {
        self.worker.backlog() >= MOST
    }

    fn run(&self, errand: impl FnOnce() -> Outcome + Send + 'static) {
        let (function, client) = (self.function, self.client);
        let (done, waker) = (self.done.clone(), self.waker.clone());
        self.worker.run(move || {
            // If the port has ended meanwhile, the outcome is dropped here, as it should be.
            let _ = done.send(Done { function, client, outcome: errand() });
            waker.wake();
        });
    }
}

impl Port {
    /// Takes note of what was done elsewhere for clients, who go on then.
    pub(super) fn finish_errands(&mut self) {
        while let Ok(done) = self.done.try_recv() {
            let (function, nic, side) = (done.function, &mut self.nic, &mut self.side);
            let mut device = FunctionDevice { function, nic, side, bus: &mut self.bus };
            let slot = self.slots.iter_mut().find(|slot| slot.function == function);
            let connection = slot.and_then(|slot| Some((slot.connection.as_mut()?, &mut slot.more)));
            match connection {
                Some((connection, more)) if !device.errands().is_of_the_past(&done) => {
                    connection.complete(device.finish(done.outcome));
                    *more = true;
                }
                _ => device.errands().discard(done),
            }
        }
    }

    /// A VMM tells its user a number only: say what was refused, and what to do about it.
    pub(super) fn warn_of_refused_memory(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(error) = self.bus.reach_mut(slot.function).refused.take() else { return };
        let remedy = match &error {
            MapRegionError::TooMuchMemory { .. } => "raise client_memory in the configuration",
            MapRegionError::LimitReached | MapRegionError::Memory(MapError::TooManyMappings) => {
                "back the guest's memory with fewer files"
            }
            _ => return,
        };
        if let Some(suppressed) = slot.log.allow(now()) {
            let name = &slot.name;
            tracing::warn!(function = name, %error, remedy, suppressed, "a window of memory is refused");
        }
    }
}
