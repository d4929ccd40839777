//! Predicts the cycles of a received segment on today's paths.

use serde::Serialize;

use crate::experiments;
use crate::row::ResultRow;
use crate::runner::plan::{ExperimentSelection, SettingAssignment};
use crate::runner::{self, ExperimentOptions, LabError};

/// Predicted cost of a path between guest and network on this host, with posted interrupts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostPath {
    /// Name of the path, a value of the axis `path` of `today`.
    pub path: String,
    /// Cycles of guest, hypervisor and host for a received segment.
    pub cycles: f64,
    /// Cycles with all counts, and all prices that were not measured, at their least.
    pub least: f64,
    /// Cycles with all counts, and all prices that were not measured, at their most.
    pub most: f64,
    /// Payload for the cycles of a processor, in gigabits per second.
    pub gbps_per_core: f64,
}

/// Predicts all of today's paths with the constants that `settings` assign.
///
/// # Errors
/// [`LabError`] if a point cannot be run.
pub fn paths(settings: &[SettingAssignment]) -> Result<Vec<HostPath>, LabError> {
    let posted = SettingAssignment::from(("interrupts", "posted"));
    let options = ExperimentOptions {
        set: settings.iter().cloned().chain([posted]).collect(),
        // No path reads all measured constants.
        unaffected: true,
        ..ExperimentOptions::default()
    };
    let selection = ExperimentSelection::Names(vec!["today".to_owned()]);
    let run = runner::run(&experiments::catalogue(), &selection, &options, &mut ())?;
    Ok(run.records.iter().map(|record| path(&record.row)).collect())
}

fn path(row: &ResultRow) -> HostPath {
    let metric = |name| row.metrics.get(name).copied().unwrap_or_default();
    HostPath {
        path: row.params.get("path").map(ToString::to_string).unwrap_or_default(),
        cycles: metric("cycles"),
        least: metric("cycles_least"),
        most: metric("cycles_most"),
        gbps_per_core: metric("gbps_per_core"),
    }
}
