//! File descriptors that a socket received and that no message has claimed yet.
//!
//! Dropping a descriptor closes it, which may block, depending on its file.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Maximum number of file descriptors in one send, and of received descriptors that a batch holds without loss.
/// vfio-user clients may send 16 a message (`max_msg_fds`); twice that lets a client that sends too many receive an
/// error instead of losing its connection.
pub const MAX_FDS: usize = 32;
/// Maximum number of file descriptors that the kernel lets one send carry (`SCM_MAX_FD`). The receiver takes all of
/// them, even excess ones: the kernel would close the others in the receiving thread, which may block.
pub(super) const MOST_SENT: usize = 253;

/// File descriptors that a socket received, in order of arrival. Those that no message claims are closed.
#[derive(Debug)]
pub struct ReceivedFds {
    fds: Vec<OwnedFd>,
    truncated: bool,
}

impl Default for ReceivedFds {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceivedFds {
    /// Creates an empty batch of file descriptors, with memory for [`MAX_FDS`].
    #[must_use]
    pub fn new() -> Self {
        Self { fds: Vec::with_capacity(MAX_FDS), truncated: false }
    }

    /// Returns the number of received file descriptors in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fds.len()
    }

    /// Returns true if the batch has no file descriptor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fds.is_empty()
    }

    /// Returns true if the peer sent more than [`MAX_FDS`] file descriptors, or some were lost because this process is
    /// out of descriptors. The message with the descriptors cannot be carried out.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Returns all received file descriptors, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.fds.iter().map(AsFd::as_fd)
    }

    /// Takes all file descriptors of the batch, oldest first, and resets the loss flag.
    pub fn drain(&mut self) -> impl Iterator<Item = OwnedFd> + '_ {
        self.truncated = false;
        self.fds.drain(..)
    }

    /// Closes all file descriptors of the batch, and resets the loss flag.
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
