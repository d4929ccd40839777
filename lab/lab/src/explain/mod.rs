//! Explains a row: where its cycles went by domain, category and port, or what differs between two rows. The point is
//! run again, which gives the same row.
//!
//! | module | contents |
//! |---|---|
//! | [`selector`] | the notation that names one row |
//! | [`lines`] | cycles of one or two rows by domain, port and category |
//! | [`graph`] | flame graph of one row, or of the difference of two |

pub mod graph;
pub mod lines;
pub mod selector;
#[cfg(test)]
mod tests;

use serde::Serialize;
use thiserror::Error;

use crate::catalogue::ExperimentCatalogue;
use crate::experiment::PointRunError;
use crate::machine::CycleBreakdown;
use crate::row::ResultRow;
use crate::runner::plan::{ExperimentSelection, RunPlanError, SettingAssignment};
use crate::runner::{self, ExperimentOptions};
use lines::{BreakdownDetail, BreakdownLine};
use selector::RowSelector;

/// Row with the cycles of its last measured interval.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedRow {
    /// Parameters and metrics of the explained row.
    pub row: ResultRow,
    /// Cycles by domain, category and port.
    pub cycles: CycleBreakdown,
}

/// Error of explaining a row.
#[derive(Debug, Error)]
pub enum ExplainRowError {
    /// The row's experiment or parameters do not exist.
    #[error(transparent)]
    Plan(#[from] RunPlanError),
    /// The parameters select several rows.
    #[error("{selector} selects {count} rows, for example `{example}`; give values for more parameters")]
    SeveralRows {
        /// Selector as the user wrote it.
        selector: String,
        /// Number of rows that the selector matches.
        count: usize,
        /// Selector of the first matching row.
        example: String,
    },
    /// The row's point cannot be run.
    #[error("{selector}: {error}")]
    Run {
        /// Selector as the user wrote it.
        selector: String,
        /// Error that made the point fail.
        error: PointRunError,
    },
    /// The experiment accounts for no processor's cycles in an interval.
    #[error(
        "{selector} has no processor cycles to explain: {experiment} checks rules, measures times, or multiplies counts by \
        prices; `softiov lab run {experiment}` prints its metrics, and with --csv FILE also the counts and prices"
    )]
    NoCycles {
        /// Selector as the user wrote it.
        selector: String,
        /// Name of the experiment.
        experiment: String,
    },
}

/// Runs the point of one row on a machine, and returns the row with its cycles. Values of the selector take precedence
/// over those of the machine, which may be empty: then the row is of its paper's machine.
///
/// # Errors
/// [`ExplainRowError`] if the selector does not match exactly one row, the point fails, or it counts no cycles.
pub fn explain(
    catalogue: &ExperimentCatalogue,
    selector: &RowSelector,
    machine: &[SettingAssignment],
    seed: u64,
) -> Result<ExplainedRow, ExplainRowError> {
    let (set, machine) = (selector.set.clone(), machine.to_vec());
    let options = ExperimentOptions { seed, set, machine, ..ExperimentOptions::default() };
    let selection = ExperimentSelection::Names(vec![selector.experiment.clone()]);
    let points = runner::plan::plan(catalogue, &selection, &options)?;
    let [planned] = points.as_slice() else {
        return Err(ExplainRowError::SeveralRows {
            selector: selector.to_string(),
            count: points.len(),
            example: points
                .first()
                .map(|planned| RowSelector::of(&planned.point).to_string())
                .unwrap_or_default(),
        });
    };
    let outcome = runner::run_one(planned, &options)
        .map_err(|error| ExplainRowError::Run { selector: selector.to_string(), error })?;
    let unread = runner::unread_of_machine(planned, &options);
    let row = ResultRow {
        experiment: selector.experiment.clone(),
        params: runner::plan::without(&planned.point.params(), &unread),
        metrics: outcome.metrics,
    };
    let cycles = outcome.cycles.ok_or_else(|| ExplainRowError::NoCycles {
        selector: selector.to_string(),
        experiment: selector.experiment.clone(),
    })?;
    Ok(ExplainedRow { row, cycles })
}

/// Explanation of one row, or of the difference of two, as JSON.
#[derive(Serialize)]
struct Explanation<'a> {
    version: &'static str,
    seed: u64,
    rows: Vec<ExplainedMachine<'a>>,
    cycles: Vec<BreakdownLine>,
}

/// Machine of an explained row, as JSON.
#[derive(Serialize)]
struct ExplainedMachine<'a> {
    #[serde(flatten)]
    row: &'a ResultRow,
    clock_hertz: u64,
    elapsed_cycles: u64,
    threads: u64,
    idle_cycles: u64,
}

/// Returns the explanation of one row, or of the difference between it and `other`, as JSON.
#[must_use]
pub fn to_json(
    row: &ExplainedRow,
    other: Option<&ExplainedRow>,
    detail: BreakdownDetail,
    seed: u64,
) -> String {
    let rows = std::iter::once(row).chain(other).map(|ExplainedRow { row, cycles }| ExplainedMachine {
        row,
        clock_hertz: cycles.hertz,
        elapsed_cycles: cycles.elapsed,
        threads: cycles.threads,
        idle_cycles: cycles.idle,
    });
    let all = Explanation {
        version: crate::VERSION,
        seed,
        rows: rows.collect(),
        cycles: lines::lines(&row.cycles, other.map(|other| &other.cycles), detail),
    };
    // Serializing cannot fail: an explanation has only names and finite numbers.
    serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
}
