//! Cost of TLB misses by page size and paging mode, one model for bare machines, paravirtualized guests, guests on
//! hardware virtualization and kernels with superpages: misses times the cost of a walk. The IOMMU's TLB is
//! [`crate::iommu`]'s.
//!
//! Prices of a kernel's work are those of a bare machine, which maps its kernel in large pages. They include the misses
//! that this machine has too, so the model charges the difference:
//!
//! - **Streamed pages** are new at each packet: its buffer, and what describes the buffer. A kernel that has run for a
//!   while takes them from all of its memory, so they miss with pages of either size. Under nested paging their walks are
//!   longer.
//! - **Hot pages** are used again at each packet. They miss only if a packet uses more pages than the TLB has entries.
//!   Large pages are few, and fit.
//! - **A flush** loses the hot pages. The mode says what flushes.

use crate::cost::{CostConstant, CostTable};
use crate::domain::DomainKind;

/// Bytes of a small page.
const SMALL_PAGE: u64 = 4_096;
/// Small pages in a large page of 2 MB.
const PER_LARGE_PAGE: u64 = 512;
/// Regions of a kernel that are in different large pages: its code, its static data and its own allocations.
const REGIONS: u64 = 3;

/// Size of the pages that a kernel is mapped with, as the TLB holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// Pages of 4 KB.
    Small,
    /// Pages of 2 MB or more.
    Large,
}

/// Kind of page-table walk after a TLB miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageWalk {
    /// Walk of one table, from virtual to machine addresses.
    OneDimensional,
    /// Walk of the guest's table, whose addresses are translated by the hypervisor's (EPT).
    Nested,
}

/// Events that remove a kernel's entries from the TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlbFlushes {
    /// Each system call of a program flushes the kernel's entries.
    pub on_system_call: bool,
    /// Each switch to another virtual CPU or another program flushes the entries.
    pub on_switch: bool,
}

/// Paging mode of a kernel: size of its pages, walk after a miss, and flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagingMode {
    /// Size of the pages that the kernel is mapped with.
    pub pages: PageSize,
    /// Kind of walk after a miss.
    pub walk: PageWalk,
    /// Events that flush the kernel's entries.
    pub flushes: TlbFlushes,
}

impl PagingMode {
    /// Paging of a bare machine, and of Xen 2's domains with superpages and global pages (Menon et al., ATC 2006): large
    /// pages of the kernel, which are global, so nothing flushes them.
    pub const LARGE: PagingMode = PagingMode {
        pages: PageSize::Large,
        walk: PageWalk::OneDimensional,
        flushes: TlbFlushes { on_system_call: false, on_switch: false },
    };

    /// Paging of a guest on hardware virtualization: large pages in both tables, and entries tagged with the virtual
    /// processor's number (VPID). Xen 3.4 has both, by its commits ff635e12aa and e2cf9bd6e0, and so has KVM.
    pub const HARDWARE: PagingMode = PagingMode { walk: PageWalk::Nested, ..PagingMode::LARGE };

    /// Paging of a paravirtualized guest of 32 bits: Xen grants it small pages only, none of them global, so loading
    /// another table flushes the TLB. A system call reaches the kernel in the same table.
    pub const PARAVIRTUAL_32: PagingMode = PagingMode {
        pages: PageSize::Small,
        walk: PageWalk::OneDimensional,
        flushes: TlbFlushes { on_system_call: false, on_switch: true },
    };

    /// Paging of a paravirtualized guest of 64 bits: kernel and program have a table each, and only the program's entries
    /// are global (`USER_MAPPINGS_ARE_GLOBAL` in Xen's `x86_64/page.h`), so a system call flushes the kernel's.
    pub const PARAVIRTUAL_64: PagingMode = PagingMode {
        flushes: TlbFlushes { on_system_call: true, on_switch: true },
        ..PagingMode::PARAVIRTUAL_32
    };

    /// Returns the paging mode of a domain with 64 bits. The service domain's prices include its paging.
    pub const fn of(kind: DomainKind) -> PagingMode {
        match kind {
            DomainKind::Hvm => PagingMode::HARDWARE,
            DomainKind::Pvm => PagingMode::PARAVIRTUAL_64,
            DomainKind::Hypervisor | DomainKind::Dom0 | DomainKind::Native => PagingMode::LARGE,
        }
    }
}

/// TLB of a cost table's processor. It reads only the constants that the cost in question depends on.
#[derive(Clone, Copy, Debug)]
pub struct Tlb<'a> {
    table: &'a CostTable,
}

impl<'a> Tlb<'a> {
    /// Creates the TLB of a cost table's processor.
    pub const fn new(table: &'a CostTable) -> Tlb<'a> {
        Tlb { table }
    }

    /// Returns the cycles for misses of a packet with this many bytes, beyond those of a bare machine. A packet of several
    /// pages streams one more for each.
    pub fn packet(self, mode: PagingMode, bytes: u64) -> u64 {
        let (streamed, hot) = self.packet_misses(mode, bytes);
        let beyond = match mode.walk {
            PageWalk::OneDimensional => 0,
            PageWalk::Nested if streamed == 0 => 0,
            PageWalk::Nested => self.walk(mode).saturating_sub(self.table[CostConstant::TlbWalk]),
        };
        let of_hot = if hot == 0 { 0 } else { hot * self.walk(mode) };
        streamed * beyond + of_hot
    }

    /// Returns the cycles to load the entries of a system call's pages again, if the call flushed them.
    pub fn system_call(self, mode: PagingMode) -> u64 {
        if mode.flushes.on_system_call { self.reload(mode, CostConstant::CallPages) } else { 0 }
    }

    /// Returns the cycles to load the entries of a packet's hot pages again, if a switch to another virtual CPU or program
    /// flushed them.
    pub fn switch(self, mode: PagingMode) -> u64 {
        if mode.flushes.on_switch { self.reload(mode, CostConstant::PathHotPages) } else { 0 }
    }

    /// Returns the misses of a packet's streamed pages and of its hot pages.
    ///
    /// Hot pages in excess of the entries displace each other. With random replacement and `w` pages in turn on `e`
    /// entries, a page survives a turn of `m` misses with the probability `exp(-m / e)`, so `m = w (1 - exp(-m / e))`,
    /// which is about `2 (w - e)` near `e`, and never more than `w`.
    fn packet_misses(self, mode: PagingMode, bytes: u64) -> (u64, u64) {
        if mode == PagingMode::LARGE {
            return (0, 0);
        }
        let streamed = self.table[CostConstant::PathStreamedPages];
        let hot = in_pages(mode.pages, self.table[CostConstant::PathHotPages]);
        let excess = (hot + streamed).saturating_sub(self.entries(mode));
        let further = if streamed == 0 { 0 } else { bytes / SMALL_PAGE };
        (streamed + further, hot.min(2 * excess))
    }

    fn reload(self, mode: PagingMode, pages: CostConstant) -> u64 {
        let pages = in_pages(mode.pages, self.table[pages]);
        if pages == 0 { 0 } else { pages.min(self.entries(mode)) * self.walk(mode) }
    }

    fn entries(self, mode: PagingMode) -> u64 {
        self.table[match mode.pages {
            PageSize::Small => CostConstant::TlbSmall,
            PageSize::Large => CostConstant::TlbLarge,
        }]
    }

    fn walk(self, mode: PagingMode) -> u64 {
        self.table[match mode.walk {
            PageWalk::OneDimensional => CostConstant::TlbWalk,
            PageWalk::Nested => CostConstant::TlbWalkNested,
        }]
    }
}

/// Returns the entries that this many small pages of a kernel need in pages of a size.
const fn in_pages(size: PageSize, pages: u64) -> u64 {
    let large = pages.div_ceil(PER_LARGE_PAGE);
    match size {
        PageSize::Large if large < REGIONS && pages > REGIONS => REGIONS,
        PageSize::Large => large,
        PageSize::Small => pages,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::MachineModel;

    /// Bytes of a full frame of datagrams.
    const FRAME: u64 = 1_514;

    fn table(set: &[(&str, u64)]) -> CostTable {
        let mut table = CostTable::nehalem();
        let walks = [("tlb_walk", 10), ("tlb_walk_nested", 30), ("tlb_small", 64), ("tlb_large", 8)];
        let pages = [("path_hot_pages", 50), ("path_streamed_pages", 4), ("call_pages", 12)];
        let all = walks.iter().chain(&pages).chain(set);
        all.for_each(|(name, value)| table.set(name, *value).unwrap());
        table
    }

    #[test]
    fn bare_machine_with_large_pages_misses_no_tlb() {
        for table in CostTable::all() {
            let (tlb, bare) = (Tlb::new(&table), PagingMode::of(DomainKind::Native));
            assert_eq!((tlb.packet(bare, FRAME), tlb.system_call(bare), tlb.switch(bare)), (0, 0, 0));
        }
    }

    #[test]
    fn equal_pages_cost_more_by_nested_walks() {
        let table = table(&[]);
        let cost = |mode| Tlb::new(&table).packet(mode, FRAME);
        let small = PagingMode { walk: PageWalk::Nested, ..PagingMode::PARAVIRTUAL_64 };
        assert_eq!([PagingMode::LARGE, PagingMode::PARAVIRTUAL_64].map(cost), [0, 0]);
        assert_eq!([PagingMode::HARDWARE, small].map(cost), [4 * (30 - 10); 2]);
    }

    #[test]
    fn packet_of_several_pages_streams_one_more_for_each() {
        let table = table(&[]);
        assert_eq!(Tlb::new(&table).packet(PagingMode::HARDWARE, 3 * SMALL_PAGE), (4 + 3) * (30 - 10));
    }

    #[test]
    fn small_pages_beyond_the_entries_displace_each_other() {
        let table = table(&[("path_hot_pages", 70)]);
        let tlb = Tlb::new(&table);
        assert_eq!(tlb.packet(PagingMode::PARAVIRTUAL_32, FRAME), 2 * (70 + 4 - 64) * 10);
        assert_eq!(tlb.packet(PagingMode::LARGE, FRAME), 0);
    }

    #[test]
    fn hot_pages_miss_at_most_once_a_packet() {
        let table = table(&[("path_hot_pages", 600)]);
        assert_eq!(Tlb::new(&table).packet(PagingMode::PARAVIRTUAL_32, FRAME), 600 * 10);
    }

    #[test]
    fn system_calls_flush_kernels_of_64_bits_only() {
        let table = table(&[]);
        let cost = |mode| Tlb::new(&table).system_call(mode);
        let modes = [PagingMode::PARAVIRTUAL_64, PagingMode::PARAVIRTUAL_32, PagingMode::HARDWARE];
        assert_eq!(modes.map(cost), [12 * 10, 0, 0]);
    }

    #[test]
    fn switches_flush_paravirtualized_kernels_only() {
        let table = table(&[("path_hot_pages", 70)]);
        let cost = |mode| Tlb::new(&table).switch(mode);
        // The processor holds no more than its entries, which it loses.
        assert_eq!([PagingMode::PARAVIRTUAL_64, PagingMode::PARAVIRTUAL_32].map(cost), [64 * 10; 2]);
        assert_eq!([PagingMode::HARDWARE, PagingMode::LARGE].map(cost), [0, 0]);
    }

    #[test]
    fn large_pages_of_a_kernel_are_its_regions_at_least() {
        let flushed = TlbFlushes { on_system_call: true, on_switch: true };
        let mode = PagingMode { flushes: flushed, ..PagingMode::LARGE };
        let table = table(&[("path_hot_pages", 2_048), ("call_pages", 0)]);
        assert_eq!([Tlb::new(&table).switch(mode), Tlb::new(&table).system_call(mode)], [4 * 10, 0]);
        let few = self::table(&[]);
        assert_eq!(Tlb::new(&few).switch(mode), REGIONS * 10);
    }

    #[test]
    fn processors_without_path_pages_pay_nothing() {
        for machine in [MachineModel::Opteron, MachineModel::Server2009] {
            let table = CostTable::of(machine);
            let tlb = Tlb::new(&table);
            for mode in [PagingMode::HARDWARE, PagingMode::PARAVIRTUAL_32, PagingMode::PARAVIRTUAL_64] {
                let costs = [tlb.packet(mode, 3 * FRAME), tlb.system_call(mode), tlb.switch(mode)];
                assert_eq!(costs, [0; 3], "{} {mode:?}", table.name());
            }
        }
    }
}
