//! Saver of the file descriptors of a client's message for the successor process. It runs on the function's worker
//! thread. `journal` records the purpose of each descriptor.

use super::journal::NOT_KEPT;
use crate::port::moments::pass_moment;
use crate::vault::PortFileDescriptorStore;
use host::eventfd::{self, EventFd};
use host::memory::{self, FileIdentity};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Saver of the file descriptors of one blocking call, for the successor process.
#[derive(Debug)]
pub(in crate::port) struct FdSaver {
    pub(in crate::port) vault: PortFileDescriptorStore,
    /// Unused numbers under which to keep file descriptors.
    pub(in crate::port) numbers: Vec<u64>,
    /// Files of guest memory that the file descriptor store already holds, each with its number.
    pub(in crate::port) files: Vec<(FileIdentity, u64)>,
}

impl FdSaver {
    /// Stores a copy of a file descriptor under a number, for the successor process.
    pub(super) fn keep(&self, number: u64, fd: BorrowedFd<'_>) {
        pass_moment();
        self.vault.keep(number, fd);
    }

    /// Keeps each eventfd under a number, and returns the eventfds with these numbers.
    pub(super) fn keep_all(&self, eventfds: Vec<EventFd>) -> Vec<(EventFd, u64)> {
        let kept: Vec<_> = eventfds.into_iter().zip(self.numbers.iter().copied()).collect();
        kept.iter().for_each(|(eventfd, number)| self.keep(*number, eventfd.as_fd()));
        kept
    }

    /// Keeps those file descriptors of a message that a client may need, and returns their numbers. Other descriptors
    /// get the number [`NOT_KEPT`].
    pub(super) fn keep_useful(&self, fds: &[OwnedFd]) -> Vec<u64> {
        let keep = |(fd, number): (&OwnedFd, &u64)| {
            let fd = fd.as_fd();
            if !memory::is_memory(fd) && !eventfd::is_eventfd(fd) {
                return NOT_KEPT;
            }
            self.keep(*number, fd);
            *number
        };
        fds.iter().zip(&self.numbers).map(keep).collect()
    }

    /// Keeps a file of guest memory, unless it is kept already.
    pub(super) fn keep_file(&self, identity: &FileIdentity, fd: BorrowedFd<'_>) -> KeptMemoryFile {
        if let Some((_, number)) = self.files.iter().find(|(known, _)| known == identity) {
            return KeptMemoryFile { number: *number, new: false };
        }
        KeptMemoryFile { number: self.keep_one(fd), new: true }
    }

    /// Keeps a file descriptor under the first unused number, and returns the number.
    pub(super) fn keep_one(&self, fd: BorrowedFd<'_>) -> u64 {
        let number = self.numbers.first().copied().unwrap_or_default();
        self.keep(number, fd);
        number
    }

    /// Removes a file of guest memory from the file descriptor store again, if this blocking call was the first to keep
    /// the file.
    pub(super) fn take_back(&self, kept: KeptMemoryFile) {
        if kept.new {
            self.vault.forget(kept.number);
        }
    }
}

/// File of guest memory that the file descriptor store holds for the successor process.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptMemoryFile {
    pub(super) number: u64,
    /// True if this blocking call was the first to keep the file.
    new: bool,
}
