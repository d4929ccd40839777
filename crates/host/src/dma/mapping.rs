//! The mappings behind one client's regions. Regions of the same file share mappings, however the client cuts its memory
//! up: a guest behind an IOMMU maps page by page, and would use up its mappings otherwise.
//!
//! So a mapping is larger than the region that first needs it: it has the whole blocks of the file that hold the region.
//! What the device may reach is decided by regions alone. A mapping goes when its last region does.
//!
//! Left out: the addresses of regions. And who may take how long: everything here may be held up, and belongs on a
//! [`Worker`](crate::worker::Worker).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::region::{Backing, Region};
use super::{DmaLimits, MapRegionError, Permissions};
use crate::memory::{FileIdentity, MapError, MappedFile, Protection};

/// Bytes of a file that are mapped together, at least, and into how many blocks a large file is cut.
const LEAST_BLOCK: u64 = 1 << 30;
const BLOCKS: u64 = 32;

/// A client's descriptor, kept once for all mappings of the file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) fd: OwnedFd,
    identity: FileIdentity,
}

/// A part of a file in memory.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) memory: Arc<MappedFile>,
    pub(super) file: Arc<File>,
    /// Offset in the file of the first byte mapped.
    pub(super) start: u64,
}

impl Mapping {
    fn serves(&self, identity: FileIdentity, offset: u64, size: u64, protection: Protection) -> bool {
        let writable = protection == Protection::ReadOnly || self.memory.is_writable();
        let inside = offset.checked_sub(self.start).and_then(|skipped| skipped.checked_add(size));
        let inside = inside.is_some_and(|end| end <= self.memory.len());
        self.file.identity == identity && writable && inside && !self.memory.poisoned()
    }
}

/// The mappings of one client. Only whoever maps and unmaps ever waits for the lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings(Arc<Mutex<Vec<Weak<Mapping>>>>);

impl Mappings {
    /// The mapping that serves this part of a file: one that there is, or a new one.
    fn get(
        &self,
        fd: OwnedFd,
        (offset, size): (u64, u64),
        protection: Protection,
        limits: DmaLimits,
    ) -> Result<Arc<Mapping>, MapRegionError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|mapping| mapping.strong_count() > 0);
        let alive: Vec<Arc<Mapping>> = known.iter().filter_map(Weak::upgrade).collect();
        MappedFile::check(&fd, offset, size, protection)?;
        let identity = FileIdentity::of_memory(fd.as_fd()).map_err(MapError::System)?;
        if let Some(mapping) = alive.iter().find(|m| m.serves(identity, offset, size, protection)) {
            return Ok(Arc::clone(mapping));
        }
        if alive.len() >= limits.mappings {
            return Err(MapRegionError::LimitReached);
        }
        let (memory, start) = MappedFile::map_around(fd.as_fd(), (offset, size), protection, block)?;
        let file = keep(fd, identity, &alive, limits.files)?;
        let mapping = Arc::new(Mapping { memory: Arc::new(memory), file, start });
        known.push(Arc::downgrade(&mapping));
        Ok(mapping)
    }
}

/// One descriptor is enough for all mappings of a file.
fn keep(
    fd: OwnedFd,
    identity: FileIdentity,
    alive: &[Arc<Mapping>],
    most: usize,
) -> Result<Arc<File>, MapRegionError> {
    let mut files: Vec<&Arc<File>> = Vec::with_capacity(most);
    for mapping in alive {
        if mapping.file.identity == identity {
            return Ok(Arc::clone(&mapping.file));
        }
        if !files.iter().any(|file| Arc::ptr_eq(file, &mapping.file)) {
            files.push(&mapping.file);
        }
    }
    if files.len() >= most {
        return Err(MapRegionError::LimitReached);
    }
    Ok(Arc::new(File { fd, identity }))
}

/// Bytes of a block in a file of `size` bytes.
fn block(size: u64) -> u64 {
    (size / BLOCKS).checked_next_power_of_two().unwrap_or(LEAST_BLOCK).max(LEAST_BLOCK)
}

/// A region that a table has admitted, and whose memory is not mapped yet.
#[derive(Debug)]
pub struct PendingRegion {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) permissions: Permissions,
    /// Offset in the file of the first byte.
    pub(super) offset: u64,
    pub(super) mappings: Mappings,
    pub(super) limits: DmaLimits,
}

impl PendingRegion {
    /// Maps the memory of the region, which is in this file. May take long.
    ///
    /// # Errors
    /// The descriptor cannot serve, or a limit is reached.
    pub fn map(self, fd: OwnedFd) -> Result<MappedRegion, MapRegionError> {
        let Self { first, last, permissions, offset, mappings, limits } = self;
        let protection = if permissions.write { Protection::ReadWrite } else { Protection::ReadOnly };
        let size = last - first + 1;
        let mapping = mappings.get(fd, (offset, size), protection, limits)?;
        let skip = offset - mapping.start;
        let backing = Backing::new(mapping, skip, size, permissions).ok_or(MapError::BadRange)?;
        Ok(MappedRegion(Region { first, last, permissions, backing: Some(backing) }))
    }
}

/// A region whose memory is mapped, for the table that has admitted it. Dropping it may take long.
#[derive(Debug)]
#[must_use]
pub struct MappedRegion(pub(super) Region);

/// Regions that are in no table any more. Nothing of them can be reached; dropping them unmaps their memory and closes
/// their files, which may take long.
#[derive(Debug)]
#[must_use = "have a worker drop it: that may take long"]
pub struct RemovedRegions(pub(super) Vec<Region>);

impl RemovedRegions {
    /// Whether none of them has memory, so that dropping them takes no time.
    #[must_use]
    pub fn is_light(&self) -> bool {
        self.0.iter().all(|region| region.backing.is_none())
    }
}
