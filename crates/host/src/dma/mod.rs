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
//! Left out: the messages that carry all this, and bouncing through the client (DMA_READ, DMA_WRITE).

mod access;
mod region;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;

pub use access::{DmaFault, FaultKind};
use region::{Backing, Region};
pub use region::{DmaRegion, Permissions};

use crate::memory::{FileIdentity, MapError, MappedFile, Protection, poison_events};

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
    /// Regions with memory behind them: each is a mapping, of which the kernel gives a process 65,530.
    pub mappings: usize,
    /// Different descriptors kept, for a successor to map again.
    pub files: usize,
    /// Bytes of address space mapped.
    pub bytes: u64,
}

impl Default for DmaLimits {
    /// What eight hostile clients may use up together without hurting each other: QEMU maps about 25 regions
    /// of one file, and cannot have more than 509 with memory behind them, but for a guest with an IOMMU, where each
    /// page that it maps is one.
    fn default() -> Self {
        Self { regions: 65_535, mappings: 1_024, files: 64, bytes: 8 << 40 }
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
    /// One of the [`DmaLimits`] is reached.
    #[error("the client has mapped as much as it may")]
    LimitReached,
    /// The descriptor cannot serve.
    #[error(transparent)]
    Memory(#[from] MapError),
}

impl MapRegionError {
    /// The errno for the reply: EEXIST for an overlap (vfio-user, DMA_MAP), EINVAL, ENOSPC.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::Invalid { .. } => Errno::INVAL.raw_os_error(),
            Self::Overlap { .. } => Errno::EXIST.raw_os_error(),
            Self::LimitReached => Errno::NOSPC.raw_os_error(),
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
    mappings: usize,
    mapped_bytes: u64,
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

    /// Adds the region of `size` bytes at `iova`. With a descriptor, and if any permission is given, its
    /// bytes from `offset` on are mapped; without, the region is known and unreachable.
    ///
    /// # Errors
    /// See [`MapRegionError`].
    pub fn map(
        &mut self,
        iova: u64,
        size: u64,
        permissions: Permissions,
        memory: Option<(OwnedFd, u64)>,
    ) -> Result<(), MapRegionError> {
        let aligned = [iova, size, memory.as_ref().map_or(0, |(_, offset)| *offset)];
        let invalid = MapRegionError::Invalid { iova, size };
        if size == 0 || aligned.iter().any(|value| !value.is_multiple_of(PAGE_SIZE)) {
            return Err(invalid);
        }
        let last = iova.checked_add(size - 1).ok_or(invalid)?;
        let index = self.regions.partition_point(|region| region.last < iova);
        if let Some(existing) = self.regions.get(index).filter(|region| region.first <= last) {
            return Err(MapRegionError::Overlap { iova, size, existing: existing.first });
        }
        if self.regions.len() >= self.limits.regions {
            return Err(MapRegionError::LimitReached);
        }
        let backing = match memory {
            Some((fd, offset)) if permissions.any() => Some(self.back(fd, offset, size, permissions)?),
            _ => None,
        };
        if backing.is_some() {
            self.mappings += 1;
            self.mapped_bytes += size;
        }
        self.regions.insert(index, Region { first: iova, last, permissions, backing });
        Ok(())
    }

    fn back(
        &self,
        fd: OwnedFd,
        offset: u64,
        size: u64,
        permissions: Permissions,
    ) -> Result<Box<Backing>, MapRegionError> {
        let room = self.limits.bytes.saturating_sub(self.mapped_bytes);
        if self.mappings >= self.limits.mappings || size > room {
            return Err(MapRegionError::LimitReached);
        }
        let protection = if permissions.write { Protection::ReadWrite } else { Protection::ReadOnly };
        let memory = MappedFile::map(&fd, offset, size, protection)?;
        let file = self.keep(fd)?;
        Ok(Box::new(Backing { memory, file, offset }))
    }

    /// One descriptor is enough for all regions of a file.
    fn keep(&self, fd: OwnedFd) -> Result<Arc<region::File>, MapRegionError> {
        use std::os::fd::AsFd;
        let identity = FileIdentity::of_memory(fd.as_fd()).map_err(MapError::System)?;
        let mut files: Vec<&Arc<region::File>> = Vec::with_capacity(self.limits.files);
        for backing in self.regions.iter().filter_map(|region| region.backing.as_ref()) {
            if backing.file.identity == identity {
                return Ok(Arc::clone(&backing.file));
            }
            if !files.iter().any(|file| Arc::ptr_eq(file, &backing.file)) {
                files.push(&backing.file);
            }
        }
        if files.len() >= self.limits.files {
            return Err(MapRegionError::LimitReached);
        }
        Ok(Arc::new(region::File { fd, identity }))
    }

    /// Removes every region inside the `size` bytes at `iova`. When this returns, nothing of them is mapped.
    ///
    /// # Errors
    /// [`NotMapped`]; a part of a region cannot be removed.
    pub fn unmap(&mut self, iova: u64, size: u64) -> Result<(), NotMapped> {
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
        for region in self.regions.drain(from..to).filter(|region| region.backing.is_some()) {
            self.mappings -= 1;
            self.mapped_bytes -= region.last - region.first + 1;
        }
        self.forget_hints();
        Ok(())
    }

    /// Removes every region.
    pub fn unmap_all(&mut self) {
        self.regions.clear();
        (self.mappings, self.mapped_bytes) = (0, 0);
        self.forget_hints();
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
        self.mappings
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
        for memory in self.regions.iter().filter_map(|region| Some(&region.backing.as_ref()?.memory)) {
            let mut offset = 0;
            while offset < memory.len() {
                if memory.read(offset, &mut page).is_ok() && page != [0; PAGE_SIZE as usize] {
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
        let answer = backings.into_iter().any(|backing| backing.memory.poisoned());
        self.looked_over.set((events, answer));
        answer
    }
}
