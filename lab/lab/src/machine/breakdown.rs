//! Breakdown of the cycles of a measured interval by domain, category and port.

use hypervisor::account::{CycleCategory, CycleUsage};
use hypervisor::domain::{Domain, DomainId, DomainKind};

/// Cycles of a machine's last measured interval, by domain and category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleBreakdown {
    /// Length of the interval in cycles of the machine's clock.
    pub elapsed: u64,
    /// Clock of the machine's processors in hertz.
    pub hertz: u64,
    /// Number of the machine's hardware threads.
    pub threads: u64,
    /// Idle cycles of all hardware threads.
    pub idle: u64,
    /// Cycles of each domain in each category; cells without cycles are left out.
    pub cells: Vec<BreakdownCell>,
}

/// Cycles that a domain used in a category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakdownCell {
    /// Name of the domain, unique in its machine.
    pub domain: String,
    /// Kind of the domain.
    pub kind: DomainKind,
    /// Index of the port that the domain uses, or `None` if it serves all ports or none.
    pub port: Option<usize>,
    /// Category of the work.
    pub category: CycleCategory,
    /// Cycles of the domain in the category.
    pub cycles: u64,
}

impl CycleBreakdown {
    /// Creates the breakdown of an interval. `port_of` returns the port that a domain uses.
    pub(super) fn new(
        usage: &CycleUsage,
        domains: &[Domain],
        hertz: u64,
        port_of: impl Fn(DomainId) -> Option<usize>,
    ) -> Self {
        let mut cells = Vec::new();
        for (id, Domain { kind, name }) in usage.by_domain(domains) {
            for category in CycleCategory::ALL {
                let cycles = usage.cycles(id, category);
                if cycles > 0 {
                    let (domain, port) = (name.clone(), port_of(id));
                    cells.push(BreakdownCell { domain, kind: *kind, port, category, cycles });
                }
            }
        }
        let threads = usage.ledger().threads() as u64;
        Self { elapsed: usage.elapsed(), hertz, threads, idle: usage.idle(), cells }
    }

    /// Converts cycles to percent of one hardware thread.
    #[must_use]
    pub fn percent(&self, cycles: u64) -> f64 {
        if self.elapsed == 0 { 0.0 } else { 100.0 * cycles as f64 / self.elapsed as f64 }
    }

    /// Returns the sum of the cycles of all cells.
    #[must_use]
    pub fn busy(&self) -> u64 {
        self.cells.iter().map(|cell| cell.cycles).sum()
    }
}
