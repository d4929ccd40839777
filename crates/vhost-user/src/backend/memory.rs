//! Table of the guest's memory regions, which translates guest-physical and user addresses.
//!
//! A translation takes a range and never an address alone: a range that begins in a region and ends outside of it was
//! a way out of the guest's memory in several back ends (CVE-2018-1059).

use alloc::vec::Vec;

use crate::message::{MemoryRegion, RegionError};

/// Part of a guest-physical range that lies in one memory region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRegionPiece {
    /// Memory region that holds the part.
    pub region: MemoryRegion,
    /// Offset of the part from the region's first byte.
    pub offset: u64,
    /// Bytes of the part, not 0: fewer than requested if the range continues beyond the region.
    pub length: u64,
}

/// Memory regions of a guest, which do not overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryTable {
    /// Memory regions, by guest-physical address.
    regions: Vec<MemoryRegion>,
    limit: usize,
}

impl MemoryTable {
    /// Creates a table without memory regions, for at most `limit` ones.
    pub fn new(limit: usize) -> Self {
        Self { regions: Vec::new(), limit }
    }

    /// Returns the regions by guest-physical address.
    pub fn regions(&self) -> &[MemoryRegion] {
        &self.regions
    }

    /// Returns the part of the guest-physical range from `address` that lies in the address's region. Returns `None` if
    /// no region has the address, or the range is empty or wraps around. The rest of a range that crosses a region's end
    /// is looked up on its own: it may be in another region, or in none.
    pub fn piece(&self, address: u64, length: u64) -> Option<MemoryRegionPiece> {
        address.checked_add(length)?;
        let after = self.regions.partition_point(|region| region.guest_address <= address);
        let region = self.regions[..after].last()?;
        let offset = address - region.guest_address;
        let length = length.min(region.size.checked_sub(offset)?);
        (length > 0).then_some(MemoryRegionPiece { region: *region, offset, length })
    }

    /// Returns the guest-physical address of the `length` bytes at a user address. Returns `None` unless one region
    /// holds the whole range.
    pub fn user_to_guest(&self, address: u64, length: u64) -> Option<u64> {
        let inside = |region: &&MemoryRegion| {
            let offset = address.checked_sub(region.user_address)?;
            (offset < region.size && length <= region.size - offset).then_some(offset)
        };
        let region = self.regions.iter().find(|region| inside(region).is_some())?;
        Some(region.guest_address + inside(&region)?)
    }

    /// Adds a memory region to the table.
    ///
    /// # Errors
    /// The region is invalid or overlaps another, or the table is full. The table is unchanged.
    pub fn add(&mut self, region: MemoryRegion) -> Result<(), RegionError> {
        self.check_addition(&region)?;
        let at = self.regions.partition_point(|present| present.guest_address < region.guest_address);
        self.regions.insert(at, region);
        Ok(())
    }

    /// Checks that [`add`](Self::add) would add a memory region.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub fn check_addition(&self, region: &MemoryRegion) -> Result<(), RegionError> {
        region.check()?;
        if self.regions.iter().any(|present| present.overlaps(region)) {
            return Err(RegionError::Overlaps(region.guest_address));
        }
        if self.regions.len() >= self.limit {
            return Err(RegionError::TooMany(self.limit));
        }
        Ok(())
    }

    /// Removes the region with the guest address, user address and size of `region` from the table, and returns the
    /// removed region.
    ///
    /// # Errors
    /// There is no such region.
    pub fn remove(&mut self, region: &MemoryRegion) -> Result<MemoryRegion, RegionError> {
        let found = self.regions.iter().position(|present| present.is_same_memory(region));
        found.map(|at| self.regions.remove(at)).ok_or(RegionError::Missing(region.guest_address))
    }

    /// Returns true if the table has exactly this region.
    pub fn has(&self, region: &MemoryRegion) -> bool {
        self.regions.contains(region)
    }

    /// Returns true if the table has a region with the guest address, user address and size of `region`.
    pub fn has_memory(&self, region: &MemoryRegion) -> bool {
        self.regions.iter().any(|present| present.is_same_memory(region))
    }

    /// Returns a table of these regions, with the same limit on their number as this table.
    ///
    /// # Errors
    /// A region is invalid or overlaps another, or there are too many.
    pub fn with(&self, regions: &[MemoryRegion]) -> Result<Self, RegionError> {
        let mut table = Self::new(self.limit);
        regions.iter().try_for_each(|region| table.add(*region))?;
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> MemoryTable {
        let mut table = MemoryTable::new(3);
        let region = |guest_address, size, user_address| MemoryRegion {
            guest_address,
            size,
            user_address,
            file_offset: 0,
        };
        table.add(region(0x10_0000, 0x10_0000, 0x7f00_0010_0000)).unwrap();
        table.add(region(0, 0xa_0000, 0x7f00_0000_0000)).unwrap();
        table.add(region(0x20_0000, 0x1000, 0x7e00_0000_0000)).unwrap();
        table
    }

    #[test]
    fn guest_address_range_ends_at_the_end_of_its_memory_region() {
        let table = table();
        let piece = |address, length| table.piece(address, length).map(|piece| (piece.offset, piece.length));
        assert_eq!(piece(0x9_fff0, 0x10), Some((0x9_fff0, 0x10)));
        assert_eq!(piece(0x9_fff0, 0x11), Some((0x9_fff0, 0x10)), "the rest is in a hole");
        assert_eq!(piece(0x1f_fff0, 0x20), Some((0xf_fff0, 0x10)), "the rest is in the next region");
        assert_eq!(piece(0x20_0000, 0x10), Some((0, 0x10)));
        for (address, length) in
            [(0xa_0000, 1), (0xf_ffff, 1), (0x20_1000, 1), (0, 0), (1, u64::MAX), (u64::MAX, 1)]
        {
            assert_eq!(piece(address, length), None, "{address:#x}");
        }
    }

    #[test]
    fn user_address_range_must_lie_in_one_memory_region() {
        let table = table();
        assert_eq!(table.user_to_guest(0x7f00_0010_0040, 0x1000), Some(0x10_0040));
        assert_eq!(table.user_to_guest(0x7e00_0000_0ff0, 0x10), Some(0x20_0ff0));
        assert_eq!(table.user_to_guest(0x7e00_0000_0ff0, 0x11), None);
        assert_eq!(table.user_to_guest(0x7e00_0000_0ff0, u64::MAX), None);
        assert_eq!(table.user_to_guest(0x7e00_0000_1000, 0), None);
        assert_eq!(table.user_to_guest(0x1234, 1), None);
    }

    #[test]
    fn memory_region_that_overlaps_wraps_or_is_empty_is_refused() {
        let mut table = table();
        let region = |guest_address, size, user_address| MemoryRegion {
            guest_address,
            size,
            user_address,
            file_offset: 0,
        };
        let first = 0x9_f000;
        assert_eq!(table.add(region(first, 0x1001, 0x1000)), Err(RegionError::Overlaps(first)));
        assert_eq!(
            table.add(region(0x30_0000, 0x1000, 0x7e00_0000_0fff)),
            Err(RegionError::Overlaps(0x30_0000))
        );
        assert_eq!(table.add(region(0x30_0000, 0, 0x1000)), Err(RegionError::Empty(0x30_0000)));
        let last = u64::MAX - 0xfff;
        assert_eq!(table.add(region(last, 0x1000, 0x1000)), Err(RegionError::Wraps(last)));
        assert_eq!(table.add(region(0x1000_0000, 0x1000, last)), Err(RegionError::Wraps(0x1000_0000)));
        let wrapping = MemoryRegion { file_offset: i64::MAX as u64, ..region(0x30_0000, 1, 1) };
        assert_eq!(table.add(wrapping), Err(RegionError::Wraps(0x30_0000)));
        assert_eq!(table.add(region(0x30_0000, 0x1000, 0x1000)), Err(RegionError::TooMany(3)));
        assert_eq!(table.regions().len(), 3);
    }
}
