//! One region of a table: its addresses, what the device may do there, and the memory behind it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::memory::{FileIdentity, MappedFile};

/// What a device may do in a region (vfio-user DMA_MAP flags).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// The device may fetch from it.
    pub read: bool,
    /// The device may store to it.
    pub write: bool,
}

impl Permissions {
    /// Ordinary memory.
    pub const READ_WRITE: Self = Self { read: true, write: true };
    /// ROM.
    pub const READ_ONLY: Self = Self { read: true, write: false };

    pub(super) fn any(self) -> bool {
        self.read || self.write
    }
}

/// What is known of a region.
#[derive(Clone, Copy, Debug)]
pub struct DmaRegion<'table> {
    /// First address.
    pub iova: u64,
    /// Last address: a region may end at 2^64 - 1.
    pub last: u64,
    /// What the device may do.
    pub permissions: Permissions,
    /// The file behind it and the offset of its first byte; `None` if it cannot be reached.
    pub file: Option<(BorrowedFd<'table>, u64)>,
}

/// A client's descriptor, kept once for all regions of the file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) fd: OwnedFd,
    pub(super) identity: FileIdentity,
}

#[derive(Debug)]
pub(super) struct Backing {
    pub(super) memory: MappedFile,
    pub(super) file: Arc<File>,
    pub(super) offset: u64,
}

/// Kept small, since a client may have 65,535: what only reachable regions have is in a box.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) permissions: Permissions,
    pub(super) backing: Option<Box<Backing>>,
}

impl Region {
    pub(super) fn holds(&self, iova: u64) -> bool {
        self.first <= iova && iova <= self.last
    }

    pub(super) fn describe(&self) -> DmaRegion<'_> {
        let file = self.backing.as_ref().map(|backing| (backing.file.fd.as_fd(), backing.offset));
        DmaRegion { iova: self.first, last: self.last, permissions: self.permissions, file }
    }
}
