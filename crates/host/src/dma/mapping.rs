//! Memory mappings of one client's DMA regions. Regions of the same file share mappings: a guest behind an IOMMU
//! maps page by page, which would otherwise exhaust the process's mappings.
//!
//! A mapping covers the whole blocks of the file that hold the region. Only regions decide which bytes the device
//! may reach. A mapping is dropped with its last region.
//!
//! Everything here may block, and belongs on a [`BlockingWorker`](crate::worker::BlockingWorker).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::file::ClientMemoryFile;
use super::region::{DmaRegionMemory, DmaTableEntry};
use super::{DmaLimits, DmaPermissions, MapDmaRegionError};
use crate::memory::{FileIdentity, FileMapError, MappedFile, MemoryProtection};

/// Smallest mapping of a client's memory file in bytes.
const LEAST_BLOCK: u64 = 1 << 30;
/// Maximum number of blocks that a client's memory file is divided into for mapping.
const BLOCKS: u64 = 32;

/// Mapped part of a file with guest memory.
#[derive(Debug)]
pub(super) struct ClientMemoryMapping {
    pub(super) memory: Arc<MappedFile>,
    pub(super) file: Arc<ClientMemoryFile>,
    /// Offset of the mapping's first byte in the file.
    pub(super) start: u64,
}

impl ClientMemoryMapping {
    fn serves(&self, identity: FileIdentity, offset: u64, size: u64, protection: MemoryProtection) -> bool {
        let writable = protection == MemoryProtection::ReadOnly || self.memory.is_writable();
        let inside = offset.checked_sub(self.start).and_then(|skipped| skipped.checked_add(size));
        let inside = inside.is_some_and(|end| end <= self.memory.len());
        self.file.identity == identity && writable && inside && !self.memory.poisoned()
    }
}

/// Memory mappings that one client's DMA regions share. Only threads that map and unmap take the lock.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientMemoryMappings(Arc<Mutex<Vec<Weak<ClientMemoryMapping>>>>);

impl ClientMemoryMappings {
    /// Returns an existing or new mapping that covers a part of a client's file.
    pub(super) fn get(
        &self,
        fd: OwnedFd,
        (offset, size): (u64, u64),
        protection: MemoryProtection,
        limits: DmaLimits,
    ) -> Result<Arc<ClientMemoryMapping>, MapDmaRegionError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|mapping| mapping.strong_count() > 0);
        let alive: Vec<Arc<ClientMemoryMapping>> = known.iter().filter_map(Weak::upgrade).collect();
        MappedFile::check(&fd, offset, size, protection)?;
        let identity = FileIdentity::of_memory(fd.as_fd()).map_err(FileMapError::System)?;
        if let Some(mapping) = alive.iter().find(|m| m.serves(identity, offset, size, protection)) {
            return Ok(Arc::clone(mapping));
        }
        if alive.len() >= limits.mappings {
            return Err(MapDmaRegionError::LimitReached);
        }
        let (memory, start) = MappedFile::map_around(fd.as_fd(), (offset, size), protection, block)?;
        let file = keep(fd, identity, &alive, limits.files)?;
        let mapping = Arc::new(ClientMemoryMapping { memory: Arc::new(memory), file, start });
        known.push(Arc::downgrade(&mapping));
        Ok(mapping)
    }
}

/// Returns the file of an existing mapping if it has the same memory, or else a new file: all mappings of a file share
/// one file descriptor.
fn keep(
    fd: OwnedFd,
    identity: FileIdentity,
    alive: &[Arc<ClientMemoryMapping>],
    most: usize,
) -> Result<Arc<ClientMemoryFile>, MapDmaRegionError> {
    let mut files: Vec<&Arc<ClientMemoryFile>> = Vec::with_capacity(most);
    for mapping in alive {
        if mapping.file.identity == identity {
            return Ok(Arc::clone(&mapping.file));
        }
        if !files.iter().any(|file| Arc::ptr_eq(file, &mapping.file)) {
            files.push(&mapping.file);
        }
    }
    if files.len() >= most {
        return Err(MapDmaRegionError::LimitReached);
    }
    Ok(Arc::new(ClientMemoryFile { fd, identity }))
}

/// Returns the block size in bytes for mapping a file of `size` bytes.
fn block(size: u64) -> u64 {
    (size / BLOCKS).checked_next_power_of_two().unwrap_or(LEAST_BLOCK).max(LEAST_BLOCK)
}

/// DMA region that a DMA table has admitted, and whose memory is not mapped yet.
#[derive(Debug)]
pub struct PendingDmaRegion {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) permissions: DmaPermissions,
    /// Offset in the file of the DMA region's first byte.
    pub(super) offset: u64,
    pub(super) mappings: ClientMemoryMappings,
    pub(super) limits: DmaLimits,
}

impl PendingDmaRegion {
    /// Maps the memory of an admitted region from the client's file. May block.
    ///
    /// # Errors
    /// The descriptor is unsuitable, or a limit is reached.
    pub fn map(self, fd: OwnedFd) -> Result<MappedDmaRegion, MapDmaRegionError> {
        let Self { first, last, permissions, offset, mappings, limits } = self;
        let size = last - first + 1;
        let mapping = mappings.get(fd, (offset, size), permissions.protection(), limits)?;
        let skip = offset - mapping.start;
        let backing = DmaRegionMemory::new(mapping, skip, size, permissions).ok_or(FileMapError::BadRange)?;
        Ok(MappedDmaRegion(DmaTableEntry { first, last, permissions, backing: Some(backing) }))
    }
}

/// DMA region with mapped memory, to be inserted into the DMA table that has admitted the region. Dropping the value
/// may block.
#[derive(Debug)]
#[must_use]
pub struct MappedDmaRegion(pub(super) DmaTableEntry);

/// DMA regions that were removed from their table and are out of the device's reach. Dropping the value unmaps their
/// memory and closes their files, which may block.
#[derive(Debug)]
#[must_use = "drop the unmapped region in a worker thread: munmap may take long"]
pub struct RemovedDmaRegions(pub(super) Vec<DmaTableEntry>);

impl RemovedDmaRegions {
    /// Returns true if none of the removed regions has memory, so that dropping them does not block.
    #[must_use]
    pub fn is_light(&self) -> bool {
        self.0.iter().all(|region| region.backing.is_none())
    }
}
