//! Walks a guest's page tables as its CPU would (SDM volume 3, 4.5 to 4.7), and builds them for a modelled
//! guest. Four levels, pages of 4 KiB, 2 MiB and 1 GiB, no-execute and write-protect enabled. Accessed and
//! dirty bits, protection keys, SMEP and SMAP are not modelled.

use super::memory::GuestMemory;

/// Page-table entry bit: the entry is present.
const PRESENT: u64 = 1;
/// Page-table entry bit: the page is writable.
pub const WRITE: u64 = 1 << 1;
/// Page-table entry bit: user code may access the page.
pub const USER: u64 = 1 << 2;
/// Page-table entry bit: the entry maps a page of 2 MiB or 1 GiB instead of naming a table.
const LARGE: u64 = 1 << 7;
/// Page-table entry bit: the page is not executable.
pub const NO_EXECUTE: u64 = 1 << 63;
/// Page-table entry bits of the physical address.
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// Page-fault error-code bit: a page-table entry had a reserved bit set.
const RESERVED: u32 = 1 << 3;

/// Purpose of a memory access by the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestMemoryAccessKind {
    /// Guest access to read data.
    Read,
    /// Guest access to write data.
    Write,
    /// Guest access to fetch an instruction.
    Fetch,
}

/// Page fault of a guest's memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("page fault at linear address {linear:#x}, error code {code:#x}")]
pub struct PageFault {
    /// Linear address that faulted, for CR2.
    pub linear: u64,
    /// Error code of the page fault: present, write, user, reserved bit, fetch.
    pub code: u32,
}

/// Result of a walk of the guest's page tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageWalkResult {
    /// Physical address that the walk found, or the page fault.
    pub result: Result<u64, PageFault>,
    /// Page-table entries that the walk loaded.
    pub loads: u32,
}

/// Returns `true` if bits 63:47 are equal, as in every canonical 48-bit address.
#[must_use]
pub fn is_canonical(linear: u64) -> bool {
    matches!(linear >> 47, 0 | 0x1_ffff)
}

/// Walks the guest's page tables at `cr3` for a linear address. A table outside memory reads as not present.
pub fn walk(
    memory: &impl GuestMemory,
    cr3: u64,
    linear: u64,
    intent: GuestMemoryAccessKind,
    user: bool,
) -> PageWalkResult {
    let mut loads = 0;
    let result = descend(memory, cr3, linear, &mut loads).and_then(|(address, rights)| {
        let forbidden = match intent {
            GuestMemoryAccessKind::Write => rights & WRITE == 0,
            GuestMemoryAccessKind::Fetch => rights & NO_EXECUTE != 0,
            GuestMemoryAccessKind::Read => false,
        };
        if forbidden || user && rights & USER == 0 { Err(PRESENT as u32) } else { Ok(address) }
    });
    let asked = match intent {
        GuestMemoryAccessKind::Read => 0,
        GuestMemoryAccessKind::Write => 1 << 1,
        GuestMemoryAccessKind::Fetch => 1 << 4,
    };
    let user = u32::from(user) << 2;
    PageWalkResult { result: result.map_err(|code| PageFault { linear, code: code | asked | user }), loads }
}

/// Returns the physical address and the rights granted by all levels of page tables, or the low bits of the
/// error code.
fn descend(memory: &impl GuestMemory, cr3: u64, linear: u64, loads: &mut u32) -> Result<(u64, u64), u32> {
    let mut table = cr3 & ADDRESS;
    let mut rights = WRITE | USER;
    for level in (0..4).rev() {
        let shift = 12 + 9 * level;
        let mut bytes = [0; 8];
        *loads += 1;
        let loaded = memory.read(table + (linear >> shift & 511) * 8, &mut bytes);
        let entry = u64::from_le_bytes(bytes);
        if !loaded || entry & PRESENT == 0 {
            return Err(0);
        }
        rights &= entry | NO_EXECUTE;
        rights |= entry & NO_EXECUTE;
        let inside = (1 << shift) - 1;
        if level > 0 && entry & LARGE == 0 {
            table = entry & ADDRESS;
        } else if level == 3 || level > 0 && entry & inside & ADDRESS & !0x1000 != 0 {
            return Err(RESERVED | PRESENT as u32);
        } else {
            return Ok((entry & ADDRESS & !inside | linear & inside, rights));
        }
    }
    Err(0)
}

/// Builder of page tables in guest memory, which takes pages for the tables from a range.
#[derive(Debug, Clone)]
pub struct PageTableBuilder {
    root: u64,
    next: u64,
}

/// Sizes of a guest's pages, each with the level of its page-table entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestPageSize {
    /// Guest page of 4 KiB.
    Small = 0,
    /// Guest page of 2 MiB.
    Large = 1,
    /// Guest page of 1 GiB.
    Huge = 2,
}

impl PageTableBuilder {
    /// Creates guest page tables whose root is the page at `first`; further tables follow it.
    #[must_use]
    pub fn new(first: u64) -> Self {
        let root = first & ADDRESS;
        Self { root, next: root + 0x1000 }
    }

    /// Returns the value of CR3 that selects the created page tables.
    #[must_use]
    pub fn cr3(&self) -> u64 {
        self.root
    }

    /// Maps a page in a guest's tables with any of [`WRITE`], [`USER`] and [`NO_EXECUTE`]. Returns `false` if
    /// memory for a table is missing.
    pub fn map(
        &mut self,
        to: &mut impl GuestMemory,
        linear: u64,
        address: u64,
        size: GuestPageSize,
        rights: u64,
    ) -> bool {
        let mut table = self.root;
        for level in (size as u64 + 1..4).rev() {
            let at = table + (linear >> (12 + 9 * level) & 511) * 8;
            let mut bytes = [0; 8];
            if !to.read(at, &mut bytes) {
                return false;
            }
            let mut entry = u64::from_le_bytes(bytes);
            if entry & PRESENT == 0 {
                entry = self.next | PRESENT | WRITE | USER;
                self.next += 0x1000;
                if !to.write(at, &entry.to_le_bytes()) {
                    return false;
                }
            }
            table = entry & ADDRESS;
        }
        let leaf = if size == GuestPageSize::Small { 0 } else { LARGE };
        let at = table + (linear >> (12 + 9 * size as u64) & 511) * 8;
        to.write(at, &(address & ADDRESS | rights | PRESENT | leaf).to_le_bytes())
    }
}
