//! A domain's page tables: four levels of 512 entries, 48 bits, leaves of 4 KiB and 2 MiB (VT-d 3.7). Left
//! out: leaves of 1 GiB, memory types, accessed and dirty bits.

use super::{Access, Reason, Translation};
use alloc::boxed::Box;
use alloc::vec::Vec;
use pcie::Iova;

/// Bits that the tables translate.
pub(super) const WIDTH: u32 = 48;
/// Levels: the first entry's index is bits 47:39.
const LEVELS: u32 = 4;
/// Entry: reading allowed.
const READ: u64 = 1;
/// Entry: writing allowed.
const WRITE: u64 = 2;
/// Entry of the third level: a 2 MiB page.
const LARGE: u64 = 1 << 7;
/// Entry: the address, here also a table's number.
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// The size of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Large,
}

impl Size {
    /// In bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        1 << self.shift()
    }

    pub(super) const fn shift(self) -> u32 {
        match self {
            Size::Small => 12,
            Size::Large => 21,
        }
    }
}

/// What a domain's devices may do with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Read it.
    pub read: bool,
    /// Write it.
    pub write: bool,
}

impl Rights {
    /// Both.
    pub const ALL: Self = Self { read: true, write: true };
    /// Reading only, as for a buffer to transmit.
    pub const READ: Self = Self { read: true, write: false };

    fn bits(self) -> u64 {
        let bit = |allowed, bit| if allowed { bit } else { 0 };
        bit(self.read, READ) | bit(self.write, WRITE)
    }

    pub(super) fn allow(self, access: Access) -> bool {
        match access {
            Access::Read => self.read,
            Access::Write => self.write,
        }
    }
}

/// A page, mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The host's address of its first byte.
    pub host: u64,
    /// Its size.
    pub size: Size,
    /// What is allowed.
    pub rights: Rights,
}

impl Page {
    pub(super) fn translation(self, iova: Iova, loads: u8) -> Translation {
        let inside = iova & (self.size.bytes() - 1);
        Translation { address: self.host | inside, room: self.size.bytes() - inside, loads }
    }
}

/// Why a mapping was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// An address is not a multiple of the page's size.
    #[error("address is not a multiple of the page's size")]
    Misaligned,
    /// An address is too wide: 48 bits for the device's, 52 for the host's.
    #[error("address is too wide")]
    Width,
    /// Something is mapped there.
    #[error("something is mapped there")]
    Occupied,
    /// No page of this size is mapped there.
    #[error("no page of this size is mapped there")]
    Unmapped,
    /// A page that allows nothing cannot be told from none.
    #[error("page allows nothing")]
    NoRights,
}

type Table = [u64; 512];

/// Page tables. Table 0 is the root; a table that becomes empty is used again.
#[derive(Debug, Clone)]
pub struct PageTables {
    tables: Vec<Box<Table>>,
    free: Vec<usize>,
}

impl Default for PageTables {
    fn default() -> Self {
        Self { tables: alloc::vec![Box::new([0; 512])], free: Vec::new() }
    }
}

impl PageTables {
    /// Maps a page of the domain to one of the host.
    ///
    /// # Errors
    /// [`MapError`]; nothing has changed then.
    pub fn map(&mut self, iova: Iova, host: u64, size: Size, rights: Rights) -> Result<(), MapError> {
        check(iova, host, size)?;
        let bits = rights.bits();
        if bits == 0 {
            return Err(MapError::NoRights);
        }
        let mut table = 0;
        for level in 0..last(size) {
            let entry = self.tables[table][index(iova, level)];
            if entry & LARGE != 0 {
                return Err(MapError::Occupied);
            }
            table = if entry == 0 { self.add(table, index(iova, level)) } else { number(entry) };
        }
        let entry = &mut self.tables[table][index(iova, last(size))];
        if *entry != 0 {
            return Err(MapError::Occupied);
        }
        *entry = host | bits | if size == Size::Large { LARGE } else { 0 };
        Ok(())
    }

    /// Unmaps a page. Devices reach it until the IOTLB has been told.
    ///
    /// # Errors
    /// [`MapError`]; nothing has changed then.
    pub fn unmap(&mut self, iova: Iova, size: Size) -> Result<(), MapError> {
        check(iova, 0, size)?;
        let mut path = [0; LEVELS as usize];
        for level in 0..last(size) {
            let entry = self.tables[path[level as usize]][index(iova, level)];
            if entry == 0 || entry & LARGE != 0 {
                return Err(MapError::Unmapped);
            }
            path[level as usize + 1] = number(entry);
        }
        let entry = &mut self.tables[path[last(size) as usize]][index(iova, last(size))];
        if *entry == 0 || (*entry & LARGE != 0) != (size == Size::Large) {
            return Err(MapError::Unmapped);
        }
        *entry = 0;
        self.reclaim(&path[..=last(size) as usize], iova);
        Ok(())
    }

    /// Maps a range page by page, with large pages where both addresses and what is left allow it.
    ///
    /// # Errors
    /// [`MapError`]; the pages before the one in error stay mapped.
    pub fn map_range(&mut self, iova: Iova, host: u64, length: u64, rights: Rights) -> Result<(), MapError> {
        let mut done = 0;
        while done < length {
            let (from, to) = (iova.saturating_add(done), host.saturating_add(done));
            let large = (from | to) & (Size::Large.bytes() - 1) == 0 && length - done >= Size::Large.bytes();
            let size = if large { Size::Large } else { Size::Small };
            self.map(from, to, size, rights)?;
            done += size.bytes();
        }
        Ok(())
    }

    /// Walks the tables: the page, and how many entries were loaded.
    ///
    /// # Errors
    /// [`Reason::Width`], [`Reason::Unmapped`].
    pub fn walk(&self, iova: Iova) -> Result<(Page, u8), Reason> {
        if iova >> WIDTH != 0 {
            return Err(Reason::Width);
        }
        let mut table = 0;
        for level in 0..LEVELS {
            let entry = self.tables[table][index(iova, level)];
            if entry == 0 {
                return Err(Reason::Unmapped);
            }
            if entry & LARGE != 0 || level == LEVELS - 1 {
                return Ok((page(entry), level as u8 + 1));
            }
            table = number(entry);
        }
        Err(Reason::Unmapped)
    }

    /// How many tables are in use, the root included.
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

    /// Frees the tables of a path that are empty now, from the lowest up; the root stays.
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

fn check(iova: Iova, host: u64, size: Size) -> Result<(), MapError> {
    if iova >> WIDTH != 0 || host >> 52 != 0 {
        return Err(MapError::Width);
    }
    ((iova | host) & (size.bytes() - 1) == 0).then_some(()).ok_or(MapError::Misaligned)
}

/// The level whose entries are leaves of this size.
fn last(size: Size) -> u32 {
    match size {
        Size::Small => 3,
        Size::Large => 2,
    }
}

fn index(iova: Iova, level: u32) -> usize {
    (iova >> (39 - 9 * level) & 511) as usize
}

fn number(entry: u64) -> usize {
    ((entry & ADDRESS) >> 12) as usize
}

fn page(entry: u64) -> Page {
    let size = if entry & LARGE == 0 { Size::Small } else { Size::Large };
    let rights = Rights { read: entry & READ != 0, write: entry & WRITE != 0 };
    Page { host: entry & ADDRESS, size, rights }
}
