//! Shared memory that records unfinished descriptors ("Inflight I/O tracking" in the specification): its layout, and the
//! check of a file that a front end returns after a reconnection.
//!
//! A region of zeros records nothing. A back end that completes its chains in order needs no record: a split ring continues
//! at the used index, and the chains behind it are fetched again. Such a back end gives out zeros, and
//! [checks](InflightLayout::check) that a returned file has no record of another back end.

use alloc::vec;

use thiserror::Error;

/// Bytes of the header of a ring's region: `QueueRegionSplit` and `QueueRegionPacked`.
const SPLIT_HEADER: u64 = 16;
const PACKED_HEADER: u64 = 32;
/// Bytes of a descriptor's record: `DescStateSplit` and `DescStatePacked`. The first byte is 1 if the descriptor is unfinished.
const SPLIT_RECORD: u64 = 16;
const PACKED_RECORD: u64 = 32;
/// Bytes to which the region of each ring is aligned, so that no two rings share a cache line.
const LINE: u64 = 64;
/// Maximum bytes of a region's header.
const HEADER: usize = 32;
/// Offsets in a region's header.
const VERSION: usize = 8;
const DESCRIPTORS: usize = 10;
/// Bytes of records that are read at once.
const CHUNK: usize = 4096;

/// Reason for which a file with records of unfinished descriptors is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InflightError {
    /// The part of the file is too short for its rings.
    #[error("records of unfinished descriptors have {size} bytes (at least {needed} are needed)")]
    TooShort {
        /// Size in bytes of the part of the file.
        size: u64,
        /// Least size in bytes.
        needed: u64,
    },
    /// The file is none of memory, or is too short.
    #[error("records of unfinished descriptors must be in a memory file of at least {0} bytes")]
    Unreadable(u64),
    /// The records have another version than 1.
    #[error("ring {ring} has records of unfinished descriptors of version {version} (supported: 1)")]
    Version {
        /// Number of the ring.
        ring: u16,
        /// Version of the ring's region.
        version: u16,
    },
    /// The region has records for more descriptors than the request says.
    #[error("ring {ring} has records of {descriptors} descriptors (maximum: {maximum})")]
    Descriptors {
        /// Number of the ring.
        ring: u16,
        /// Number of recorded descriptors.
        descriptors: u16,
        /// Maximum number of recorded descriptors.
        maximum: u16,
    },
    /// Another back end has left unfinished descriptors.
    #[error("ring {ring} has unfinished descriptors of another back end: reset the device")]
    Unfinished {
        /// Number of the ring.
        ring: u16,
    },
}

/// Layout of the memory that records unfinished descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InflightLayout {
    queues: u16,
    queue_size: u16,
    packed: bool,
}

impl InflightLayout {
    /// Creates the layout for a number of rings with at most `queue_size` descriptors each.
    pub const fn new(queues: u16, queue_size: u16, packed: bool) -> Self {
        Self { queues, queue_size, packed }
    }

    /// Returns the size of the memory in bytes: at most 32 MiB and 2 KiB for 32 rings of 32,768 descriptors.
    pub fn size(self) -> u64 {
        u64::from(self.queues) * self.region().next_multiple_of(LINE)
    }

    /// Returns the bytes of a ring's region.
    fn region(self) -> u64 {
        let (header, record) = self.parts();
        header + u64::from(self.queue_size) * record
    }

    fn parts(self) -> (u64, u64) {
        if self.packed { (PACKED_HEADER, PACKED_RECORD) } else { (SPLIT_HEADER, SPLIT_RECORD) }
    }

    /// Checks that `size` bytes are enough for all rings, and that they have no record of an unfinished descriptor. `read`
    /// reads bytes at an offset from the memory's start, and returns false if it cannot. Each byte is read at most once.
    ///
    /// # Errors
    /// See [`InflightError`].
    pub fn check(self, size: u64, mut read: impl FnMut(u64, &mut [u8]) -> bool) -> Result<(), InflightError> {
        // The region of a ring is an equal share of the memory, so a back end may align it as it likes.
        let stride = size / u64::from(self.queues.max(1));
        if self.queues == 0 || stride < self.region() {
            return Err(InflightError::TooShort { size, needed: u64::from(self.queues) * self.region() });
        }
        (0..self.queues).try_for_each(|ring| self.check_ring(ring, u64::from(ring) * stride, &mut read))
    }

    fn check_ring(
        self,
        ring: u16,
        start: u64,
        read: &mut impl FnMut(u64, &mut [u8]) -> bool,
    ) -> Result<(), InflightError> {
        let mut get = |at: u64, into: &mut [u8]| {
            if read(at, into) { Ok(()) } else { Err(InflightError::Unreadable(at + into.len() as u64)) }
        };
        let (header_size, record) = self.parts();
        let mut header = [0; HEADER];
        get(start, &mut header[..header_size as usize])?;
        let field = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let (version, descriptors) = (field(VERSION), field(DESCRIPTORS));
        match version {
            0 => return Ok(()),
            1 => {}
            version => return Err(InflightError::Version { ring, version }),
        }
        if descriptors > self.queue_size {
            return Err(InflightError::Descriptors { ring, descriptors, maximum: self.queue_size });
        }
        let (mut at, end) = (start + header_size, start + header_size + u64::from(descriptors) * record);
        let mut chunk = vec![0; CHUNK];
        while at < end {
            let part = (end - at).min(CHUNK as u64) as usize;
            get(at, &mut chunk[..part])?;
            if chunk[..part].iter().step_by(record as usize).any(|unfinished| *unfinished != 0) {
                return Err(InflightError::Unfinished { ring });
            }
            at += part as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn check(layout: InflightLayout, memory: &[u8], size: u64) -> Result<(), InflightError> {
        layout.check(size, |at, into| {
            let part = memory.get(at as usize..).and_then(|rest| rest.get(..into.len()));
            part.is_some_and(|part| {
                into.copy_from_slice(part);
                true
            })
        })
    }

    /// Returns memory in which the second ring has a version and a number of descriptors.
    fn recorded(layout: InflightLayout, version: u8, descriptors: u8) -> (Vec<u8>, usize) {
        let (mut memory, second) = (vec![0; layout.size() as usize], layout.size() as usize / 2);
        (memory[second + VERSION], memory[second + DESCRIPTORS]) = (version, descriptors);
        (memory, second)
    }

    #[test]
    fn zeros_record_no_unfinished_descriptor() {
        for packed in [false, true] {
            let layout = InflightLayout::new(2, 256, packed);
            assert_eq!(check(layout, &vec![0; layout.size() as usize], layout.size()), Ok(()));
        }
        assert_eq!(InflightLayout::new(2, 256, false).size(), 2 * (16 + 256 * 16 + 48));
        assert_eq!(InflightLayout::new(32, 32_768, true).size(), 32 * (32 + 32_768 * 32 + 32));
    }

    #[test]
    fn unfinished_descriptor_of_any_ring_is_found() {
        for (packed, header, record) in [(false, 16, 16), (true, 32, 32)] {
            let layout = InflightLayout::new(2, 200, packed);
            for descriptor in [0, 1, 127, 128, 199] {
                let (mut memory, second) = recorded(layout, 1, 200);
                assert_eq!(check(layout, &memory, layout.size()), Ok(()));
                memory[second + header + descriptor * record] = 1;
                assert_eq!(check(layout, &memory, layout.size()), Err(InflightError::Unfinished { ring: 1 }));
            }
        }
    }

    #[test]
    fn invalid_headers_and_short_files_are_refused() {
        let layout = InflightLayout::new(2, 16, false);
        let (memory, _) = recorded(layout, 2, 16);
        let version = InflightError::Version { ring: 1, version: 2 };
        assert_eq!(check(layout, &memory, layout.size()), Err(version));
        let (memory, _) = recorded(layout, 1, 17);
        let descriptors = InflightError::Descriptors { ring: 1, descriptors: 17, maximum: 16 };
        assert_eq!(check(layout, &memory, layout.size()), Err(descriptors));
        let needed = 2 * (16 + 16 * 16);
        assert_eq!(
            check(layout, &memory, needed - 1),
            Err(InflightError::TooShort { size: needed - 1, needed })
        );
        assert!(matches!(check(layout, &memory[..100], layout.size()), Err(InflightError::Unreadable(_))));
        assert!(check(InflightLayout::new(0, 16, false), &memory, 4096).is_err());
    }

    #[test]
    fn inflight_memory_has_room_for_any_rings() {
        for (queue_size, packed) in (0..=u16::MAX).flat_map(|size| [(size, false), (size, true)]) {
            let record = if packed { 32 } else { 16 };
            let region = record + record * u64::from(queue_size);
            for queues in [0, 1, 2, 3, 31, 32, 255, 256, u16::MAX] {
                let size = InflightLayout::new(queues, queue_size, packed).size();
                let least = u64::from(queues) * region;
                assert!(
                    size.is_multiple_of(LINE) && size >= least && size < least + u64::from(queues) * LINE + 1
                );
            }
        }
    }

    #[test]
    fn inflight_records_are_read_inside_the_memory_and_once() {
        for (queues, queue_size) in (1..=3).flat_map(|queues| (0..=9).map(move |size| (queues, size))) {
            for (packed, size) in
                [false, true].into_iter().flat_map(|packed| (0..=1200).map(move |size| (packed, size)))
            {
                let mut seen = vec![false; size as usize];
                let result = InflightLayout::new(queues, queue_size, packed).check(size, |at, into| {
                    let bytes = &mut seen[at as usize..][..into.len()];
                    assert!(!bytes.contains(&true), "{at} is read twice");
                    bytes.fill(true);
                    into.fill(0);
                    // Each ring has version 1, and records of as many descriptors as are allowed.
                    if let Some(header) = into
                        .get_mut(VERSION..DESCRIPTORS + 2)
                        .filter(|_| at % (size / u64::from(queues)) == 0)
                    {
                        header.copy_from_slice(&[1, 0, queue_size as u8, 0]);
                    }
                    true
                });
                let record = if packed { 32 } else { 16 };
                let fits = size / u64::from(queues) >= record + record * u64::from(queue_size);
                assert_eq!(result.is_ok(), fits, "{queues} rings of {queue_size} in {size} bytes");
            }
        }
    }
}
