//! Parts of files that a front end shares: guest memory, the migration log, records of unfinished descriptors.

use super::error::{RegionError, RequestError};

/// Part of guest memory in one file. Ring descriptors contain guest-physical addresses; the front end's requests about
/// rings contain user addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRegion {
    /// First guest-physical address of the region.
    pub guest_address: u64,
    /// Size of the region in bytes.
    pub size: u64,
    /// First address of the region in the front end's process.
    pub user_address: u64,
    /// Offset of the region in its file in bytes.
    pub file_offset: u64,
}

impl MemoryRegion {
    /// Checks that the region is not empty, and that its guest-physical, user and file ranges do not wrap around or
    /// exceed their limits.
    ///
    /// # Errors
    /// [`RegionError::Empty`] or [`RegionError::Wraps`].
    pub fn check(&self) -> Result<(), RegionError> {
        if self.size == 0 {
            return Err(RegionError::Empty(self.guest_address));
        }
        let ends = [self.guest_address, self.user_address].map(|start| start.checked_add(self.size));
        if ends.contains(&None) || !fits_a_file(self.file_offset, self.size) {
            return Err(RegionError::Wraps(self.guest_address));
        }
        Ok(())
    }

    /// Returns true if a guest-physical or user address is in both regions. Both regions must be
    /// [checked](Self::check).
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let overlap = |a: u64, b: u64| a < b + other.size && b < a + self.size;
        overlap(self.guest_address, other.guest_address) || overlap(self.user_address, other.user_address)
    }

    /// Returns true if `other` is the same memory region for `REM_MEM_REG`, which ignores the offset in the file.
    pub(crate) fn is_same_memory(&self, other: &Self) -> bool {
        Self { file_offset: 0, ..*self } == Self { file_offset: 0, ..*other }
    }
}

/// Part of a file with the migration log: a bit for each page of guest memory, from guest address 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogArea {
    /// Size of the migration log in bytes.
    pub size: u64,
    /// Offset of the migration log in its file in bytes.
    pub offset: u64,
}

impl LogArea {
    /// Checks that the migration log is not empty, and that its part of the file does not wrap around.
    ///
    /// # Errors
    /// [`RequestError::LogArea`].
    pub fn check(&self) -> Result<(), RequestError> {
        if self.size == 0 || !fits_a_file(self.offset, self.size) {
            return Err(RequestError::LogArea { size: self.size, offset: self.offset });
        }
        Ok(())
    }
}

/// Part of a file that records the unfinished descriptors of all rings, in a layout that the back end defines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InflightArea {
    /// Size of the area in bytes; ignored in `GET_INFLIGHT_FD`.
    pub size: u64,
    /// Offset of the area in its file in bytes; ignored in `GET_INFLIGHT_FD`.
    pub offset: u64,
    /// Number of rings whose unfinished descriptors are recorded.
    pub queues: u16,
    /// Maximum number of unfinished descriptors recorded for each ring.
    pub queue_size: u16,
}

impl InflightArea {
    /// Checks that number and size of the rings with recorded descriptors are not 0 and within the device's limits.
    ///
    /// # Errors
    /// [`RequestError::InflightArea`] if a number is 0 or above its limit.
    pub(crate) fn check_rings(&self, rings: u32, ring_size: u32) -> Result<(), RequestError> {
        let (queues, size) = (u32::from(self.queues), u32::from(self.queue_size));
        if queues == 0 || queues > rings || size == 0 || size > ring_size {
            return Err(self.error());
        }
        Ok(())
    }

    /// Checks that the part of the file with unfinished descriptors is not empty and does not wrap around.
    ///
    /// # Errors
    /// [`RequestError::InflightArea`].
    pub(crate) fn check_extent(&self) -> Result<(), RequestError> {
        if self.size == 0 || !fits_a_file(self.offset, self.size) { Err(self.error()) } else { Ok(()) }
    }

    fn error(&self) -> RequestError {
        RequestError::InflightArea { queues: self.queues, queue_size: self.queue_size }
    }
}

/// Returns true if a part of a file ends below 2^63, the maximum offset of a file.
fn fits_a_file(offset: u64, size: u64) -> bool {
    offset.checked_add(size).is_some_and(|end| end <= i64::MAX as u64)
}
