//! One region of a table: its addresses, what the device may do there, and the memory behind it.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::mapping::Mapping;

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

/// Where in memory a region is.
#[derive(Debug)]
pub(super) struct Backing {
    /// Shared with other regions of the file.
    pub(super) mapping: Arc<Mapping>,
    /// Bytes of the mapping before the region's.
    pub(super) skip: u64,
}

/// Kept small, since a client may have 65,535.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) permissions: Permissions,
    pub(super) backing: Option<Backing>,
}

impl Region {
    /// Bytes; at most 2^64 - 4,096, since regions are whole pages and only two together fill the address space.
    pub(super) fn size(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    pub(super) fn holds(&self, iova: u64) -> bool {
        self.first <= iova && iova <= self.last
    }

    pub(super) fn describe(&self) -> DmaRegion<'_> {
        let file = self
            .backing
            .as_ref()
            .map(|Backing { mapping, skip }| (mapping.file.fd.as_fd(), mapping.start + skip));
        DmaRegion { iova: self.first, last: self.last, permissions: self.permissions, file }
    }
}
