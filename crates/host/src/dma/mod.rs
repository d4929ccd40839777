//! What one client lets its device reach: from I/O virtual addresses to mapped memory.
//!
//! One table per function, owned by the thread that runs the card: a look-up takes no lock, makes no system
//! call and allocates nothing. Addresses come from the guest, so every one may be a lie; an access that is
//! not wholly permitted moves nothing and returns a [`DmaFault`] that names the address.
//!
//! A vfio-user client also announces regions without a descriptor (read-only ROMs, other devices' memory, and
//! everything when the VM was started without `share=on`). They are kept, so that overlaps and unmaps are
//! judged correctly, but no byte of them can be reached.
//!
//! Mapping and unmapping memory may take long, and is not done here: [`DmaTable::admit`] answers what is to be mapped, and
//! [`DmaTable::unmap`] what is to be dropped, both to be sent to a [`Worker`](crate::worker::Worker).
//!
//! Left out: the messages that carry all this, and bouncing through the client (DMA_READ, DMA_WRITE).

mod access;
mod burst;
mod mapping;
mod region;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::mem;
use std::ops::Range;

use rustix::io::Errno;

pub use access::{DmaFault, FaultKind};
use mapping::Mappings;
pub use mapping::{MappedRegion, PendingRegion, RemovedRegions};
use region::Region;
pub use region::{DmaRegion, Permissions};

pub use crate::memory::frames::Run;
use crate::memory::{MapError, poison_events};

/// Addresses and sizes come in pages of this many bytes, as announced to the client (`pgsizes`).
pub const PAGE_SIZE: u64 = 4096;
/// Pages that [`DmaTable::is_blank`] looks at: so many of the lowest (a PC's first MiB is written to before any
/// driver runs), and so many of the rest.
const LOW_SAMPLES: u64 = 256;
const SPREAD_SAMPLES: u64 = 256;

/// How much of this process one client may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaLimits {
    /// Regions, with or without memory behind them (`max_dma_maps`).
    pub regions: usize,
    /// Mappings. Regions of one file share them; see also [`MappingShare`](crate::memory::MappingShare).
    pub mappings: usize,
    /// Different descriptors kept, for a successor to map again.
    pub files: usize,
    /// Bytes in regions with memory behind them.
    pub bytes: u64,
}

impl Default for DmaLimits {
    /// Enough for every honest client: QEMU maps about 25 regions of one file, or, for a guest with an IOMMU, each page
    /// of it that the guest lets the device have; and a file has about 32 mappings at most.
    fn default() -> Self {
        Self { regions: 65_535, mappings: 256, files: 64, bytes: 8 << 40 }
    }
}

/// Why a region was not added. The table is as it was.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MapRegionError {
    /// Zero size, an end beyond 2^64, or an address, size or offset that is not a multiple of [`PAGE_SIZE`].
    #[error("region {iova:#x}+{size:#x} is empty, unaligned or wraps")]
    Invalid {
        /// First address.
        iova: u64,
        /// Bytes.
        size: u64,
    },
    /// Some address is in another region already.
    #[error("region {iova:#x}+{size:#x} overlaps the one at {existing:#x}")]
    Overlap {
        /// First address.
        iova: u64,
        /// Bytes.
        size: u64,
        /// First address of the region in the way.
        existing: u64,
    },
    /// [`DmaLimits::regions`], [`DmaLimits::mappings`] or [`DmaLimits::files`] is reached.
    #[error("the client has as many regions, mappings or files as it may")]
    LimitReached,
    /// [`DmaLimits::bytes`] would be exceeded.
    #[error(
        "{size} bytes more than the {mapped} that the client has mapped are more than the {limit} it may"
    )]
    TooMuchMemory {
        /// Bytes of the region.
        size: u64,
        /// Bytes that are mapped already.
        mapped: u64,
        /// Bytes that may be mapped.
        limit: u64,
    },
    /// The descriptor cannot serve.
    #[error(transparent)]
    Memory(#[from] MapError),
}

impl MapRegionError {
    /// The errno for the reply: EEXIST for an overlap (vfio-user, DMA_MAP), EINVAL, ENOSPC, ENOMEM.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::Invalid { .. } => Errno::INVAL.raw_os_error(),
            Self::Overlap { .. } => Errno::EXIST.raw_os_error(),
            Self::LimitReached => Errno::NOSPC.raw_os_error(),
            Self::TooMuchMemory { .. } => Errno::NOMEM.raw_os_error(),
            Self::Memory(error) => error.errno(),
        }
    }
}

/// There is no region in this range, or one that is cut by its ends.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("no whole regions in {iova:#x}+{size:#x}")]
pub struct NotMapped {
    /// First address asked for.
    pub iova: u64,
    /// Bytes asked for.
    pub size: u64,
}

impl NotMapped {
    /// The errno for the reply: ENOENT.
    #[must_use]
    pub fn errno(&self) -> i32 {
        Errno::NOENT.raw_os_error()
    }
}

/// The regions of one client, in order of address, none overlapping another.
#[derive(Debug, Default)]
pub struct DmaTable {
    regions: Vec<Region>,
    limits: DmaLimits,
    /// Regions with memory.
    shareable: usize,
    mapped_bytes: u64,
    mappings: Mappings,
    /// Index of the region the last access hit: rings and buffers of one guest are mostly in one region.
    last_hit: Cell<usize>,
    /// [`poison_events`] when the regions were last looked over, and what was found.
    looked_over: Cell<(u64, bool)>,
}

impl DmaTable {
    /// An empty table.
    #[must_use]
    pub fn new(limits: DmaLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Admits the region of `size` bytes at `iova`. With an offset into a file, and if any permission is given, its memory
    /// is to be mapped from the answer, and the region [inserted](Self::insert) then; else it is in the table already,
    /// known and unreachable. Does nothing that takes time.
    ///
    /// # Errors
    /// See [`MapRegionError`].
    pub fn admit(
        &mut self,
        iova: u64,
        size: u64,
        permissions: Permissions,
        offset: Option<u64>,
    ) -> Result<Option<PendingRegion>, MapRegionError> {
        let invalid = MapRegionError::Invalid { iova, size };
        if size == 0 || [iova, size, offset.unwrap_or(0)].iter().any(|value| !value.is_multiple_of(PAGE_SIZE))
        {
            return Err(invalid);
        }
        let last = iova.checked_add(size - 1).ok_or(invalid)?;
        let index = self.place(iova, last)?;
        if self.regions.len() >= self.limits.regions {
            return Err(MapRegionError::LimitReached);
        }
        let Some(offset) = offset.filter(|_| permissions.any()) else {
            self.regions.insert(index, Region { first: iova, last, permissions, backing: None });
            return Ok(None);
        };
        if size > self.limits.bytes.saturating_sub(self.mapped_bytes) {
            let (mapped, limit) = (self.mapped_bytes, self.limits.bytes);
            return Err(MapRegionError::TooMuchMemory { size, mapped, limit });
        }
        let (mappings, limits) = (self.mappings.clone(), self.limits);
        Ok(Some(PendingRegion { first: iova, last, permissions, offset, mappings, limits }))
    }

    /// Adds a region that was admitted and is mapped now.
    ///
    /// # Errors
    /// The region, if its addresses were given to another one meanwhile.
    pub fn insert(&mut self, region: MappedRegion) -> Result<(), MappedRegion> {
        let Ok(index) = self.place(region.0.first, region.0.last) else { return Err(region) };
        self.shareable += 1;
        self.mapped_bytes += region.0.size();
        self.regions.insert(index, region.0);
        Ok(())
    }

    /// Where in the table a region belongs that overlaps no other.
    fn place(&self, first: u64, last: u64) -> Result<usize, MapRegionError> {
        let index = self.regions.partition_point(|region| region.last < first);
        match self.regions.get(index).filter(|region| region.first <= last) {
            Some(existing) => {
                let (size, existing) = ((last - first).saturating_add(1), existing.first);
                Err(MapRegionError::Overlap { iova: first, size, existing })
            }
            None => Ok(index),
        }
    }

    /// Removes every region inside the `size` bytes at `iova`. From now on the device reaches nothing of them; their
    /// memory goes with the answer.
    ///
    /// # Errors
    /// [`NotMapped`]; a part of a region cannot be removed.
    pub fn unmap(&mut self, iova: u64, size: u64) -> Result<RemovedRegions, NotMapped> {
        let nothing = NotMapped { iova, size };
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

    /// Removes every region, as [`Self::unmap`] does.
    pub fn unmap_all(&mut self) -> RemovedRegions {
        self.remove(0..self.regions.len())
    }

    fn remove(&mut self, range: Range<usize>) -> RemovedRegions {
        let all = range.len() == self.regions.len();
        let removed = if all { mem::take(&mut self.regions) } else { self.regions.drain(range).collect() };
        for region in removed.iter().filter(|region| region.backing.is_some()) {
            self.shareable -= 1;
            self.mapped_bytes -= region.size();
        }
        self.forget_hints();
        RemovedRegions(removed)
    }

    fn forget_hints(&mut self) {
        self.last_hit.set(0);
        // Never equal to a count of events: the next question looks again.
        self.looked_over.set((u64::MAX, false));
    }

    /// The regions in order of address, with what a successor of this process needs to map them again.
    pub fn regions(&self) -> impl Iterator<Item = DmaRegion<'_>> {
        self.regions.iter().map(Region::describe)
    }

    /// Regions, reachable or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.regions.len()
    }

    /// Whether there is no region.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Regions with memory behind them. A client with regions and none of these was started without sharing
    /// its memory (`share=on`), and no frame will ever reach it.
    #[must_use]
    pub fn shareable_regions(&self) -> usize {
        self.shareable
    }

    /// Bytes that can be reached.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped_bytes
    }

    /// Whether nothing was ever written to what can be reached, as far as a sample shows: the lowest pages, and
    /// some that are spread over the rest.
    ///
    /// A client that maps its memory privately (`share=off`) hands over a file too, and then fills copies of
    /// its pages that nobody else sees. Memory that is in use is told by the first page or two.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        let stride = (self.mapped_bytes / SPREAD_SAMPLES).next_multiple_of(PAGE_SIZE).max(PAGE_SIZE);
        let mut page = [0; PAGE_SIZE as usize];
        let mut low = LOW_SAMPLES;
        for region in self.regions.iter().filter(|region| region.backing.is_some()) {
            let mut offset = 0;
            while offset < region.size() {
                if self.read(region.first + offset, &mut page).is_ok() && page != [0; PAGE_SIZE as usize] {
                    return false;
                }
                offset += if low > 0 { PAGE_SIZE } else { stride };
                low = low.saturating_sub(1);
            }
        }
        true
    }

    /// Whether the client shrank some memory after mapping it. Its session should then be ended: what the
    /// device reads is zeros and what it writes is lost. Costs one load as long as nobody in the process did.
    #[must_use]
    pub fn poisoned(&self) -> bool {
        let events = poison_events();
        let (seen, answer) = self.looked_over.get();
        if seen == events {
            return answer;
        }
        let backings = self.regions.iter().filter_map(|region| region.backing.as_ref());
        let answer = backings.into_iter().any(|backing| backing.mapping.memory.poisoned());
        self.looked_over.set((events, answer));
        answer
    }
}
