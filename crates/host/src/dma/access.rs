//! Device access to guest memory: translates an I/O virtual address and moves bytes.
//!
//! Nearly every access lies in the region the last one hit and is one comparison and one copy. An access that
//! crosses from one region into an adjacent one is checked as a whole first, then moved piece by piece.

use super::{DmaFault, DmaFaultKind, DmaTable, DmaTableEntry};
use crate::memory::{MappedGuestMemory, MemoryAccessError, done_last};

const WORD: usize = size_of::<u64>();

#[derive(Clone, Copy)]
pub(super) enum DmaDirection {
    Read,
    Write,
}

impl DmaDirection {
    #[inline]
    pub(super) fn is_permitted(self, region: &DmaTableEntry) -> bool {
        match self {
            Self::Read => region.permissions.read,
            Self::Write => region.permissions.write,
        }
    }
}

/// Part of a device's access to guest memory that lies in one DMA region.
struct DmaRegionAccess<'table> {
    memory: &'table MappedGuestMemory,
    offset: u64,
    len: usize,
}

impl DmaTable {
    /// Reads `buffer.len()` bytes of guest memory at the I/O virtual address `iova`.
    ///
    /// # Errors
    /// [`DmaFault`]; `buffer` is then unchanged.
    #[inline]
    pub fn read(&self, iova: u64, buffer: &mut [u8]) -> Result<(), DmaFault> {
        match self.last_hit(iova, DmaDirection::Read) {
            Some((memory, offset)) if memory.read(offset, buffer).is_ok() => Ok(()),
            _ => self.read_elsewhere(iova, buffer),
        }
    }

    /// Writes `bytes` to guest memory at `iova`. Short aligned writes store their words in the order of
    /// [`MappedFile::write`](crate::memory::MappedFile::write).
    ///
    /// # Errors
    /// [`DmaFault`]; memory is then unchanged.
    #[inline]
    pub fn write(&self, iova: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        let written = match self.last_hit(iova, DmaDirection::Write) {
            Some((memory, offset)) if memory.write(offset, bytes).is_ok() => Ok(()),
            _ => self.write_elsewhere(iova, bytes),
        };
        self.written(iova, bytes.len());
        written
    }

    /// Writes consecutive ring descriptors of `size` bytes (16 or 32) at `iova`. Of each descriptor the second word is
    /// written last.
    ///
    /// # Errors
    /// [`DmaFault`]; descriptors before the faulting one may have been stored, the faulting one is not.
    #[inline]
    pub fn write_descriptors(&self, iova: u64, bytes: &[u8], size: usize) -> Result<(), DmaFault> {
        let written = match self.last_hit(iova, DmaDirection::Write) {
            Some((memory, offset)) if memory.write_descriptors(offset, bytes, size).is_ok() => Ok(()),
            _ => self.write_descriptors_elsewhere(iova, bytes, size),
        };
        // After a fault too: descriptors before the faulting one may have been stored.
        self.written(iova, bytes.len());
        written
    }

    /// Prefetches the cache lines of `length` bytes of guest memory at `iova`, for writing if `writes`, up to a limit.
    /// Does nothing for an address outside the DMA region that was accessed last.
    #[inline]
    pub fn prefetch(&self, (iova, length): (u64, usize), writes: bool) {
        let direction = if writes { DmaDirection::Write } else { DmaDirection::Read };
        if let Some((memory, offset)) = self.last_hit(iova, direction) {
            memory.prefetch((offset, length), writes);
        }
    }

    /// Returns the mapped memory of the last accessed DMA region and the offset there of an I/O virtual address. The
    /// region must start at or before the address and permit the access. The memory checks the offset against its end.
    #[inline]
    fn last_hit(&self, iova: u64, direction: DmaDirection) -> Option<(&MappedGuestMemory, u64)> {
        let region = self.regions.get(self.last_hit.get())?;
        if !direction.is_permitted(region) {
            return None;
        }
        // An address before the region's first is far beyond its last.
        Some((region.backing.as_ref()?.view(), iova.wrapping_sub(region.first)))
    }

    /// Reads guest memory that is not in the last accessed DMA region, or that crosses regions.
    #[cold]
    #[inline(never)]
    fn read_elsewhere(&self, iova: u64, buffer: &mut [u8]) -> Result<(), DmaFault> {
        match self.hit(iova, DmaDirection::Read) {
            Some((memory, offset)) if memory.read(offset, buffer).is_ok() => Ok(()),
            _ => self.read_across(iova, buffer),
        }
    }

    #[cold]
    #[inline(never)]
    fn write_elsewhere(&self, iova: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        match self.hit(iova, DmaDirection::Write) {
            Some((memory, offset)) if memory.write(offset, bytes).is_ok() => Ok(()),
            _ => self.write_across(iova, bytes),
        }
    }

    /// Writes ring descriptors one by one to guest memory that is not in the last accessed DMA region, or that crosses
    /// regions. A descriptor that crosses regions is written word by word.
    #[cold]
    #[inline(never)]
    fn write_descriptors_elsewhere(&self, iova: u64, bytes: &[u8], size: usize) -> Result<(), DmaFault> {
        let mut at = iova;
        for descriptor in bytes.chunks(size.max(WORD)) {
            match self.hit(at, DmaDirection::Write) {
                Some((memory, offset)) if memory.write_descriptors(offset, descriptor, size).is_ok() => {}
                _ => {
                    self.check(at, descriptor.len(), DmaDirection::Write)?;
                    let word = |word: usize| (at.wrapping_add((word * WORD) as u64), word * WORD);
                    let mut words = done_last(descriptor.len() / WORD).map(word);
                    words.try_for_each(|(at, from)| self.write(at, &descriptor[from..from + WORD]))?;
                }
            }
            at = at.wrapping_add(descriptor.len() as u64);
        }
        Ok(())
    }

    /// Returns the mapped memory that holds an I/O virtual address, and the address's offset there. The address's DMA
    /// region becomes the last accessed one.
    fn hit(&self, iova: u64, direction: DmaDirection) -> Option<(&MappedGuestMemory, u64)> {
        self.region_at(iova)?;
        self.last_hit(iova, direction)
    }

    #[cold]
    fn read_across(&self, iova: u64, buffer: &mut [u8]) -> Result<(), DmaFault> {
        self.check(iova, buffer.len(), DmaDirection::Read)?;
        let (mut at, mut rest) = (iova, buffer);
        while !rest.is_empty() {
            let piece = self.piece(at, rest.len(), DmaDirection::Read)?;
            let (now, later) = rest.split_at_mut(piece.len);
            piece.memory.read(piece.offset, now).map_err(|error| fault(at, error))?;
            // The address may wrap to 0 after the last byte; then nothing is left to read.
            at = at.wrapping_add(piece.len as u64);
            rest = later;
        }
        Ok(())
    }

    #[cold]
    fn write_across(&self, iova: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.check(iova, bytes.len(), DmaDirection::Write)?;
        let (mut at, mut rest) = (iova, bytes);
        while !rest.is_empty() {
            let piece = self.piece(at, rest.len(), DmaDirection::Write)?;
            let (now, later) = rest.split_at(piece.len);
            piece.memory.write(piece.offset, now).map_err(|error| fault(at, error))?;
            at = at.wrapping_add(piece.len as u64);
            rest = later;
        }
        Ok(())
    }

    /// Checks that the device may access a whole range of I/O virtual addresses.
    fn check(&self, iova: u64, len: usize, direction: DmaDirection) -> Result<(), DmaFault> {
        let (mut at, mut rest) = (iova, len);
        while rest > 0 {
            let piece = self.piece(at, rest, direction)?;
            rest -= piece.len;
            at = at.wrapping_add(piece.len as u64);
        }
        Ok(())
    }

    /// Returns the part of a range of I/O virtual addresses, from its start, that lies in one DMA region. `len` is not 0.
    fn piece(&self, iova: u64, len: usize, direction: DmaDirection) -> Result<DmaRegionAccess<'_>, DmaFault> {
        let fault = |kind| DmaFault { iova, kind };
        if iova.checked_add(len as u64 - 1).is_none() {
            return Err(fault(DmaFaultKind::Wraps));
        }
        let region = self.region_at(iova).ok_or(fault(DmaFaultKind::Unmapped))?;
        if !direction.is_permitted(region) {
            return Err(fault(DmaFaultKind::Forbidden));
        }
        let backing = region.backing.as_ref().ok_or(fault(DmaFaultKind::NotShared))?;
        // A region with memory is no larger than the address space, so its rest fits in `usize`.
        let rest = usize::try_from(region.last - iova).map_or(usize::MAX, |rest| rest.saturating_add(1));
        Ok(DmaRegionAccess { memory: backing.view(), offset: iova - region.first, len: len.min(rest) })
    }

    fn region_at(&self, iova: u64) -> Option<&DmaTableEntry> {
        let index = self.regions.partition_point(|region| region.last < iova);
        let region = self.regions.get(index).filter(|region| region.holds(iova))?;
        self.last_hit.set(index);
        Some(region)
    }
}

#[cold]
fn fault(iova: u64, error: MemoryAccessError) -> DmaFault {
    let kind = match error {
        MemoryAccessError::OutOfRange { .. } => DmaFaultKind::Unmapped,
        MemoryAccessError::ReadOnly => DmaFaultKind::Forbidden,
    };
    DmaFault { iova, kind }
}
