//! Waits for file descriptors by epoll; wakers, signals and the clock of the host.
//!
//! [`Poller`] reports ready descriptors; [`ThreadWaker`] wakes it from another thread; [`SignalHandlers`] makes
//! termination signals readable; [`MonotonicClock`] is the only clock of the live host. There are no timers: a wait
//! takes a timeout in nanoseconds, and the caller passes its nearest deadline.

mod clock;
mod signals;
#[cfg(test)]
mod tests;
mod waker;

#[cfg(any(test, feature = "test-support"))]
use crate::kernel_choices;
use crate::limits;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

pub use clock::MonotonicClock;
pub use signals::{ProcessSignal, SignalHandlers, SignalSet};
pub use waker::ThreadWaker;

/// Maximum number of events taken from the kernel in one wait; later events are returned by the next wait.
const BATCH: usize = 64;

/// Events to wait for on a file descriptor. Hang-up and error are always reported. The end of the peer's sending is
/// reported to readers only: a writer cannot handle this event, and would be woken by it for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollInterest {
    /// True to wait until a file descriptor has data to read, or a connection to accept.
    pub readable: bool,
    /// True to wait for room to write data to a file descriptor.
    pub writable: bool,
    /// True to report only new events of a file descriptor (edge-triggered), for readers that leave data unread on
    /// purpose.
    pub news: bool,
}

impl PollInterest {
    /// Interest in data to read from a file descriptor.
    pub const READ: Self = Self { readable: true, writable: false, news: false };
    /// Interest in room to write data to a file descriptor.
    pub const WRITE: Self = Self { readable: false, writable: true, news: false };
    /// Interest in data to read from a file descriptor, or room to write.
    pub const BOTH: Self = Self { readable: true, writable: true, news: false };
    /// Interest in data that arrived at a file descriptor since the last report.
    pub const NEWS: Self = Self { news: true, ..Self::READ };

    fn flags(self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::ET, self.news);
        flags.set(epoll::EventFlags::IN | epoll::EventFlags::RDHUP, self.readable);
        flags.set(epoll::EventFlags::OUT, self.writable);
        flags
    }
}

/// File descriptor that is ready, as a wait reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyFileDescriptor {
    /// Token under which the ready file descriptor was added to the poller.
    pub token: u64,
    /// True if a read of the file descriptor returns data, a connection, or the end of the stream.
    pub readable: bool,
    /// True if a write to the file descriptor succeeds.
    pub writable: bool,
    /// True if the peer has closed, or the file descriptor failed; unread data may remain.
    pub closed: bool,
}

impl From<epoll::Event> for ReadyFileDescriptor {
    fn from(event: epoll::Event) -> Self {
        // Copied out first: the kernel's structure is packed.
        let (flags, data) = (event.flags, event.data);
        Self {
            token: data.u64(),
            readable: flags.contains(epoll::EventFlags::IN),
            writable: flags.contains(epoll::EventFlags::OUT),
            closed: flags
                .intersects(epoll::EventFlags::HUP | epoll::EventFlags::RDHUP | epoll::EventFlags::ERR),
        }
    }
}

/// Set of file descriptors to wait for, level-triggered: an event that is not handled is reported again.
pub struct Poller {
    epoll: OwnedFd,
    ready: Vec<ReadyFileDescriptor>,
}

impl Poller {
    /// Creates an empty set of file descriptors to wait for.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC);
        let epoll = epoll.map_err(|errno| limits::with_remedy("cannot create an epoll set", errno))?;
        Ok(Self { epoll, ready: Vec::with_capacity(BATCH) })
    }

    /// Returns another poller of the same set, for another thread.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn same(&self) -> io::Result<Self> {
        Ok(Self { epoll: self.epoll.try_clone()?, ready: Vec::with_capacity(BATCH) })
    }

    /// Adds a file descriptor to wait for, to be reported as `token`. Remove it before it is closed: a copy held by
    /// another process keeps a closed descriptor in the set.
    ///
    /// # Errors
    /// `AlreadyExists`, or `PermissionDenied` for a descriptor that is always ready, such as a file.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: PollInterest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), interest.flags())?)
    }

    /// Changes the events to wait for, and the token, of a file descriptor.
    ///
    /// # Errors
    /// `NotFound` if it was not added.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: PollInterest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(token), interest.flags())?)
    }

    /// Removes a file descriptor from the set to wait for. Events that were returned before still name its token.
    ///
    /// # Errors
    /// `NotFound` if it was not added.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Waits until a file descriptor is ready, a signal arrives, or `timeout` has passed; `None` waits for ever. After
    /// a signal no descriptor is returned. The timeout has nanosecond resolution (`epoll_pwait2`, Linux 5.11).
    ///
    /// # Errors
    /// `Unsupported` on an older kernel.
    pub fn wait(
        &mut self,
        timeout: Option<Duration>,
    ) -> io::Result<impl Iterator<Item = ReadyFileDescriptor> + '_> {
        self.ready.clear();
        let timeout = timeout.map(timespec);
        let mut events = [const { MaybeUninit::uninit() }; BATCH];
        match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok((events, _)) => {
                self.ready.extend(events.iter().map(|event| ReadyFileDescriptor::from(*event)));
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        #[cfg(any(test, feature = "test-support"))]
        kernel_choices::order(&mut self.ready);
        Ok(self.ready.iter().copied())
    }
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller").field("epoll", &self.epoll).finish_non_exhaustive()
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Makes this thread's waits end on time: by default the kernel may extend each by up to 50 us.
pub fn wake_in_time() {
    // If the kernel refuses, wake-ups are less precise.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Converts a timeout to the kernel's format. A timeout that is too large becomes the longest possible.
fn timespec(duration: Duration) -> Timespec {
    let tv_sec = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: duration.subsec_nanos().into() }
}
