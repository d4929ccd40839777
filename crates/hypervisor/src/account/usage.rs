//! The books at an instant, and between two: what experiments measure. Left out: figures and tables.
//!
//! A step is charged when it begins, so the books may be a step ahead of the clock on each thread. How far is
//! part of the snapshot, and the sum is exact with it.

use super::{Category, Ledger};
use crate::domain::{Domain, DomainId, DomainKind};

/// The books do not close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{accounted} cycles are accounted for, {passed} passed")]
pub struct ConservationError {
    /// Spent and idle.
    pub accounted: u64,
    /// Threads times elapsed cycles, and what was begun but is not over.
    pub passed: u64,
}

/// The books at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub(crate) ledger: Ledger,
    /// The cycle the clock is in.
    pub(crate) cycle: u64,
    /// Cycles already charged that lie ahead of the clock, over all threads.
    pub(crate) ahead: u64,
    pub(crate) hertz: u64,
}

/// What happened between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    ledger: Ledger,
    elapsed: u64,
    ahead_before: u64,
    ahead_after: u64,
    hertz: u64,
}

impl Snapshot {
    /// The books.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What happened since `earlier`, a snapshot of the same machine.
    pub fn since(&self, earlier: &Snapshot) -> Usage {
        Usage {
            ledger: self.ledger.since(&earlier.ledger),
            elapsed: self.cycle.saturating_sub(earlier.cycle),
            ahead_before: earlier.ahead,
            ahead_after: self.ahead,
            hertz: self.hertz,
        }
    }

    /// Everything accounted for, since the beginning, is everything that passed.
    ///
    /// # Errors
    ///
    /// If it is not, to the cycle.
    pub fn check(&self) -> Result<(), ConservationError> {
        let passed = self.cycle * self.ledger.threads() as u64 + self.ahead;
        close(self.ledger.total(), passed)
    }
}

impl Usage {
    /// The books of this interval.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Cycles of the clock that passed.
    pub fn elapsed(&self) -> u64 {
        self.elapsed
    }

    /// Everything accounted for in the interval is everything that passed in it.
    ///
    /// # Errors
    ///
    /// If it is not, to the cycle.
    pub fn check(&self) -> Result<(), ConservationError> {
        let passed = self.elapsed * self.ledger.threads() as u64 + self.ahead_after;
        close(self.ledger.total() + self.ahead_before, passed)
    }

    /// Cycles spent for `domain` on `category`.
    pub fn cycles(&self, domain: DomainId, category: Category) -> u64 {
        self.ledger.spent(domain, category)
    }

    /// Cycles on `category` over all domains.
    pub fn category(&self, category: Category) -> u64 {
        self.ids().map(|domain| self.cycles(domain, category)).sum()
    }

    /// Cycles that `domain` itself worked.
    pub fn own(&self, domain: DomainId) -> u64 {
        self.sum(domain, false)
    }

    /// Cycles that the hypervisor worked for `domain`.
    pub fn hypervisor_for(&self, domain: DomainId) -> u64 {
        self.sum(domain, true)
    }

    /// Cycles that the hypervisor worked, for whomever.
    pub fn hypervisor(&self) -> u64 {
        self.ids().map(|domain| self.hypervisor_for(domain)).sum()
    }

    /// Cycles that the domains of a kind worked themselves; `domains` are the machine's.
    pub fn own_of(&self, domains: &[Domain], wanted: impl Fn(DomainKind) -> bool) -> u64 {
        let ids = self.ids().zip(domains).filter(|(_, domain)| wanted(domain.kind));
        ids.map(|(id, _)| self.own(id)).sum()
    }

    /// Cycles that were not idle.
    pub fn busy(&self) -> u64 {
        self.ledger.total() - self.idle()
    }

    /// Cycles that were idle.
    pub fn idle(&self) -> u64 {
        (0..self.ledger.threads()).map(|thread| self.ledger.idle(thread)).sum()
    }

    /// `cycles` in percent of one hardware thread, for reports.
    pub fn percent(&self, cycles: u64) -> f64 {
        if self.elapsed == 0 { 0.0 } else { 100.0 * cycles as f64 / self.elapsed as f64 }
    }

    /// `cycles` as cycles a second, for reports.
    pub fn per_second(&self, cycles: u64) -> f64 {
        if self.elapsed == 0 { 0.0 } else { cycles as f64 * self.hertz as f64 / self.elapsed as f64 }
    }

    fn ids(&self) -> impl Iterator<Item = DomainId> {
        (0..self.ledger.domains() as u16).map(DomainId::new)
    }

    fn sum(&self, domain: DomainId, hypervisor: bool) -> u64 {
        let categories = Category::ALL.into_iter().filter(|category| category.is_hypervisor() == hypervisor);
        categories.map(|category| self.cycles(domain, category)).sum()
    }
}

fn close(accounted: u64, passed: u64) -> Result<(), ConservationError> {
    if accounted == passed { Ok(()) } else { Err(ConservationError { accounted, passed }) }
}
