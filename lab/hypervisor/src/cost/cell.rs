//! Cells of the cost table: the value of a constant on one machine.

use super::machine::MachineModel;
use super::row::{CostConstant, CostEvidenceKind};

/// Row of the cost table: a constant, with a cell for each machine that has a value of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct CostTableRow {
    /// Constant whose values the row gives.
    pub(super) constant: CostConstant,
    /// Values of the constant, at most one for each machine.
    pub(super) cells: &'static [CostCell],
}

/// Cell of the cost table: machine, value, plausible range, kind of evidence and source.
pub(super) type CostCell = (MachineModel, u64, (u64, u64), CostEvidenceKind, &'static str);

/// Source of an estimate without a publication behind it.
const ESTIMATE: &str = "engineering estimate";

/// Creates a cell for an estimate without a publication behind it.
pub(super) const fn estimate(machine: MachineModel, value: u64, range: (u64, u64)) -> CostCell {
    (machine, value, range, CostEvidenceKind::Estimate, ESTIMATE)
}
