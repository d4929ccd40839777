//! Translates I/O virtual addresses of one client to addresses of mapped memory in this process.
//!
//! Each function has one table, owned by the thread that runs the card: a look-up takes no lock, makes no system
//! call and allocates nothing. The guest chooses the addresses, so any may be invalid; an access that is not wholly
//! permitted moves nothing and returns a [`DmaFault`] with the address.
//!
//! A vfio-user client also announces regions without a descriptor (read-only ROMs, other devices' memory, and
//! everything when the VM was started without `share=on`). The table keeps them, so that overlaps and unmaps are
//! judged correctly; the device can reach none of their bytes.
//!
//! Mapping and unmapping may block and happen on a [`BlockingWorker`](crate::worker::BlockingWorker):
//! [`DmaTable::admit`] returns the region to map, and [`DmaTable::unmap`] the regions to drop.
//!
//! The device does not reach memory through the client (DMA_READ, DMA_WRITE).

mod access;
mod burst;
mod fault;
mod file;
mod log;
mod mapping;
mod region;
mod samples;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::mem;
use std::ops::Range;

use rustix::io::Errno;

pub use fault::{DmaFault, DmaFaultKind};
use log::MigrationLog;
pub use log::{LogAlias, MappedLog, PendingLog};
use mapping::ClientMemoryMappings;
pub use mapping::{MappedDmaRegion, PendingDmaRegion, RemovedDmaRegions};
use region::DmaTableEntry;
pub use region::{DmaPermissions, DmaRegion};
pub use samples::MemorySamples;

pub use crate::memory::frames::{FrameCopyList, FrameHeadCompletion, PayloadCopyList};
use crate::memory::{FileMapError, poison_events};

/// Unit of DMA addresses and sizes in bytes: a page, as announced to the client (`pgsizes`).
pub const PAGE_SIZE: u64 = 4096;

/// Limits on the regions, mappings, files and bytes that this process holds for one client's DMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaLimits {
    /// Maximum number of a client's DMA regions, with or without memory (`max_dma_maps`).
    pub regions: usize,
    /// Maximum number of memory mappings of one client, which regions of one file share. See also
    /// [`MappingTableReservation`](crate::memory::MappingTableReservation).
    pub mappings: usize,
    /// Maximum number of different memory files of one client. Their file descriptors are kept for a successor process.
    pub files: usize,
    /// Maximum number of bytes in one client's DMA regions with memory.
    pub bytes: u64,
}

impl Default for DmaLimits {
    /// Returns limits above the needs of VMMs: QEMU maps about 25 regions of one file or, for a guest with an
    /// IOMMU, each page that the guest maps; a file has at most about 32 mappings.
    fn default() -> Self {
        Self { regions: 65_535, mappings: 256, files: 64, bytes: 8 << 40 }
    }
}

/// Reason why a client's DMA region was not added. The table is unchanged.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MapDmaRegionError {
    /// The size is 0, the end is beyond 2^64, or a value is not a multiple of [`PAGE_SIZE`].
    #[error("cannot map DMA region {iova:#x}+{size:#x}: it is empty, unaligned, or beyond the address space")]
    Invalid {
        /// First I/O virtual address of the refused region.
        iova: u64,
        /// Size of the refused region in bytes.
        size: u64,
    },
    /// Another region holds some of the refused region's addresses.
    #[error("cannot map DMA region {iova:#x}+{size:#x}: it overlaps the region at {existing:#x}")]
    Overlap {
        /// First I/O virtual address of the refused region.
        iova: u64,
        /// Size of the refused region in bytes.
        size: u64,
        /// First I/O virtual address of the existing region that the refused one overlaps.
        existing: u64,
    },
    /// The migration log is empty, unaligned, or ends beyond 2^64.
    #[error(
        "cannot map a migration log of {size:#x} bytes at file offset {offset:#x}: it is empty, unaligned, or larger than 256 MiB"
    )]
    InvalidLog {
        /// Size of the refused migration log in bytes.
        size: u64,
        /// Offset of the refused migration log in its file in bytes.
        offset: u64,
    },
    /// The client's [`DmaLimits::regions`], [`DmaLimits::mappings`] or [`DmaLimits::files`] is reached.
    #[error("cannot map a DMA region: the client has reached its limit of regions, mappings or files")]
    LimitReached,
    /// The client would have more bytes mapped than [`DmaLimits::bytes`].
    #[error(
        "cannot map a DMA region of {size} bytes: {mapped} of the client's limit of {limit} bytes are mapped"
    )]
    TooMuchMemory {
        /// Size of the refused region in bytes.
        size: u64,
        /// Bytes that the client has mapped already.
        mapped: u64,
        /// Maximum number of bytes that the client may map.
        limit: u64,
    },
    /// The file descriptor that the client sent cannot be mapped.
    #[error(transparent)]
    Memory(#[from] FileMapError),
}

impl MapDmaRegionError {
    /// Returns the errno of the reply to the refused mapping: EEXIST for an overlap (vfio-user, DMA_MAP), EINVAL,
    /// ENOSPC, ENOMEM.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::Invalid { .. } | Self::InvalidLog { .. } => Errno::INVAL.raw_os_error(),
            Self::Overlap { .. } => Errno::EXIST.raw_os_error(),
            Self::LimitReached => Errno::NOSPC.raw_os_error(),
            Self::TooMuchMemory { .. } => Errno::NOMEM.raw_os_error(),
            Self::Memory(error) => error.errno(),
        }
    }
}

/// Error: the address range to unmap holds no DMA region, or only a part of one.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("cannot unmap DMA range {iova:#x}+{size:#x}: it must cover whole DMA regions")]
pub struct UnmapDmaRegionError {
    /// First I/O virtual address of the range to unmap.
    pub iova: u64,
    /// Size of the range to unmap in bytes.
    pub size: u64,
}

impl UnmapDmaRegionError {
    /// Returns the errno of the reply to the refused unmap request: ENOENT.
    #[must_use]
    pub fn errno(&self) -> i32 {
        Errno::NOENT.raw_os_error()
    }
}

/// DMA regions of one client, in order of address, without overlaps.
#[derive(Debug, Default)]
pub struct DmaTable {
    regions: Vec<DmaTableEntry>,
    limits: DmaLimits,
    /// Number of DMA regions with memory.
    shareable: usize,
    mapped_bytes: u64,
    mappings: ClientMemoryMappings,
    /// Index of the last accessed region: rings and buffers of one guest mostly lie in one region.
    last_hit: Cell<usize>,
    /// Number of the process's truncated mappings ([`poison_events`]) when this client's memory was last checked for
    /// truncation, and the check's result.
    looked_over: Cell<(u64, bool)>,
    log: MigrationLog,
}

impl DmaTable {
    /// Creates a DMA table without regions.
    #[must_use]
    pub fn new(limits: DmaLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Admits the DMA region of `size` bytes at `iova` to the table. With a file offset and any permission, returns the
    /// region, to be mapped and then [inserted](Self::insert). Otherwise adds a region that the device cannot reach.
    /// Does not block.
    ///
    /// # Errors
    /// See [`MapDmaRegionError`].
    pub fn admit(
        &mut self,
        iova: u64,
        size: u64,
        permissions: DmaPermissions,
        offset: Option<u64>,
    ) -> Result<Option<PendingDmaRegion>, MapDmaRegionError> {
        let invalid = MapDmaRegionError::Invalid { iova, size };
        if size == 0 || [iova, size, offset.unwrap_or(0)].iter().any(|value| !value.is_multiple_of(PAGE_SIZE))
        {
            return Err(invalid);
        }
        let last = iova.checked_add(size - 1).ok_or(invalid)?;
        let index = self.place(iova, last)?;
        if self.regions.len() >= self.limits.regions {
            return Err(MapDmaRegionError::LimitReached);
        }
        let Some(offset) = offset.filter(|_| permissions.any()) else {
            self.regions.insert(index, DmaTableEntry { first: iova, last, permissions, backing: None });
            return Ok(None);
        };
        if size > self.limits.bytes.saturating_sub(self.mapped_bytes) {
            let (mapped, limit) = (self.mapped_bytes, self.limits.bytes);
            return Err(MapDmaRegionError::TooMuchMemory { size, mapped, limit });
        }
        let (mappings, limits) = (self.mappings.clone(), self.limits);
        Ok(Some(PendingDmaRegion { first: iova, last, permissions, offset, mappings, limits }))
    }

    /// Adds a DMA region that the table has admitted and whose memory is mapped.
    ///
    /// # Errors
    /// The region, if another one has taken its addresses meanwhile.
    pub fn insert(&mut self, region: MappedDmaRegion) -> Result<(), MappedDmaRegion> {
        let Ok(index) = self.place(region.0.first, region.0.last) else { return Err(region) };
        self.shareable += 1;
        self.mapped_bytes += region.0.size();
        self.regions.insert(index, region.0);
        Ok(())
    }

    /// Returns the index at which a new DMA region is inserted into the table. Fails if the region overlaps another.
    fn place(&self, first: u64, last: u64) -> Result<usize, MapDmaRegionError> {
        let index = self.regions.partition_point(|region| region.last < first);
        match self.regions.get(index).filter(|region| region.first <= last) {
            Some(existing) => {
                let (size, existing) = ((last - first).saturating_add(1), existing.first);
                Err(MapDmaRegionError::Overlap { iova: first, size, existing })
            }
            None => Ok(index),
        }
    }

    /// Removes every region inside the `size` bytes at `iova` from the device's reach. The caller drops the regions'
    /// memory.
    ///
    /// # Errors
    /// [`UnmapDmaRegionError`]; a part of a region cannot be removed.
    pub fn unmap(&mut self, iova: u64, size: u64) -> Result<RemovedDmaRegions, UnmapDmaRegionError> {
        let nothing = UnmapDmaRegionError { iova, size };
        let last = size.checked_sub(1).and_then(|more| iova.checked_add(more)).ok_or(nothing)?;
        let from = self.regions.partition_point(|region| region.last < iova);
        let to = self.regions.partition_point(|region| region.first <= last);
        match &self.regions[from..to] {
            [lowest, ..] if lowest.first < iova => return Err(nothing),
            [.., highest] if highest.last > last => return Err(nothing),
            [] => return Err(nothing),
            _ => {}
        }
        Ok(self.remove(from..to))
    }

    /// Removes every DMA region of the client from the device's reach, as [`Self::unmap`] does.
    pub fn unmap_all(&mut self) -> RemovedDmaRegions {
        self.remove(0..self.regions.len())
    }

    /// Returns the number of regions that begin in the `size` bytes at `iova`, and of those behind. The latter change their
    /// place in the table if a region is added or removed here.
    #[must_use]
    pub fn regions_from(&self, iova: u64, size: u64) -> (usize, usize) {
        let [from, to] = [iova, iova.saturating_add(size)]
            .map(|address| self.regions.partition_point(|region| region.first < address));
        (to - from, self.regions.len() - to)
    }

    /// Returns how many of the `size` bytes at `iova` remain in front of their `count` highest regions; 0 if no region remains.
    #[must_use]
    pub fn without_highest(&self, iova: u64, size: u64, count: usize) -> u64 {
        let [from, to] = [iova, iova.saturating_add(size)]
            .map(|address| self.regions.partition_point(|region| region.first < address));
        match to.saturating_sub(count) {
            _ if count == 0 => size,
            lowest if lowest > from => self.regions[lowest].first - iova,
            _ => 0,
        }
    }

    fn remove(&mut self, range: Range<usize>) -> RemovedDmaRegions {
        let all = range.len() == self.regions.len();
        let removed = if all { mem::take(&mut self.regions) } else { self.regions.drain(range).collect() };
        for region in removed.iter().filter(|region| region.backing.is_some()) {
            self.shareable -= 1;
            self.mapped_bytes -= region.size();
        }
        self.forget_hints();
        RemovedDmaRegions(removed)
    }

    fn forget_hints(&mut self) {
        self.last_hit.set(0);
        // Never equal to a count of events, so the next call of `poisoned` checks again.
        self.looked_over.set((u64::MAX, false));
    }

    /// Returns the regions in order of address, with the file and offset by which the successor process maps them
    /// again.
    pub fn regions(&self) -> impl Iterator<Item = DmaRegion<'_>> {
        self.regions.iter().map(DmaTableEntry::describe)
    }

    /// Returns the number of the client's regions, with or without memory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.regions.len()
    }

    /// Returns true if the client has no DMA region.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Returns the number of DMA regions with memory. If a client has regions but none with memory, its VM does not
    /// share memory (`share=on`), and no frame can reach it.
    #[must_use]
    pub fn shareable_regions(&self) -> usize {
        self.shareable
    }

    /// Returns the number of bytes in DMA regions with memory.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped_bytes
    }

    /// Returns samples of the guest's memory, by which a private copy of it is found.
    #[must_use]
    pub fn samples(&self) -> MemorySamples {
        let regions = self.regions.iter().filter_map(|region| {
            let memory = region.backing.as_ref()?;
            Some((region.size(), &memory.mapping.file, memory.file_offset()))
        });
        MemorySamples::of(regions, self.mapped_bytes)
    }

    /// Returns true if the client shrank a memory file while it was mapped. The client's session should then end: the
    /// device reads zeros and its writes are discarded. Costs one load until any client of the process shrinks memory.
    #[must_use]
    pub fn poisoned(&self) -> bool {
        let events = poison_events();
        let (seen, answer) = self.looked_over.get();
        if seen == events {
            return answer;
        }
        let backings = self.regions.iter().filter_map(|region| region.backing.as_ref());
        let answer =
            self.log.poisoned() || backings.into_iter().any(|backing| backing.mapping.memory.poisoned());
        self.looked_over.set((events, answer));
        answer
    }
}
