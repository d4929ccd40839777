//! File of memory that the VMM of a hostile guest gives to its function, and truncates.

use super::hostile::TRUNCATED;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// File of memory that a VMM truncates; none until its function has it.
#[derive(Debug, Default)]
pub(super) struct TruncatedFile(Option<OwnedFd>);

impl TruncatedFile {
    /// Truncates the file to `left` bytes. The first time `map` gives it to the function, and returns true if the function has it.
    /// Returns true if the function has the truncated file.
    pub(super) fn truncate(&mut self, left: u64, map: impl FnOnce(BorrowedFd<'_>, u64) -> bool) -> bool {
        let (_, size) = TRUNCATED;
        if self.0.is_none() {
            let file = memfd_create("truncated", MemfdFlags::CLOEXEC).expect("memory of a hostile VMM");
            ftruncate(&file, size).expect("memory of a hostile VMM");
            self.0 = map(file.as_fd(), size).then_some(file);
        }
        let Some(file) = &self.0 else { return false };
        ftruncate(file, left).expect("memory of a hostile VMM");
        true
    }
}
