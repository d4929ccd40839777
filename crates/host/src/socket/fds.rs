//! Descriptors received and not yet claimed.
//!
//! Left out: what they are. Dropping one closes it, and closing is up to what stands behind it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Most descriptors in one send, and held at once without some being counted as lost. vfio-user clients are told 16 a
/// message (`max_msg_fds`); twice that lets a client that sends too many be told so, instead of being cut off.
pub const MAX_FDS: usize = 32;
/// Most descriptors that the kernel lets one send carry (`SCM_MAX_FD`). All of them are received, even those that are too
/// many: what is not received the kernel closes at once, in the thread that receives, and that may take long.
pub(super) const MOST_SENT: usize = 253;

/// Descriptors in the order in which they arrived. Those never claimed are closed.
#[derive(Debug)]
pub struct FdBatch {
    fds: Vec<OwnedFd>,
    truncated: bool,
}

impl Default for FdBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl FdBatch {
    /// An empty batch. The only allocation it makes.
    #[must_use]
    pub fn new() -> Self {
        Self { fds: Vec::with_capacity(MAX_FDS), truncated: false }
    }

    /// Descriptors held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fds.len()
    }

    /// Whether none is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fds.is_empty()
    }

    /// Whether the peer sent more than [`MAX_FDS`], or some were lost because this process has no descriptors left. What
    /// they came with cannot be carried out.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// All that are held, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.fds.iter().map(AsFd::as_fd)
    }

    /// Takes all that are held, oldest first, and forgets that any was lost.
    pub fn drain(&mut self) -> impl Iterator<Item = OwnedFd> + '_ {
        self.truncated = false;
        self.fds.drain(..)
    }

    /// Closes all that are held, and forgets that any was lost.
    pub fn clear(&mut self) {
        self.truncated = false;
        self.fds.clear();
    }

    pub(super) fn push(&mut self, fd: OwnedFd) {
        self.truncated |= self.fds.len() >= MAX_FDS;
        if self.fds.len() < MAX_FDS + MOST_SENT {
            self.fds.push(fd);
        }
    }

    pub(super) fn mark_truncated(&mut self) {
        self.truncated = true;
    }
}
