//! The IOTLB: a set-associative cache of translations by domain and page, with least-recently-used
//! replacement (VT-d 6.2.3).

use super::table::{DmaRights, IommuPage, IommuPageSize, WIDTH};
use crate::domain::DomainId;
use alloc::vec;
use alloc::vec::Vec;
use pcie::Iova;

/// Counters of IOTLB lookups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IotlbCounts {
    /// Lookups that found a translation in the IOTLB.
    pub hits: u64,
    /// Lookups that missed the IOTLB and walked the page tables.
    pub misses: u64,
}

/// Translation stored in one way of an IOTLB set.
#[derive(Debug, Clone, Copy)]
struct IotlbEntry {
    page: IommuPage,
    used: u64,
}

const EMPTY: IotlbEntry = IotlbEntry {
    page: IommuPage { host: 0, size: IommuPageSize::Small, rights: DmaRights { read: false, write: false } },
    used: 0,
};

/// Returns the tag of an IOTLB slot: page number, domain and page size, packed into one word for fast comparison. Zero
/// marks an empty slot.
#[inline]
fn tag(domain: DomainId, iova: Iova, size: IommuPageSize) -> u64 {
    let kind = if size == IommuPageSize::Small { 1 } else { 2 };
    iova >> size.shift() << 18 | (domain.index() as u64) << 2 | kind
}

/// Translation cache of a machine's IOMMU.
#[derive(Debug, Clone)]
pub struct Iotlb {
    tags: Vec<u64>,
    slots: Vec<IotlbEntry>,
    ways: usize,
    /// Bit mask of an IOTLB set's index: the number of sets, a power of two, minus one.
    mask: u64,
    clock: u64,
    /// Page sizes of which the IOTLB has ever cached a translation; lookups skip other sizes.
    known: [bool; 2],
    counts: IotlbCounts,
}

impl Iotlb {
    /// Creates an empty IOTLB. `sets` is rounded up to a power of two of at most 2^16, `ways` clamped to 1 to
    /// 64.
    #[must_use]
    pub fn new(sets: usize, ways: usize) -> Self {
        let sets = sets.clamp(1, 1 << 16).next_power_of_two();
        let ways = ways.clamp(1, 64);
        let (tags, slots) = (vec![0; sets * ways], vec![EMPTY; sets * ways]);
        Self {
            tags,
            slots,
            ways,
            mask: sets as u64 - 1,
            clock: 0,
            known: [false; 2],
            counts: IotlbCounts::default(),
        }
    }

    /// Returns the counters of IOTLB lookups.
    #[must_use]
    pub fn counts(&self) -> IotlbCounts {
        self.counts
    }

    /// Invalidates all entries of the IOTLB.
    pub fn invalidate_all(&mut self) {
        (0..self.tags.len()).for_each(|at| self.forget(at));
    }

    /// Invalidates the IOTLB entries of a domain.
    pub fn invalidate_domain(&mut self, domain: DomainId) {
        for at in 0..self.tags.len() {
            if self.tags[at] >> 2 & 0xffff == domain.index() as u64 {
                self.forget(at);
            }
        }
    }

    /// Invalidates the IOTLB entry of a domain's page at an address, for either page size.
    pub fn invalidate_page(&mut self, domain: DomainId, iova: Iova) {
        for size in [IommuPageSize::Small, IommuPageSize::Large] {
            if let Some(at) = self.position(domain, iova, size) {
                self.forget(at);
            }
        }
    }

    fn forget(&mut self, at: usize) {
        (self.tags[at], self.slots[at]) = (0, EMPTY);
    }

    #[inline]
    pub(super) fn lookup(&mut self, domain: DomainId, iova: Iova) -> Option<IommuPage> {
        if iova >> WIDTH != 0 {
            return None;
        }
        let known =
            |size: IommuPageSize| self.known[size as usize].then(|| self.position(domain, iova, size));
        let at = known(IommuPageSize::Large).flatten().or_else(|| known(IommuPageSize::Small).flatten())?;
        self.clock += 1;
        self.slots[at].used = self.clock;
        Some(self.slots[at].page)
    }

    pub(super) fn count_hit(&mut self) {
        self.counts.hits += 1;
    }

    pub(super) fn count_miss(&mut self) {
        self.counts.misses += 1;
    }

    /// Stores a page's translation in the IOTLB: in the page's old slot, or else in the least recently used slot of the
    /// set.
    pub(super) fn fill(&mut self, domain: DomainId, iova: Iova, page: IommuPage) {
        self.clock += 1;
        self.known[page.size as usize] = true;
        let known = self.position(domain, iova, page.size);
        let set = self.set(domain, iova >> page.size.shift());
        let oldest = set.min_by_key(|&at| self.slots[at].used);
        if let Some(at) = known.or(oldest) {
            self.tags[at] = tag(domain, iova, page.size);
            self.slots[at] = IotlbEntry { page, used: self.clock };
        }
    }

    #[inline]
    fn position(&self, domain: DomainId, iova: Iova, size: IommuPageSize) -> Option<usize> {
        let (set, wanted) = (self.set(domain, iova >> size.shift()), tag(domain, iova, size));
        let found = self.tags[set.clone()].iter().position(|tag| *tag == wanted)?;
        Some(set.start + found)
    }

    /// Returns the slots of the IOTLB set for a page. The domain is hashed in, since guests use equal addresses.
    #[inline]
    fn set(&self, domain: DomainId, number: u64) -> core::ops::Range<usize> {
        let mixed = number ^ (domain.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let first = (mixed & self.mask) as usize * self.ways;
        first..first + self.ways
    }
}
