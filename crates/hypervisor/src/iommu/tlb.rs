//! The IOTLB: a cache of translations by domain and page, in sets of a few ways; the least recently used one
//! makes room (VT-d 6.2.3). Left out: what a miss costs.

use super::table::{Page, Size};
use crate::domain::DomainId;
use alloc::vec;
use alloc::vec::Vec;
use pcie::Iova;

/// Lookups by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// The translation was known.
    pub hits: u64,
    /// The tables had to be walked.
    pub misses: u64,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    domain: DomainId,
    number: u64,
    page: Page,
    used: u64,
}

/// The cache.
#[derive(Debug, Clone)]
pub struct Tlb {
    slots: Vec<Option<Slot>>,
    ways: usize,
    /// Sets minus one: sets are a power of two.
    mask: u64,
    clock: u64,
    counts: Counts,
}

impl Tlb {
    /// An empty cache. `sets` is brought up to a power of two of at most 2^16, `ways` into 1 to 64.
    #[must_use]
    pub fn new(sets: usize, ways: usize) -> Self {
        let sets = sets.clamp(1, 1 << 16).next_power_of_two();
        let ways = ways.clamp(1, 64);
        let slots = vec![None; sets * ways];
        Self { slots, ways, mask: sets as u64 - 1, clock: 0, counts: Counts::default() }
    }

    /// Lookups so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Forgets everything.
    pub fn invalidate_all(&mut self) {
        self.slots.fill(None);
    }

    /// Forgets a domain.
    pub fn invalidate_domain(&mut self, domain: DomainId) {
        for slot in &mut self.slots {
            slot.take_if(|slot| slot.domain == domain);
        }
    }

    /// Forgets the page of a domain at an address, whichever its size.
    pub fn invalidate_page(&mut self, domain: DomainId, iova: Iova) {
        for size in [Size::Small, Size::Large] {
            if let Some(at) = self.position(domain, iova, size) {
                self.slots[at] = None;
            }
        }
    }

    pub(super) fn lookup(&mut self, domain: DomainId, iova: Iova) -> Option<Page> {
        let small = self.position(domain, iova, Size::Small);
        let at = small.or_else(|| self.position(domain, iova, Size::Large))?;
        self.clock += 1;
        let slot = self.slots[at].as_mut()?;
        slot.used = self.clock;
        Some(slot.page)
    }

    pub(super) fn count_hit(&mut self) {
        self.counts.hits += 1;
    }

    pub(super) fn count_miss(&mut self) {
        self.counts.misses += 1;
    }

    /// Remembers a page in place of an old knowledge of it, else of the least recently used one of its set.
    pub(super) fn fill(&mut self, domain: DomainId, iova: Iova, page: Page) {
        self.clock += 1;
        let number = iova >> page.size.shift();
        let known = self.position(domain, iova, page.size);
        let set = self.set(domain, number);
        let oldest = set.min_by_key(|&at| self.slots[at].map_or(0, |slot| slot.used));
        if let Some(at) = known.or(oldest) {
            self.slots[at] = Some(Slot { domain, number, page, used: self.clock });
        }
    }

    fn position(&self, domain: DomainId, iova: Iova, size: Size) -> Option<usize> {
        let number = iova >> size.shift();
        let is = |slot: Slot| slot.domain == domain && slot.number == number && slot.page.size == size;
        self.set(domain, number).find(|&at| self.slots[at].is_some_and(is))
    }

    /// The slots of a set. The domain is mixed in: guests use the same addresses.
    fn set(&self, domain: DomainId, number: u64) -> core::ops::Range<usize> {
        let mixed = number ^ (domain.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let first = (mixed & self.mask) as usize * self.ways;
        first..first + self.ways
    }
}
