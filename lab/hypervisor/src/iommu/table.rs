//! IOMMU page tables of a domain: four levels of 512 entries, 48 bits, leaves of 4 KiB and 2 MiB (VT-d 3.7).
//! Leaves of 1 GiB, memory types, accessed and dirty bits are not supported.

use super::{DmaTranslation, IommuAccessKind, IommuFaultReason};
use alloc::boxed::Box;
use alloc::vec::Vec;
use pcie::Iova;

/// Number of address bits that the IOMMU translates.
pub(super) const WIDTH: u32 = 48;
/// Number of levels of IOMMU page tables; the first is indexed by address bits 47:39.
const LEVELS: u32 = 4;
/// Page-table entry bit: devices may read the page.
const READ: u64 = 1;
/// Page-table entry bit: devices may write the page.
const WRITE: u64 = 2;
/// Page-table entry bit of the third level: the entry maps a 2 MiB page.
const LARGE: u64 = 1 << 7;
/// Page-table entry bits that hold a page's address or a table's index.
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Size of a page that an IOMMU page-table entry maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IommuPageSize {
    /// IOMMU page of 4 KiB.
    Small,
    /// IOMMU page of 2 MiB.
    Large,
}

impl IommuPageSize {
    /// Returns the IOMMU page's size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        1 << self.shift()
    }

    pub(super) const fn shift(self) -> u32 {
        match self {
            IommuPageSize::Small => 12,
            IommuPageSize::Large => 21,
        }
    }
}

/// Rights of a domain's devices to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmaRights {
    /// The domain's devices may read the page.
    pub read: bool,
    /// The domain's devices may write the page.
    pub write: bool,
}

impl DmaRights {
    /// Rights to read and write the page.
    pub const ALL: Self = Self { read: true, write: true };
    /// Right to read the page only, as for a transmit buffer.
    pub const READ: Self = Self { read: true, write: false };

    fn bits(self) -> u64 {
        let bit = |allowed, bit| if allowed { bit } else { 0 };
        bit(self.read, READ) | bit(self.write, WRITE)
    }

    pub(super) fn allow(self, access: IommuAccessKind) -> bool {
        match access {
            IommuAccessKind::Read => self.read,
            IommuAccessKind::Write => self.write,
        }
    }
}

/// Page that a domain's IOMMU page tables map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IommuPage {
    /// Host physical address of the page's first byte.
    pub host: u64,
    /// Size of the page that the IOMMU maps.
    pub size: IommuPageSize,
    /// DMA accesses that the mapping permits to the domain's devices.
    pub rights: DmaRights,
}

impl IommuPage {
    pub(super) fn translation(self, iova: Iova, loads: u8) -> DmaTranslation {
        let inside = iova & (self.size.bytes() - 1);
        DmaTranslation { address: self.host | inside, room: self.size.bytes() - inside, loads }
    }
}

/// Error of mapping or unmapping a page in the IOMMU's page tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IommuMapError {
    /// An address is not a multiple of the page size.
    #[error("the IOMMU mapping's address is not a multiple of the page size")]
    Misaligned,
    /// An address of the IOMMU mapping is too wide: 48 bits for the device, 52 for the host.
    #[error("the IOMMU mapping's address is too wide (device: at most 48 bits, host: at most 52 bits)")]
    Width,
    /// The DMA address is mapped already.
    #[error("the device address is already mapped in the IOMMU")]
    Occupied,
    /// No page of this size is mapped at the address.
    #[error("the IOMMU maps no page of this size at the device address")]
    Unmapped,
    /// The rights of an IOMMU mapping are empty, which an entry cannot distinguish from unmapped.
    #[error("the IOMMU page's access rights are empty")]
    NoRights,
}

type PageTableEntries = [u64; 512];

/// IOMMU page tables of a domain. Table 0 is the root; an emptied table is reused.
#[derive(Debug, Clone)]
pub struct IommuPageTables {
    tables: Vec<Box<PageTableEntries>>,
    free: Vec<usize>,
}

impl Default for IommuPageTables {
    fn default() -> Self {
        Self { tables: alloc::vec![Box::new([0; 512])], free: Vec::new() }
    }
}

impl IommuPageTables {
    /// Maps a page of the domain's DMA addresses to a page of the host.
    ///
    /// # Errors
    /// [`IommuMapError`], with nothing changed.
    pub fn map(
        &mut self,
        iova: Iova,
        host: u64,
        size: IommuPageSize,
        rights: DmaRights,
    ) -> Result<(), IommuMapError> {
        check(iova, host, size)?;
        let bits = rights.bits();
        if bits == 0 {
            return Err(IommuMapError::NoRights);
        }
        let mut table = 0;
        for level in 0..last(size) {
            let entry = self.tables[table][index(iova, level)];
            if entry & LARGE != 0 {
                return Err(IommuMapError::Occupied);
            }
            table = if entry == 0 { self.add(table, index(iova, level)) } else { number(entry) };
        }
        let entry = &mut self.tables[table][index(iova, last(size))];
        if *entry != 0 {
            return Err(IommuMapError::Occupied);
        }
        *entry = host | bits | if size == IommuPageSize::Large { LARGE } else { 0 };
        Ok(())
    }

    /// Unmaps a page from the domain's IOMMU tables. Devices can reach the page until the IOTLB is
    /// invalidated.
    ///
    /// # Errors
    /// [`IommuMapError`], with nothing changed.
    pub fn unmap(&mut self, iova: Iova, size: IommuPageSize) -> Result<(), IommuMapError> {
        check(iova, 0, size)?;
        let mut path = [0; LEVELS as usize];
        for level in 0..last(size) {
            let entry = self.tables[path[level as usize]][index(iova, level)];
            if entry == 0 || entry & LARGE != 0 {
                return Err(IommuMapError::Unmapped);
            }
            path[level as usize + 1] = number(entry);
        }
        let entry = &mut self.tables[path[last(size) as usize]][index(iova, last(size))];
        if *entry == 0 || (*entry & LARGE != 0) != (size == IommuPageSize::Large) {
            return Err(IommuMapError::Unmapped);
        }
        *entry = 0;
        self.reclaim(&path[..=last(size) as usize], iova);
        Ok(())
    }

    /// Maps a range of DMA addresses, using large pages where both addresses and the remaining length allow.
    ///
    /// # Errors
    /// [`IommuMapError`]; pages before the failing one stay mapped.
    pub fn map_range(
        &mut self,
        iova: Iova,
        host: u64,
        length: u64,
        rights: DmaRights,
    ) -> Result<(), IommuMapError> {
        let mut done = 0;
        while done < length {
            let (from, to) = (iova.saturating_add(done), host.saturating_add(done));
            let large = (from | to) & (IommuPageSize::Large.bytes() - 1) == 0
                && length - done >= IommuPageSize::Large.bytes();
            let size = if large { IommuPageSize::Large } else { IommuPageSize::Small };
            self.map(from, to, size, rights)?;
            done += size.bytes();
        }
        Ok(())
    }

    /// Walks the domain's IOMMU page tables. Returns the page and the number of entries loaded.
    ///
    /// # Errors
    /// [`IommuFaultReason::Width`], [`IommuFaultReason::Unmapped`].
    pub fn walk(&self, iova: Iova) -> Result<(IommuPage, u8), IommuFaultReason> {
        if iova >> WIDTH != 0 {
            return Err(IommuFaultReason::Width);
        }
        let mut table = 0;
        for level in 0..LEVELS {
            let entry = self.tables[table][index(iova, level)];
            if entry == 0 {
                return Err(IommuFaultReason::Unmapped);
            }
            if entry & LARGE != 0 || level == LEVELS - 1 {
                return Ok((page(entry), level as u8 + 1));
            }
            table = number(entry);
        }
        Err(IommuFaultReason::Unmapped)
    }

    /// Returns the number of IOMMU page tables in use, including the root.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.tables.len() - self.free.len()
    }

    fn add(&mut self, parent: usize, at: usize) -> usize {
        let table = self.free.pop().unwrap_or_else(|| {
            self.tables.push(Box::new([0; 512]));
            self.tables.len() - 1
        });
        self.tables[parent][at] = (table as u64) << 12 | READ | WRITE;
        table
    }

    /// Frees the emptied page tables along a path of levels, lowest first; the root stays.
    fn reclaim(&mut self, path: &[usize], iova: Iova) {
        for level in (1..path.len()).rev() {
            if self.tables[path[level]].iter().any(|&entry| entry != 0) {
                return;
            }
            self.free.push(path[level]);
            self.tables[path[level - 1]][index(iova, level as u32 - 1)] = 0;
        }
    }
}

fn check(iova: Iova, host: u64, size: IommuPageSize) -> Result<(), IommuMapError> {
    if iova >> WIDTH != 0 || host >> 52 != 0 {
        return Err(IommuMapError::Width);
    }
    ((iova | host) & (size.bytes() - 1) == 0).then_some(()).ok_or(IommuMapError::Misaligned)
}

/// Returns the level of page tables whose entries map pages of this size.
fn last(size: IommuPageSize) -> u32 {
    match size {
        IommuPageSize::Small => 3,
        IommuPageSize::Large => 2,
    }
}

fn index(iova: Iova, level: u32) -> usize {
    (iova >> (39 - 9 * level) & 511) as usize
}

fn number(entry: u64) -> usize {
    ((entry & ADDRESS) >> 12) as usize
}

fn page(entry: u64) -> IommuPage {
    let size = if entry & LARGE == 0 { IommuPageSize::Small } else { IommuPageSize::Large };
    let rights = DmaRights { read: entry & READ != 0, write: entry & WRITE != 0 };
    IommuPage { host: entry & ADDRESS, size, rights }
}
