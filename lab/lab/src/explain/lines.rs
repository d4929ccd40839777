//! Lines of an explanation: cycles of one or two rows by domain, port and category, the most important first.

use std::collections::BTreeMap;

use hypervisor::account::CycleCategory;
use hypervisor::domain::DomainKind;
use serde::Serialize;

use crate::machine::{BreakdownCell, CycleBreakdown};
use crate::row::rounded;

/// Granularity at which an explanation lists guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakdownDetail {
    /// Lists every domain by itself.
    Domain,
    /// Adds up the guests of each port.
    Port,
    /// Adds up all guests.
    Kind,
}

/// Line of an explanation: cycles of a domain, or of several guests, in one category.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BreakdownLine {
    /// Name of the domain, or of the guests that are added up.
    pub domain: String,
    /// Index of the port that the domains use, or `None` if they serve all ports or none, or ports are added up.
    pub port: Option<usize>,
    /// Category of the work.
    pub category: &'static str,
    /// The hypervisor does this work on the domain's behalf.
    pub hypervisor: bool,
    /// Millions of cycles per second in the row.
    pub mcycles_per_s: f64,
    /// Percent of a hardware thread in the row.
    pub thread_pct: f64,
    /// Values of the other row, if two rows are compared.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub other: Option<OtherRowValues>,
}

/// Values of the second of two compared rows in one line of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OtherRowValues {
    /// Millions of cycles per second in the second row.
    pub other_mcycles_per_s: f64,
    /// Percent of a hardware thread in the second row.
    pub other_thread_pct: f64,
    /// Percent of a hardware thread in the second row, less that in the first.
    pub difference_pct: f64,
}

/// Key of an explanation's line: name of the domain, port, index of the category.
type LineKey = (String, Option<usize>, usize);

/// Name of all guests together, if two rows are compared whose guests are of different kinds.
const GUESTS: &str = "guests";

/// Returns the lines that explain a row, those with most cycles first. With `other`, returns the lines that explain the
/// difference, the greatest difference first. Guests of the two rows share a line even if their kinds differ, such as
/// programs of a bare machine and HVM guests.
#[must_use]
pub fn lines(
    row: &CycleBreakdown,
    other: Option<&CycleBreakdown>,
    detail: BreakdownDetail,
) -> Vec<BreakdownLine> {
    let name_of = GuestNames::new(row, other);
    let mut sums: BTreeMap<LineKey, [u64; 2]> = BTreeMap::new();
    for (side, cycles) in std::iter::once(row).chain(other).enumerate() {
        for cell in &cycles.cells {
            sums.entry(key(cell, detail, name_of)).or_default()[side] += cell.cycles;
        }
    }
    let mut lines: Vec<_> = sums
        .into_iter()
        .map(|((domain, port, index), [first, second])| {
            let category = CycleCategory::ALL[index];
            let compared = other.map(|other| OtherRowValues {
                other_mcycles_per_s: mcycles_per_s(other, second),
                other_thread_pct: rounded(other.percent(second)),
                difference_pct: rounded(other.percent(second) - row.percent(first)),
            });
            BreakdownLine {
                domain,
                port,
                category: category.name(),
                hypervisor: category.is_hypervisor(),
                mcycles_per_s: mcycles_per_s(row, first),
                thread_pct: rounded(row.percent(first)),
                other: compared,
            }
        })
        .collect();
    // The sort is stable: lines of equal size stay in the order of their keys.
    lines.sort_by(|a, b| b.size().total_cmp(&a.size()));
    lines
}

impl BreakdownLine {
    /// Returns the importance of the line: its cycles, or the size of the difference.
    fn size(&self) -> f64 {
        self.other.map_or(self.thread_pct, |other| other.difference_pct.abs())
    }
}

/// Names under which the guests of one or two rows are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuestNames {
    /// Name of each kind of guest.
    Kind,
    /// Common name of all guests, since those of the two rows are of different kinds.
    Common,
}

impl GuestNames {
    /// Returns one name for all guests if the two rows have guests of different kinds.
    pub(super) fn new(row: &CycleBreakdown, other: Option<&CycleBreakdown>) -> Self {
        let has_kind = |row: &CycleBreakdown, kind| row.cells.iter().any(|cell| cell.kind == kind);
        let differs = |kind| other.is_some_and(|other| has_kind(row, kind) != has_kind(other, kind));
        let mut guests = [DomainKind::Hvm, DomainKind::Pvm, DomainKind::Native].into_iter();
        if guests.any(differs) { Self::Common } else { Self::Kind }
    }

    /// Returns the name of all domains of a kind together.
    pub(super) fn of(self, kind: DomainKind) -> &'static str {
        match kind {
            DomainKind::Hypervisor => "hypervisor",
            DomainKind::Dom0 => "service domain",
            _ if self == Self::Common => GUESTS,
            DomainKind::Hvm => "HVM guests",
            DomainKind::Pvm => "PV guests",
            DomainKind::Native => "programs",
        }
    }
}

fn key(cell: &BreakdownCell, detail: BreakdownDetail, guests: GuestNames) -> LineKey {
    let domain = if detail == BreakdownDetail::Domain || !cell.kind.is_guest() {
        cell.domain.clone()
    } else {
        guests.of(cell.kind).to_owned()
    };
    let port = if detail == BreakdownDetail::Kind { None } else { cell.port };
    (domain, port, cell.category.index())
}

fn mcycles_per_s(breakdown: &CycleBreakdown, cycles: u64) -> f64 {
    let elapsed = breakdown.elapsed.max(1) as f64;
    rounded(cycles as f64 * breakdown.hertz as f64 / elapsed / 1e6)
}
