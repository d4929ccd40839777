//! Waiting: epoll, and the things of our own to wait for.
//!
//! [`Poller`] says which descriptors are ready; [`Waker`] wakes it from another thread; [`Signals`] turns a
//! request to end into something readable; [`Clock`] is the only clock of the live host. Left out: timers; a
//! wait takes a timeout, in nanoseconds, and whoever has deadlines passes the nearest.

mod clock;
mod signals;
#[cfg(test)]
mod tests;
mod waker;

use crate::limits;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

pub use clock::Clock;
pub use signals::{Signal, SignalSet, Signals};
pub use waker::Waker;

/// Events taken from the kernel in one wait; what is left comes with the next.
const BATCH: usize = 64;

/// What to wait for on a descriptor. Its end (hang-up, error) is always waited for; that the peer will send no
/// more, only by who wants to read. (Who waits for room to write could do nothing about it, and would be woken by
/// it for ever.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Something to read, or to accept.
    pub readable: bool,
    /// Room to write.
    pub writable: bool,
    /// Report only what is new: for who leaves things unread on purpose.
    pub news: bool,
}

impl Interest {
    /// Something to read.
    pub const READ: Self = Self { readable: true, writable: false, news: false };
    /// Room to write.
    pub const WRITE: Self = Self { readable: false, writable: true, news: false };
    /// Either.
    pub const BOTH: Self = Self { readable: true, writable: true, news: false };
    /// Something to read that was not there at the last report.
    pub const NEWS: Self = Self { news: true, ..Self::READ };

    fn flags(self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::ET, self.news);
        flags.set(epoll::EventFlags::IN | epoll::EventFlags::RDHUP, self.readable);
        flags.set(epoll::EventFlags::OUT, self.writable);
        flags
    }
}

/// A descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The token it was added with.
    pub token: u64,
    /// A read would bring something: bytes, a connection, or the news that the peer is gone.
    pub readable: bool,
    /// A write would be taken.
    pub writable: bool,
    /// The peer is gone or the descriptor is broken; there may still be bytes to read.
    pub closed: bool,
}

impl From<epoll::Event> for Ready {
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

/// A set of descriptors to wait for, level-triggered: what is not dealt with is reported again.
pub struct Poller {
    epoll: OwnedFd,
    ready: Vec<Ready>,
}

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC);
        let epoll = epoll.map_err(|errno| limits::told("no epoll set can be made", errno))?;
        Ok(Self { epoll, ready: Vec::with_capacity(BATCH) })
    }

    /// Adds a descriptor, to be reported as `token`. Remove it before it is closed: a copy held by another
    /// process keeps a closed descriptor in the set.
    ///
    /// # Errors
    /// `AlreadyExists`, or `PermissionDenied` for a descriptor that is always ready, such as a file.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), interest.flags())?)
    }

    /// Changes what is waited for on a descriptor, and its token.
    ///
    /// # Errors
    /// `NotFound` if it was not added.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(token), interest.flags())?)
    }

    /// Waits for the descriptor no more. Events already handed out still name its token.
    ///
    /// # Errors
    /// `NotFound` if it was not added.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Waits until something is ready, a signal interrupts (then nothing is), or `timeout` is over; without a
    /// timeout, for ever. The timeout is in nanoseconds (`epoll_pwait2`, Linux 5.11).
    ///
    /// # Errors
    /// `Unsupported` on an older kernel.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<impl Iterator<Item = Ready> + '_> {
        self.ready.clear();
        let timeout = timeout.map(timespec);
        let mut events = [const { MaybeUninit::uninit() }; BATCH];
        match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok((events, _)) => self.ready.extend(events.iter().map(|event| Ready::from(*event))),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
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

/// Has waits of this thread end when they should: the kernel may make each up to 50 us longer otherwise.
pub fn wake_in_time() {
    // A kernel that refuses wakes us later.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Longer than anyone waits is as good as for ever.
fn timespec(duration: Duration) -> Timespec {
    let tv_sec = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: duration.subsec_nanos().into() }
}
