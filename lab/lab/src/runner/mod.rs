//! Runs experiment points on several threads and returns rows in the order of the points.
//!
//! | module | contents |
//! |---|---|
//! | [`plan`] | selects points: experiments, overrides, shard, seeds |
//! | [`sweep`] | values of swept parameters, and their combinations |
//! | [`store`] | stores rows in a folder and reuses them |
//! | [`progress`] | progress bar on standard error |
//! | [`notes`] | inputs of a run that have no effect on its rows |
//!
//! One point always runs on one thread, which keeps it deterministic.

mod hint;
pub mod notes;
pub mod plan;
pub mod progress;
pub mod store;
pub mod sweep;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::{io, thread};

use thiserror::Error;

use crate::catalogue::ExperimentCatalogue;
use crate::experiment::{ExperimentPoint, PointOutcome, PointRunError};
use crate::named::Params;
use crate::row::{ResultRow, rounded};
use plan::{ExperimentSelection, PlannedPoint, RunPlanError, RunShard, SettingAssignment};
use store::{RowStore, RowStoreError, StoredResultRow};
use sweep::ParameterSweep;

/// Seed of a run for which the user gives none.
pub const DEFAULT_SEED: u64 = 1;

/// Options of a run of experiments.
#[derive(Clone, Debug)]
pub struct ExperimentOptions {
    /// Seed from which every point's seed is derived.
    pub seed: u64,
    /// Number of threads that run experiment points; the rows do not depend on it.
    pub jobs: NonZeroUsize,
    /// Shard of the experiment points to run; `None` runs all points.
    pub shard: Option<RunShard>,
    /// Assignments `key=value` to axes and settings of the run.
    pub set: Vec<SettingAssignment>,
    /// Axes and settings that take several values in the run, combined with each other.
    pub sweep: Vec<ParameterSweep>,
    /// Values of a machine file ([`crate::machine_file`]). A point must read one of them. Those that it does not read are
    /// no parameters of its row, unless `unaffected` is set.
    pub machine: Vec<SettingAssignment>,
    /// Produce rows also at points where a changed setting has no effect. Otherwise such points fail.
    pub unaffected: bool,
    /// Folder of stored rows; points with a row of equal inputs are not run again.
    pub out: Option<PathBuf>,
}

impl Default for ExperimentOptions {
    /// Returns the options of a run of all points with one thread, the default seed and no changed values.
    fn default() -> Self {
        Self {
            seed: DEFAULT_SEED,
            jobs: NonZeroUsize::MIN,
            shard: None,
            set: Vec::new(),
            sweep: Vec::new(),
            machine: Vec::new(),
            unaffected: false,
            out: None,
        }
    }
}

impl ExperimentOptions {
    /// Returns `true` if a setting has its value from the machine file and not from an assignment or a sweep.
    fn only_in_machine(&self, name: &str) -> bool {
        self.machine.iter().any(|value| value.key == name)
            && !self.set.iter().any(|assignment| assignment.key == name)
            && !self.sweep.iter().any(|sweep| sweep.key == name)
    }
}

/// Result of a run of experiments.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    /// Records of all points, in the order of the points.
    pub records: Vec<StoredResultRow>,
    /// Number of records that were taken from the folder of stored rows instead of a new run.
    pub reused: usize,
    /// Virtual time simulated by the points that were run, in picoseconds.
    pub simulated_ps: u128,
    /// Number of events handled by the points that were run.
    pub events: u128,
}

/// Observer of an experiment run's rows and failures.
pub trait RunObserver {
    /// Reports the number of points of the run before it starts.
    fn planned(&mut self, points: usize) {
        let _ = points;
    }
    /// Reports that a point is complete. The order of points is arbitrary.
    fn done(&mut self, point: &ExperimentPoint) {
        let _ = point;
    }
    /// Reports each result row, in the order of the points.
    ///
    /// # Errors
    /// If rows are no longer wanted; the run then stops.
    fn row(&mut self, row: &ResultRow) -> io::Result<()> {
        let _ = row;
        Ok(())
    }
}

/// Observer that ignores all progress and rows.
impl RunObserver for () {}

/// Point that could not be run, with its error.
#[derive(Debug, Error)]
#[error("{point}: {error}")]
pub struct FailedPoint {
    /// Experiment point that failed.
    pub point: ExperimentPoint,
    /// Error that made the point fail.
    pub error: PointRunError,
}

/// Error of an experiment run.
#[derive(Debug, Error)]
pub enum LabError {
    /// The selected experiment points could not be determined before the run.
    #[error(transparent)]
    Plan(#[from] RunPlanError),
    /// Result rows cannot be stored.
    #[error("cannot store the rows of the run: {0}")]
    Store(#[from] RowStoreError),
    /// Some experiment points failed. The others were run, and stored if requested.
    #[error("{} of {points} points failed: {}", .failures.len(), first(.failures))]
    Failed {
        /// Failed points, in the order of the points.
        failures: Vec<FailedPoint>,
        /// Number of points that were to be run.
        points: usize,
        /// Result of the points that did not fail.
        run: Box<RunResult>,
    },
    /// Result rows cannot be written to the output.
    #[error("cannot write the result rows to the output: {0}")]
    Output(io::Error),
}

/// Returns one line per experiment and error with the first such point, up to 20 lines.
fn first(failures: &[FailedPoint]) -> String {
    const SHOWN: usize = 20;
    let mut reasons: Vec<(&FailedPoint, usize)> = Vec::new();
    for failure in failures {
        let is_same = |(known, _): &&mut (&FailedPoint, usize)| {
            known.point.experiment == failure.point.experiment && known.error == failure.error
        };
        match reasons.iter_mut().find(is_same) {
            Some((_, more)) => *more += 1,
            None => reasons.push((failure, 0)),
        }
    }
    let line = |(failure, more): &(&FailedPoint, usize)| match more {
        0 => format!("\n  {failure}"),
        more => format!("\n  {failure} (and {more} more of its points)"),
    };
    let mut lines: Vec<_> = reasons.iter().take(SHOWN).map(line).collect();
    if reasons.len() > SHOWN {
        lines.push(format!("\n  and {} more", reasons.len() - SHOWN));
    }
    lines.concat()
}

/// Runs the selected points of experiments on several threads. The rows depend on the catalogue, the
/// selection, the seed and the settings, but not on the number of jobs or on stored rows.
///
/// # Errors
/// [`LabError`] if the plan is invalid, a point fails, or rows cannot be stored or written.
pub fn run(
    catalogue: &ExperimentCatalogue,
    selection: &ExperimentSelection,
    options: &ExperimentOptions,
    observer: &mut dyn RunObserver,
) -> Result<RunResult, LabError> {
    run_points(&plan::plan(catalogue, selection, options)?, options, observer)
}

/// Runs planned points as [`run`] does.
pub(crate) fn run_points(
    points: &[PlannedPoint],
    options: &ExperimentOptions,
    observer: &mut dyn RunObserver,
) -> Result<RunResult, LabError> {
    let store = options.out.as_deref().map(RowStore::open).transpose()?;
    observer.planned(points.len());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..options.jobs.get().min(points.len()) {
            let (next, store, sender) = (&next, store.as_ref(), sender.clone());
            scope.spawn(move || work(points, next, store, options, &sender));
        }
        drop(sender);
        let run = collect(points, &receiver, observer);
        // After an early end the workers stop too, each after its current point.
        next.store(points.len(), Ordering::Relaxed);
        run
    })
}

/// Result of an experiment point: its record, with the outcome if the point was run and not taken from the
/// folder of stored rows.
type PointResult = Result<(StoredResultRow, Option<PointOutcome>), PointError>;

#[derive(Debug)]
enum PointError {
    Run(PointRunError),
    Store(RowStoreError),
}

/// Runs the points that no other thread has taken, and sends each result to `done`.
fn work(
    points: &[PlannedPoint],
    next: &AtomicUsize,
    store: Option<&RowStore>,
    options: &ExperimentOptions,
    done: &Sender<(usize, PointResult)>,
) {
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(planned) = points.get(at) else { return };
        if done.send((at, find(planned, store, options))).is_err() {
            return;
        }
    }
}

/// Returns the stored record of a point, or runs the point and stores its record.
fn find(planned: &PlannedPoint, store: Option<&RowStore>, options: &ExperimentOptions) -> PointResult {
    let seed = options.seed;
    let stored = store.and_then(|store| store.find(seed, planned));
    if let Some(record) = stored.filter(|record| record.unread.is_empty() || !options.unaffected) {
        return Ok((record, None));
    }
    let outcome = run_one(planned, options).map_err(PointError::Run)?;
    let record = StoredResultRow::new(seed, planned, &outcome, unread_of_machine(planned, options));
    if let Some(store) = store {
        store.keep(planned, &record).map_err(PointError::Store)?;
    }
    Ok((record, Some(outcome)))
}

/// Runs an experiment point and checks the outcome against the experiment's declaration.
pub(crate) fn run_one(
    planned: &PlannedPoint,
    options: &ExperimentOptions,
) -> Result<PointOutcome, PointRunError> {
    let mut outcome = (planned.experiment.run)(&planned.point, &planned.context)?;
    if !options.unaffected {
        check_effects(planned, options)?;
    }
    let declared = planned.experiment.metrics.iter().map(|metric| metric.name);
    if !outcome.metrics.names().eq(declared) {
        let names: Vec<_> = outcome.metrics.names().collect();
        return Err(PointRunError::Invariant(format!("the metrics differ from those declared: {names:?}")));
    }
    if let Some((name, value)) = outcome.metrics.iter().find(|(_, value)| !value.is_finite()) {
        return Err(PointRunError::Invariant(format!("{name} is {value}")));
    }
    let metrics = outcome.metrics.iter();
    outcome.metrics = metrics.map(|(name, &value)| (name.to_owned(), rounded(value))).collect();
    Ok(outcome)
}

/// Checks that a point has read all settings that the run changes, and at least one value of a machine file.
fn check_effects(planned: &PlannedPoint, options: &ExperimentOptions) -> Result<(), PointRunError> {
    let is_unread = |name: &&str| !planned.context.settings.was_read(name);
    let (of_machine, of_run): (Vec<_>, Vec<_>) =
        planned.point.changed.names().partition(|name| options.only_in_machine(name));
    let unread: Vec<_> = of_run.into_iter().filter(is_unread).collect();
    if !unread.is_empty() {
        return Err(PointRunError::NoEffect(unread.join(", ")));
    }
    if !of_machine.is_empty() && of_machine.iter().all(is_unread) {
        return Err(PointRunError::NoEffect("all values of the machine file".to_owned()));
    }
    Ok(())
}

/// Returns the values that a point has from the machine file and that its run has not read. Returns none if the run permits
/// settings without effect, which are parameters then.
pub(crate) fn unread_of_machine(planned: &PlannedPoint, options: &ExperimentOptions) -> Params {
    let is_unread = |name: &str| {
        !options.unaffected && options.only_in_machine(name) && !planned.context.settings.was_read(name)
    };
    let changed = planned.point.changed.iter().filter(|(name, _)| is_unread(name));
    changed.map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

/// Collects the workers' results in the order of the points.
fn collect(
    points: &[PlannedPoint],
    done: &Receiver<(usize, PointResult)>,
    observer: &mut dyn RunObserver,
) -> Result<RunResult, LabError> {
    let mut run = RunResult::default();
    let mut failures = BTreeMap::new();
    let mut early = BTreeMap::new();
    let mut due = 0;
    for (at, result) in done {
        observer.done(&points[at].point);
        match result {
            Ok((record, outcome)) => {
                match outcome {
                    Some(outcome) => {
                        run.simulated_ps += u128::from(outcome.simulated_ps);
                        run.events += u128::from(outcome.events);
                    }
                    None => run.reused += 1,
                }
                early.insert(at, record);
            }
            Err(PointError::Store(error)) => return Err(error.into()),
            Err(PointError::Run(error)) => {
                failures.insert(at, FailedPoint { point: points[at].point.clone(), error });
            }
        }
        // A failed point has no row and does not hold back those of later points.
        loop {
            if let Some(record) = early.remove(&due) {
                observer.row(&record.row).map_err(LabError::Output)?;
                run.records.push(record);
            } else if !failures.contains_key(&due) {
                break;
            }
            due += 1;
        }
    }
    if failures.is_empty() {
        return Ok(run);
    }
    let failures = failures.into_values().collect();
    Err(LabError::Failed { failures, points: points.len(), run: Box::new(run) })
}
