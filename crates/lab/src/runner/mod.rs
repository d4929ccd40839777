//! Runs points on several threads and hands out rows in the order of the points.
//!
//! | module | what it is |
//! |---|---|
//! | [`plan`] | which points: selection, overrides, shard, seeds |
//! | [`store`] | rows kept in a folder, and found again |
//! | [`progress`] | a bar on standard error |
//!
//! Left out: running one point over several threads. A point is deterministic because one thread runs it.

pub mod plan;
pub mod progress;
pub mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::{io, thread};

use thiserror::Error;

use crate::catalogue::Catalogue;
use crate::experiment::{Outcome, Point, RunError};
use crate::row::{Row, rounded};
use plan::{Assignment, PlanError, Planned, Selection, Shard};
use store::{Record, Store, StoreError};

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// What every point's seed follows from.
    pub seed: u64,
    /// How many threads; the rows do not depend on it.
    pub jobs: NonZeroUsize,
    /// Which part of the points, if not all.
    pub shard: Option<Shard>,
    /// What to change.
    pub set: Vec<Assignment>,
    /// Whether points have a row at which something that was changed has no effect. Otherwise they are refused.
    pub unaffected: bool,
    /// Where rows are kept; what is there already with the same inputs is not run again.
    pub out: Option<PathBuf>,
}

/// What was run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Every point's row and what it was found with, in the order of the points.
    pub records: Vec<Record>,
    /// How many of them were found in the folder.
    pub reused: usize,
    /// Virtual time of those that were run, picoseconds.
    pub simulated_ps: u128,
    /// Events of those that were run.
    pub events: u128,
}

/// What someone who waits gets to see.
pub trait Watch {
    /// This many points are about to be run.
    fn planned(&mut self, points: usize) {
        let _ = points;
    }
    /// A point is done, in no particular order.
    fn done(&mut self, point: &Point) {
        let _ = point;
    }
    /// The next row, in the order of the points.
    ///
    /// # Errors
    /// Nobody wants rows any more; nothing further is run.
    fn row(&mut self, row: &Row) -> io::Result<()> {
        let _ = row;
        Ok(())
    }
}

/// Nobody waits.
impl Watch for () {}

/// A point failed.
#[derive(Debug, Error)]
#[error("{point}: {error}")]
pub struct Failure {
    /// Which.
    pub point: Point,
    /// Why.
    pub error: RunError,
}

/// A run is not complete.
#[derive(Debug, Error)]
pub enum LabError {
    /// It was not begun.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Rows cannot be kept.
    #[error("rows cannot be kept: {0}")]
    Store(#[from] StoreError),
    /// Points failed; the others were run, and kept if asked for. In the order of the points.
    #[error("{} of {points} points failed: {}", .failures.len(), first(.failures))]
    Failed {
        /// Those that failed.
        failures: Vec<Failure>,
        /// How many were run.
        points: usize,
        /// The others.
        run: Box<Run>,
    },
    /// Rows cannot be handed over.
    #[error("cannot write rows: {0}")]
    Output(io::Error),
}

/// One line for each experiment and reason, with the first point that failed so; up to a screenful.
fn first(failures: &[Failure]) -> String {
    const SHOWN: usize = 20;
    let mut reasons: Vec<(&Failure, usize)> = Vec::new();
    for failure in failures {
        let is_same = |(known, _): &&mut (&Failure, usize)| {
            known.point.experiment == failure.point.experiment && known.error == failure.error
        };
        match reasons.iter_mut().find(is_same) {
            Some((_, more)) => *more += 1,
            None => reasons.push((failure, 0)),
        }
    }
    let line = |(failure, more): &(&Failure, usize)| match more {
        0 => format!("\n  {failure}"),
        more => format!("\n  {failure} (and {more} more of its points)"),
    };
    let mut lines: Vec<_> = reasons.iter().take(SHOWN).map(line).collect();
    if reasons.len() > SHOWN {
        lines.push(format!("\n  and {} more", reasons.len() - SHOWN));
    }
    lines.concat()
}

/// Runs what is selected. The rows depend on the catalogue, the selection, the seed and what is set; not on the
/// number of jobs, nor on what was kept before.
///
/// # Errors
/// See [`LabError`].
pub fn run(
    catalogue: &Catalogue,
    selection: &Selection,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<Run, LabError> {
    let points = plan::plan(catalogue, selection, options)?;
    let store = options.out.as_deref().map(Store::open).transpose()?;
    watch.planned(points.len());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..options.jobs.get().min(points.len()) {
            let (points, next, store, sender) = (&points, &next, store.as_ref(), sender.clone());
            scope.spawn(move || work(points, next, store, options, &sender));
        }
        drop(sender);
        let run = collect(&points, &receiver, watch);
        // Whatever ended the run early ends the workers too, each after its point.
        next.store(points.len(), Ordering::Relaxed);
        run
    })
}

/// One point, come back: kept from before, run now, or failed.
type Found = Result<(Record, Option<Outcome>), PointError>;

#[derive(Debug)]
enum PointError {
    Run(RunError),
    Store(StoreError),
}

/// Takes the next point until there is none.
fn work(
    points: &[Planned],
    next: &AtomicUsize,
    store: Option<&Store>,
    options: &Options,
    done: &Sender<(usize, Found)>,
) {
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(planned) = points.get(at) else { return };
        if done.send((at, find(planned, store, options))).is_err() {
            return;
        }
    }
}

/// The point's row: from the folder, or from running it.
fn find(planned: &Planned, store: Option<&Store>, options: &Options) -> Found {
    let seed = options.seed;
    if let Some(record) = store.and_then(|store| store.find(seed, planned)) {
        return Ok((record, None));
    }
    let outcome = run_one(planned, options.unaffected).map_err(PointError::Run)?;
    let record = Record::new(seed, planned, &outcome);
    if let Some(store) = store {
        store.keep(&record).map_err(PointError::Store)?;
    }
    Ok((record, Some(outcome)))
}

/// Runs a point and holds the outcome to what the experiment declares.
fn run_one(planned: &Planned, unaffected: bool) -> Result<Outcome, RunError> {
    let mut outcome = (planned.experiment.run)(&planned.point, &planned.context)?;
    let unread = |name: &&str| !planned.context.settings.was_read(name);
    let unread: Vec<_> = planned.point.changed.names().filter(unread).collect();
    if !unread.is_empty() && !unaffected {
        return Err(RunError::NoEffect(unread.join(", ")));
    }
    let declared = planned.experiment.metrics.iter().map(|metric| metric.name);
    if !outcome.metrics.names().eq(declared) {
        let names: Vec<_> = outcome.metrics.names().collect();
        return Err(RunError::Invariant(format!("the metrics are not those declared, but {names:?}")));
    }
    if let Some((name, value)) = outcome.metrics.iter().find(|(_, value)| !value.is_finite()) {
        return Err(RunError::Invariant(format!("{name} is {value}")));
    }
    let metrics = outcome.metrics.iter();
    outcome.metrics = metrics.map(|(name, &value)| (name.to_owned(), rounded(value))).collect();
    Ok(outcome)
}

/// Puts what the workers found in order.
fn collect(
    points: &[Planned],
    done: &Receiver<(usize, Found)>,
    watch: &mut dyn Watch,
) -> Result<Run, LabError> {
    let mut run = Run::default();
    let mut failures = BTreeMap::new();
    let mut early = BTreeMap::new();
    let mut due = 0;
    for (at, result) in done {
        watch.done(&points[at].point);
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
                failures.insert(at, Failure { point: points[at].point.clone(), error });
            }
        }
        // A point that failed has no row, and does not hold back those of others.
        loop {
            if let Some(record) = early.remove(&due) {
                watch.row(&record.row).map_err(LabError::Output)?;
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
