//! One region of a table: its addresses, what the device may do there, and the memory behind it.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::mapping::Mapping;
use crate::memory::{View, Window};

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
pub(super) struct Backing {
    /// All of the region, and no byte more.
    window: Window,
    /// Shared with other regions of the file.
    pub(super) mapping: Arc<Mapping>,
    /// Bytes of the mapping before the region's.
    skip: u64,
}

impl Backing {
    /// `len` bytes of a mapping, from `skip` on; `None` if it does not have them, or not for writing, if the device may write.
    pub(super) fn new(mapping: Arc<Mapping>, skip: u64, len: u64, permissions: Permissions) -> Option<Self> {
        let window = Window::new(Arc::clone(&mapping.memory), skip, len, permissions.write)?;
        Some(Self { window, mapping, skip })
    }

    /// The bytes.
    #[inline]
    pub(super) fn view(&self) -> &View {
        self.window.view()
    }
}

impl fmt::Debug for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backing")
            .field("mapping", &self.mapping)
            .field("skip", &self.skip)
            .finish_non_exhaustive()
    }
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
            .map(|Backing { mapping, skip, .. }| (mapping.file.fd.as_fd(), mapping.start + skip));
        DmaRegion { iova: self.first, last: self.last, permissions: self.permissions, file }
    }
}
