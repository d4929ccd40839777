//! Wakes a thread that waits, from another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::eventfd::EventFd;

/// Wake-up flag, readable from [`ThreadWaker::wake`] until [`ThreadWaker::drain`]. Clones wake the same thread.
#[derive(Clone, Debug)]
pub struct ThreadWaker(Arc<EventFd>);

impl ThreadWaker {
    /// Creates a waker that wakes no thread yet. Add it to a [`super::Poller`].
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(EventFd::new()?)))
    }

    /// Makes the waker readable, which wakes the waiting thread. Never blocks; repeated calls have no further effect.
    pub fn wake(&self) {
        self.0.signal();
    }

    /// Makes the waker unreadable, for the next wake-up. Call it before looking for work, so that work announced
    /// meanwhile wakes again.
    pub fn drain(&self) {
        self.0.drain();
    }
}

impl AsFd for ThreadWaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
