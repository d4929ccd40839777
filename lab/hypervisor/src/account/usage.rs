//! Snapshots of a cycle ledger, and the cycles used between two of them, from which experiments take their
//! metrics.
//!
//! A step is charged at its start, so a thread's account can be ahead of the clock. A snapshot stores these
//! cycles, which makes the balance exact.

use super::{CycleCategory, CycleLedger};
use crate::domain::{Domain, DomainId, DomainKind};

/// Error: the sum of a thread's spent and idle cycles differs from the number of cycles that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("CPU accounts do not balance: {accounted} cycles are in the accounts, but {passed} elapsed")]
pub struct CycleConservationError {
    /// Sum of spent and idle cycles in the ledger.
    pub accounted: u64,
    /// Cycles that passed on the clock: number of threads times elapsed cycles, plus charged cycles that have
    /// not elapsed yet.
    pub passed: u64,
}

/// Cycle ledger of a machine at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleLedgerSnapshot {
    pub(crate) ledger: CycleLedger,
    /// Number of the processors' clock cycle at which the snapshot was taken.
    pub(crate) cycle: u64,
    /// Charged cycles that had not elapsed at the snapshot's time, over all threads.
    pub(crate) ahead: u64,
    pub(crate) hertz: u64,
}

/// Cycles used between two snapshots of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleUsage {
    ledger: CycleLedger,
    elapsed: u64,
    ahead_before: u64,
    ahead_after: u64,
    hertz: u64,
}

impl CycleLedgerSnapshot {
    /// Returns the cycle ledger at the time of the snapshot.
    pub fn ledger(&self) -> &CycleLedger {
        &self.ledger
    }

    /// Returns the cycles used since `earlier`, a snapshot of the same machine.
    pub fn since(&self, earlier: &CycleLedgerSnapshot) -> CycleUsage {
        CycleUsage {
            ledger: self.ledger.since(&earlier.ledger),
            elapsed: self.cycle.saturating_sub(earlier.cycle),
            ahead_before: earlier.ahead,
            ahead_after: self.ahead,
            hertz: self.hertz,
        }
    }

    /// Checks that all cycles since the machine's start are accounted for.
    ///
    /// # Errors
    ///
    /// [`CycleConservationError`] if a single cycle is missing or counted twice.
    pub fn check(&self) -> Result<(), CycleConservationError> {
        let passed = self.cycle * self.ledger.threads() as u64 + self.ahead;
        check_balance(self.ledger.total(), passed)
    }
}

impl CycleUsage {
    /// Returns the ledger of the cycles used between the two snapshots.
    pub fn ledger(&self) -> &CycleLedger {
        &self.ledger
    }

    /// Returns the clock cycles between the two snapshots.
    pub fn elapsed(&self) -> u64 {
        self.elapsed
    }

    /// Checks that all cycles between the two snapshots are accounted for.
    ///
    /// # Errors
    ///
    /// [`CycleConservationError`] if a single cycle is missing or counted twice.
    pub fn check(&self) -> Result<(), CycleConservationError> {
        let passed = self.elapsed * self.ledger.threads() as u64 + self.ahead_after;
        check_balance(self.ledger.total() + self.ahead_before, passed)
    }

    /// Returns the cycles of `domain` in `category`.
    pub fn cycles(&self, domain: DomainId, category: CycleCategory) -> u64 {
        self.ledger.spent(domain, category)
    }

    /// Returns the cycles in `category` over all domains.
    pub fn category(&self, category: CycleCategory) -> u64 {
        self.ids().map(|domain| self.cycles(domain, category)).sum()
    }

    /// Returns the cycles of `domain`'s own work, without the hypervisor's work on its behalf.
    pub fn own(&self, domain: DomainId) -> u64 {
        self.sum(domain, false)
    }

    /// Returns the cycles of the hypervisor's work on behalf of `domain`.
    pub fn hypervisor_for(&self, domain: DomainId) -> u64 {
        self.sum(domain, true)
    }

    /// Returns the cycles of the hypervisor's work on behalf of all domains.
    pub fn hypervisor(&self) -> u64 {
        self.ids().map(|domain| self.hypervisor_for(domain)).sum()
    }

    /// Returns the cycles that domains of a wanted kind spent on their own work. `domains` are all domains of
    /// the machine.
    pub fn own_of(&self, domains: &[Domain], wanted: impl Fn(DomainKind) -> bool) -> u64 {
        let ids = self.by_domain(domains).filter(|(_, domain)| wanted(domain.kind));
        ids.map(|(id, _)| self.own(id)).sum()
    }

    /// Returns the index of each domain with its description. `domains` are all domains of the machine.
    pub fn by_domain<'a>(
        &self,
        domains: &'a [Domain],
    ) -> impl Iterator<Item = (DomainId, &'a Domain)> + use<'a> {
        self.ids().zip(domains)
    }

    /// Returns the cycles in which a thread was not idle, over all threads.
    pub fn busy(&self) -> u64 {
        self.ledger.total() - self.idle()
    }

    /// Returns the idle cycles of all threads.
    pub fn idle(&self) -> u64 {
        (0..self.ledger.threads()).map(|thread| self.ledger.idle(thread)).sum()
    }

    /// Converts cycles to percent of one hardware thread, for reports.
    pub fn percent(&self, cycles: u64) -> f64 {
        if self.elapsed == 0 { 0.0 } else { 100.0 * cycles as f64 / self.elapsed as f64 }
    }

    /// Converts cycles to cycles per second, for reports.
    pub fn per_second(&self, cycles: u64) -> f64 {
        if self.elapsed == 0 { 0.0 } else { cycles as f64 * self.hertz as f64 / self.elapsed as f64 }
    }

    fn ids(&self) -> impl Iterator<Item = DomainId> + use<> {
        (0..self.ledger.domains() as u16).map(DomainId::new)
    }

    fn sum(&self, domain: DomainId, hypervisor: bool) -> u64 {
        let categories =
            CycleCategory::ALL.into_iter().filter(|category| category.is_hypervisor() == hypervisor);
        categories.map(|category| self.cycles(domain, category)).sum()
    }
}

fn check_balance(accounted: u64, passed: u64) -> Result<(), CycleConservationError> {
    if accounted == passed { Ok(()) } else { Err(CycleConservationError { accounted, passed }) }
}
