//! Cost table and predictions for this machine: constants measured on this machine, the `modern` table's
//! values for all others, and the predicted performance of SR-IOV and paravirtualized I/O.
//!
//! | module | contents |
//! |---|---|
//! | `rules` | constants computed from measurements |
//! | `predict` | compared set-ups and their sensitivities |
//! | `paths` | cycles of a segment on today's paths |
//!
//! Measuring needs a clock, so the caller provides the readings.

mod paths;
mod predict;
mod rules;
#[cfg(test)]
mod tests;

use hypervisor::cost::{CostEvidenceKind, CostTable};

pub use paths::{HostPath, paths};
pub use predict::{HostPrediction, predict};

use crate::calibrate::sensitivity::RunCostTable;
use crate::catalogue::ModelConstant;
use crate::runner::plan::SettingAssignment;

/// Measured value of this host by name: nanoseconds, nanoseconds per 1,000 bytes, or events per second.
pub type HostMeasurement<'a> = (&'a str, f64);

/// Name of the cost table that supplies the constants not measured on this host.
const BASE: &str = "modern";

/// Creates the cost table of this machine from measurements.
#[must_use]
pub fn table(readings: &[HostMeasurement]) -> CostTable {
    let mut table = CostTable::modern();
    rules::apply(&mut table, readings);
    table
}

/// Returns the settings for experiments with this cost table: the base table and every measured constant.
#[must_use]
pub fn settings(table: &CostTable) -> Vec<SettingAssignment> {
    let measured = table.iter().filter(|row| row.kind == CostEvidenceKind::Measured);
    let constants = measured.map(|row| SettingAssignment::from((format!("cost.{}", row.name), row.value)));
    std::iter::once(SettingAssignment::from(("table", BASE))).chain(constants).collect()
}

/// Returns the cost constants for display, marking those measured on this machine.
#[must_use]
pub fn parameters(table: &CostTable) -> Vec<ModelConstant> {
    let of = |row: &hypervisor::cost::CostRow| {
        if row.kind == CostEvidenceKind::Measured { "this machine" } else { BASE }
    };
    table.iter().map(|row| ModelConstant::of(of(row), row)).collect()
}

fn constants(table: &CostTable) -> RunCostTable {
    RunCostTable { table: table.clone(), set: settings(table) }
}
