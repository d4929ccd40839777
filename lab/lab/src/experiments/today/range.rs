//! Values with the range that their estimates permit.

use hypervisor::cost::{CostConstant, CostEvidenceKind, CostTable};

/// Value with the least and the greatest value that the evidence for it permits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EstimatedRange {
    pub(super) least: f64,
    pub(super) value: f64,
    pub(super) most: f64,
}

impl EstimatedRange {
    pub(super) const ZERO: Self = Self { least: 0.0, value: 0.0, most: 0.0 };

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            least: self.least + other.least,
            value: self.value + other.value,
            most: self.most + other.most,
        }
    }

    /// Returns the product of two ranges without negative values.
    pub(super) fn times(self, other: Self) -> Self {
        Self {
            least: self.least * other.least,
            value: self.value * other.value,
            most: self.most * other.most,
        }
    }

    pub(super) fn scaled(self, by: f64) -> Self {
        Self { least: self.least * by, value: self.value * by, most: self.most * by }
    }
}

/// Returns a constant of the cost table with the range of its row. A value that the user gave or measured has no range.
pub(super) fn price(table: &CostTable, cost: CostConstant) -> EstimatedRange {
    let (value, row) = (table[cost] as f64, table.row(cost));
    if matches!(row.kind, CostEvidenceKind::Given | CostEvidenceKind::Measured) {
        return EstimatedRange { least: value, value, most: value };
    }
    EstimatedRange { least: value.min(row.range.0 as f64), value, most: value.max(row.range.1 as f64) }
}
