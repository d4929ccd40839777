//! The books: cycles by domain and category, and the idle ones by thread. Left out: when they are written.

use alloc::vec::Vec;

use super::Category;
use crate::domain::DomainId;

/// Cycles since the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// A row of [`Category::COUNT`] for each domain.
    spent: Vec<[u64; Category::COUNT]>,
    /// By thread.
    idle: Vec<u64>,
}

impl Ledger {
    /// Empty books for `threads` threads and no domain yet.
    pub(crate) fn new(threads: usize) -> Ledger {
        Ledger { spent: Vec::new(), idle: alloc::vec![0; threads] }
    }

    pub(crate) fn add_domain(&mut self) {
        self.spent.push([0; Category::COUNT]);
    }

    #[inline]
    pub(crate) fn spend(&mut self, domain: DomainId, category: Category, cycles: u64) {
        self.spent[domain.index()][category.index()] += cycles;
    }

    #[inline]
    pub(crate) fn idle_for(&mut self, thread: usize, cycles: u64) {
        self.idle[thread] += cycles;
    }

    /// Cycles spent for `domain` on `category`; 0 for a domain it does not know.
    pub fn spent(&self, domain: DomainId, category: Category) -> u64 {
        self.spent.get(domain.index()).map_or(0, |row| row[category.index()])
    }

    /// Cycles that thread number `thread` was idle for.
    pub fn idle(&self, thread: usize) -> u64 {
        self.idle.get(thread).copied().unwrap_or(0)
    }

    /// How many domains there are.
    pub fn domains(&self) -> usize {
        self.spent.len()
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.idle.len()
    }

    /// Everything: spent and idle.
    pub fn total(&self) -> u64 {
        let spent: u64 = self.spent.iter().flatten().sum();
        spent + self.idle.iter().sum::<u64>()
    }

    /// What was added since `earlier`, which must be an earlier state of the same books.
    pub(crate) fn since(&self, earlier: &Ledger) -> Ledger {
        let mut difference = self.clone();
        for (row, before) in difference.spent.iter_mut().zip(&earlier.spent) {
            for (cycles, before) in row.iter_mut().zip(before) {
                *cycles = cycles.saturating_sub(*before);
            }
        }
        for (idle, before) in difference.idle.iter_mut().zip(&earlier.idle) {
            *idle = idle.saturating_sub(*before);
        }
        difference
    }
}
