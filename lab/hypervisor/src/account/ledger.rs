//! Ledger of processor cycles: spent cycles by domain and category, idle cycles by thread.

use alloc::vec::Vec;

use super::CycleCategory;
use crate::domain::DomainId;

/// Processor cycles since the start of the machine: cycles spent by each domain, and idle cycles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CycleLedger {
    /// Cycles spent by each domain in each category.
    spent: Vec<[u64; CycleCategory::COUNT]>,
    /// Idle cycles of each processor thread.
    idle: Vec<u64>,
}

impl CycleLedger {
    /// Creates a cycle ledger for `threads` processor threads and no domain.
    pub(crate) fn new(threads: usize) -> CycleLedger {
        CycleLedger { spent: Vec::new(), idle: alloc::vec![0; threads] }
    }

    pub(crate) fn add_domain(&mut self) {
        self.spent.push([0; CycleCategory::COUNT]);
    }

    #[inline]
    pub(crate) fn spend(&mut self, domain: DomainId, category: CycleCategory, cycles: u64) {
        self.spent[domain.index()][category.index()] += cycles;
    }

    #[inline]
    pub(crate) fn idle_for(&mut self, thread: usize, cycles: u64) {
        self.idle[thread] += cycles;
    }

    /// Returns the cycles of `domain` in `category`, or 0 for an unknown domain.
    pub fn spent(&self, domain: DomainId, category: CycleCategory) -> u64 {
        self.spent.get(domain.index()).map_or(0, |row| row[category.index()])
    }

    /// Returns the idle cycles of the processor thread with index `thread`.
    pub fn idle(&self, thread: usize) -> u64 {
        self.idle.get(thread).copied().unwrap_or(0)
    }

    /// Returns the number of domains in the ledger.
    pub fn domains(&self) -> usize {
        self.spent.len()
    }

    /// Returns the number of processor threads in the ledger.
    pub fn threads(&self) -> usize {
        self.idle.len()
    }

    /// Returns the sum of spent and idle cycles of all processor threads.
    pub fn total(&self) -> u64 {
        let spent: u64 = self.spent.iter().flatten().sum();
        spent + self.idle.iter().sum::<u64>()
    }

    /// Returns the cycles added to the ledger since `earlier`, a copy of its earlier state.
    pub(crate) fn since(&self, earlier: &CycleLedger) -> CycleLedger {
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
