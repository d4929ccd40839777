//! DMA region of a client: its addresses, the device's permissions, and its memory.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::mapping::ClientMemoryMapping;
use crate::memory::{DmaRegionWindow, MappedGuestMemory, MemoryProtection};

/// Permissions of the device in a DMA region (vfio-user DMA_MAP flags).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaPermissions {
    /// True if the device may read the DMA region.
    pub read: bool,
    /// True if the device may write to the DMA region.
    pub write: bool,
}

impl DmaPermissions {
    /// Permission of the device to read and write, as in ordinary guest memory.
    pub const READ_WRITE: Self = Self { read: true, write: true };
    /// Permission of the device to read only, as in a guest's ROM.
    pub const READ_ONLY: Self = Self { read: true, write: false };

    pub(super) fn any(self) -> bool {
        self.read || self.write
    }

    /// Returns the access to the region's mapping that the device needs.
    pub(super) fn protection(self) -> MemoryProtection {
        if self.write { MemoryProtection::ReadWrite } else { MemoryProtection::ReadOnly }
    }
}

/// Description of a client's DMA region.
#[derive(Clone, Copy, Debug)]
pub struct DmaRegion<'table> {
    /// First I/O virtual address of the DMA region.
    pub iova: u64,
    /// Last I/O virtual address of the DMA region: it may be 2^64 - 1.
    pub last: u64,
    /// Permissions of the device in the DMA region.
    pub permissions: DmaPermissions,
    /// File and offset of the region's first byte; `None` if the region has no memory.
    pub file: Option<(BorrowedFd<'table>, u64)>,
}

/// Memory of a DMA region, mapped into this process.
pub(super) struct DmaRegionMemory {
    /// Bytes of the DMA region in its memory mapping.
    window: DmaRegionWindow,
    /// Memory mapping that holds the DMA region, shared with other regions of the file.
    pub(super) mapping: Arc<ClientMemoryMapping>,
    /// Offset of the DMA region in its memory mapping, in bytes.
    skip: u64,
}

impl DmaRegionMemory {
    /// Creates the memory of a DMA region: `len` bytes at offset `skip` of a mapping. Returns `None` if the mapping is
    /// too short, or if it is read-only and the device may write.
    pub(super) fn new(
        mapping: Arc<ClientMemoryMapping>,
        skip: u64,
        len: u64,
        permissions: DmaPermissions,
    ) -> Option<Self> {
        let window = DmaRegionWindow::new(Arc::clone(&mapping.memory), skip, len, permissions.write)?;
        Some(Self { window, mapping, skip })
    }

    /// Returns the offset of the DMA region in its file, in bytes.
    pub(super) fn file_offset(&self) -> u64 {
        self.mapping.start + self.skip
    }

    /// Returns the bytes of the DMA region.
    #[inline]
    pub(super) fn view(&self) -> &MappedGuestMemory {
        self.window.view()
    }
}

impl fmt::Debug for DmaRegionMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backing")
            .field("mapping", &self.mapping)
            .field("skip", &self.skip)
            .finish_non_exhaustive()
    }
}

/// Entry of a DMA table. The entry is kept small, since a client may have 65,535 of them.
#[derive(Debug)]
pub(super) struct DmaTableEntry {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) permissions: DmaPermissions,
    pub(super) backing: Option<DmaRegionMemory>,
}

impl DmaTableEntry {
    /// Returns the region's size in bytes, at most 2^64 - 4,096: a region consists of whole pages, and only two
    /// together fill the address space.
    pub(super) fn size(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    pub(super) fn holds(&self, iova: u64) -> bool {
        self.first <= iova && iova <= self.last
    }

    pub(super) fn describe(&self) -> DmaRegion<'_> {
        let file = self.backing.as_ref().map(|memory| (memory.mapping.file.fd.as_fd(), memory.file_offset()));
        DmaRegion { iova: self.first, last: self.last, permissions: self.permissions, file }
    }
}
