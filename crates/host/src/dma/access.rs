//! The frame path: finding the memory behind an address, and moving bytes.
//!
//! Nearly every access lies in the region the last one hit and is one comparison and one copy. An access that
//! crosses from one region into an adjacent one is checked as a whole first, then moved piece by piece.

use super::{DmaTable, Region};
use crate::memory::{AccessError, MappedFile, done_last};

const WORD: usize = size_of::<u64>();

/// An access the device was not permitted. Nothing was moved.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("address {iova:#x}: {kind}")]
pub struct DmaFault {
    /// The first address that was not permitted.
    pub iova: u64,
    /// Why.
    pub kind: FaultKind,
}

/// What is wrong with an address.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum FaultKind {
    /// In no region.
    #[error("not mapped")]
    Unmapped,
    /// In a region that came without memory.
    #[error("in a region that is not shared")]
    NotShared,
    /// In a region whose permissions exclude this access.
    #[error("not permitted by the region")]
    Forbidden,
    /// The access runs past the last address.
    #[error("runs past the end of the address space")]
    Wraps,
}

#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
}

impl Direction {
    #[inline]
    fn is_permitted(self, region: &Region) -> bool {
        match self {
            Self::Read => region.permissions.read,
            Self::Write => region.permissions.write,
        }
    }
}

/// The part of an access that lies in one region.
struct Piece<'table> {
    memory: &'table MappedFile,
    offset: u64,
    len: usize,
}

impl DmaTable {
    /// Fetches `buffer.len()` bytes from `iova` on.
    ///
    /// # Errors
    /// [`DmaFault`]; `buffer` is then as it was.
    #[inline]
    pub fn read(&self, iova: u64, buffer: &mut [u8]) -> Result<(), DmaFault> {
        match self.whole(iova, buffer.len(), Direction::Read) {
            Some((memory, offset)) => memory.read(offset, buffer).map_err(|error| fault(iova, error)),
            None => self.read_across(iova, buffer),
        }
    }

    /// Stores `bytes` from `iova` on. The order of the words of short aligned writes is that of
    /// [`MappedFile::write`].
    ///
    /// # Errors
    /// [`DmaFault`]; memory is then as it was.
    #[inline]
    pub fn write(&self, iova: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        match self.whole(iova, bytes.len(), Direction::Write) {
            Some((memory, offset)) => memory.write(offset, bytes).map_err(|error| fault(iova, error)),
            None => self.write_across(iova, bytes),
        }
    }

    /// Stores descriptors of `size` bytes from `iova` on, in the order of [`MappedFile::write_descriptors`].
    ///
    /// # Errors
    /// [`DmaFault`]; descriptors before the one at fault may have been stored, of that one nothing.
    #[inline]
    pub fn write_descriptors(&self, iova: u64, bytes: &[u8], size: usize) -> Result<(), DmaFault> {
        match self.whole(iova, bytes.len(), Direction::Write) {
            Some((memory, offset)) => {
                memory.write_descriptors(offset, bytes, size).map_err(|error| fault(iova, error))
            }
            None => self.write_descriptors_across(iova, bytes, size),
        }
    }

    /// Fetches the line at `iova` into the cache, to be written if `writes`. Does nothing outside the region that was accessed
    /// last.
    #[inline]
    pub fn prefetch(&self, iova: u64, writes: bool) {
        let direction = if writes { Direction::Write } else { Direction::Read };
        if let Some((memory, offset)) = self.in_last_hit(iova, 1, direction) {
            memory.prefetch(offset, writes);
        }
    }

    /// Descriptor by descriptor, and of one that lies across regions word by word.
    #[cold]
    fn write_descriptors_across(&self, iova: u64, bytes: &[u8], size: usize) -> Result<(), DmaFault> {
        let mut at = iova;
        for descriptor in bytes.chunks(size.max(WORD)) {
            match self.whole(at, descriptor.len(), Direction::Write) {
                Some((memory, offset)) => {
                    memory.write_descriptors(offset, descriptor, size).map_err(|error| fault(at, error))?;
                }
                None => {
                    self.check(at, descriptor.len(), Direction::Write)?;
                    let word = |word: usize| (at.wrapping_add((word * WORD) as u64), word * WORD);
                    let mut words = done_last(descriptor.len() / WORD).map(word);
                    words.try_for_each(|(at, from)| self.write(at, &descriptor[from..from + WORD]))?;
                }
            }
            at = at.wrapping_add(descriptor.len() as u64);
        }
        Ok(())
    }

    /// Where a range is that lies in one region, and is permitted there: in the region that was hit last, or in another, which
    /// then is the one.
    #[inline]
    fn whole(&self, iova: u64, len: usize, direction: Direction) -> Option<(&MappedFile, u64)> {
        self.in_last_hit(iova, len, direction).or_else(|| {
            self.region_at(iova)?;
            self.in_last_hit(iova, len, direction)
        })
    }

    /// Where a range is that lies in the region that was hit last, and is permitted there.
    #[inline]
    fn in_last_hit(&self, iova: u64, len: usize, direction: Direction) -> Option<(&MappedFile, u64)> {
        let region = self.regions.get(self.last_hit.get())?;
        // Both from the region's start, and one less than the bytes: a region may be as large as the address space.
        let (skipped, last) = (iova.wrapping_sub(region.first), region.last - region.first);
        let inside = skipped <= last && (len as u64).checked_sub(1)? <= last - skipped;
        if !inside || !direction.is_permitted(region) {
            return None;
        }
        region.backing.as_ref().map(|backing| (&backing.mapping.memory, backing.skip + skipped))
    }

    #[cold]
    fn read_across(&self, iova: u64, buffer: &mut [u8]) -> Result<(), DmaFault> {
        self.check(iova, buffer.len(), Direction::Read)?;
        let (mut at, mut rest) = (iova, buffer);
        while !rest.is_empty() {
            let piece = self.piece(at, rest.len(), Direction::Read)?;
            let (now, later) = rest.split_at_mut(piece.len);
            piece.memory.read(piece.offset, now).map_err(|error| fault(at, error))?;
            // May run one past the last address, with nothing left to do there.
            at = at.wrapping_add(piece.len as u64);
            rest = later;
        }
        Ok(())
    }

    #[cold]
    fn write_across(&self, iova: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.check(iova, bytes.len(), Direction::Write)?;
        let (mut at, mut rest) = (iova, bytes);
        while !rest.is_empty() {
            let piece = self.piece(at, rest.len(), Direction::Write)?;
            let (now, later) = rest.split_at(piece.len);
            piece.memory.write(piece.offset, now).map_err(|error| fault(at, error))?;
            at = at.wrapping_add(piece.len as u64);
            rest = later;
        }
        Ok(())
    }

    /// Whether all of a range is permitted.
    fn check(&self, iova: u64, len: usize, direction: Direction) -> Result<(), DmaFault> {
        let (mut at, mut rest) = (iova, len);
        while rest > 0 {
            let piece = self.piece(at, rest, direction)?;
            rest -= piece.len;
            at = at.wrapping_add(piece.len as u64);
        }
        Ok(())
    }

    /// The first part of a range that lies in one region; `len` is not 0.
    fn piece(&self, iova: u64, len: usize, direction: Direction) -> Result<Piece<'_>, DmaFault> {
        let fault = |kind| DmaFault { iova, kind };
        if iova.checked_add(len as u64 - 1).is_none() {
            return Err(fault(FaultKind::Wraps));
        }
        let region = self.region_at(iova).ok_or(fault(FaultKind::Unmapped))?;
        if !direction.is_permitted(region) {
            return Err(fault(FaultKind::Forbidden));
        }
        let backing = region.backing.as_ref().ok_or(fault(FaultKind::NotShared))?;
        // A region with memory is no larger than the address space, so its rest fits in `usize`.
        let rest = usize::try_from(region.last - iova).map_or(usize::MAX, |rest| rest.saturating_add(1));
        let offset = backing.skip + (iova - region.first);
        Ok(Piece { memory: &backing.mapping.memory, offset, len: len.min(rest) })
    }

    fn region_at(&self, iova: u64) -> Option<&Region> {
        let index = self.regions.partition_point(|region| region.last < iova);
        let region = self.regions.get(index).filter(|region| region.holds(iova))?;
        self.last_hit.set(index);
        Some(region)
    }
}

#[cold]
fn fault(iova: u64, error: AccessError) -> DmaFault {
    let kind = match error {
        AccessError::OutOfRange { .. } => FaultKind::Unmapped,
        AccessError::ReadOnly => FaultKind::Forbidden,
    };
    DmaFault { iova, kind }
}
