//! Runs the experiment points that calibration targets need, with given cost constants, several points at a time.

use std::collections::BTreeMap;
use std::num::{NonZeroU8, NonZeroUsize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{panic, thread};

use super::target::CalibrationTarget;
use crate::catalogue::{ExperimentCatalogue, ExperimentPointRef};
use crate::experiments;
use crate::named::Metrics;
use crate::report::seeds::interval;
use crate::runner::plan::{ExperimentSelection, SettingAssignment};
use crate::runner::{self, ExperimentOptions, LabError};

/// Cost constants of the model by name, each with its value.
pub(super) type ConstantValues = Vec<(&'static str, u64)>;

/// Default seed of `softiov lab run`.
const SEED: u64 = 1;

/// Run of a point with cost constants and a seed.
#[derive(Clone, Copy)]
struct PointTask<'a> {
    constants: &'a ConstantValues,
    point: &'static ExperimentPointRef,
    seed: u64,
}

pub(super) struct CalibrationRunner {
    catalogue: ExperimentCatalogue,
    targets: Vec<&'static CalibrationTarget>,
    /// Experiment points that the calibration targets need, without duplicates.
    points: Vec<&'static ExperimentPointRef>,
    /// Settings that all runs of the calibration have.
    set: Vec<SettingAssignment>,
    /// Values of a machine file, for all runs.
    machine: Vec<SettingAssignment>,
    jobs: NonZeroUsize,
    /// Seeds of each set of constants: this many from the default one on.
    seeds: u64,
    /// Values of targets by constants and seed. Fits with another target left out begin with equal runs.
    known: Mutex<BTreeMap<ConstantValues, Vec<Vec<f64>>>>,
}

impl CalibrationRunner {
    pub(super) fn new(targets: Vec<&'static CalibrationTarget>, jobs: NonZeroUsize) -> Self {
        let mut points: Vec<&'static ExperimentPointRef> = Vec::new();
        for point in targets.iter().flat_map(|target| target.points) {
            if !points.contains(&point) {
                points.push(point);
            }
        }
        Self {
            catalogue: experiments::catalogue(),
            targets,
            points,
            set: Vec::new(),
            machine: Vec::new(),
            jobs,
            seeds: 1,
            known: Mutex::default(),
        }
    }

    /// Adds settings to all runs of the calibration; the last setting of a name counts.
    pub(super) fn with(mut self, set: &[SettingAssignment]) -> Self {
        self.set.extend_from_slice(set);
        self
    }

    /// Runs all points on the machine of a file.
    pub(super) fn on(mut self, machine: &[SettingAssignment]) -> Self {
        self.machine = machine.to_vec();
        self
    }

    /// Runs all points with several seeds; a target's value is the mean.
    pub(super) fn over(mut self, seeds: NonZeroU8) -> Self {
        self.seeds = seeds.get().into();
        self
    }

    pub(super) fn targets(&self) -> &[&'static CalibrationTarget] {
        &self.targets
    }

    pub(super) fn points(&self) -> &[&'static ExperimentPointRef] {
        &self.points
    }

    /// Runs the points of all targets with each set of cost constants. Returns each target's value for each set, the mean
    /// over the seeds.
    pub(super) fn run(&self, sets: &[ConstantValues]) -> Result<Vec<Vec<f64>>, LabError> {
        let all = self.run_seeds(sets)?;
        Ok(all.iter().map(|seeds| intervals(seeds).map(|(mean, _)| mean).collect()).collect())
    }

    /// Runs the points of all targets with each set of cost constants and each seed. Returns each target's value for each
    /// set and seed.
    pub(super) fn run_seeds(&self, sets: &[ConstantValues]) -> Result<Vec<Vec<Vec<f64>>>, LabError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new: Vec<_> = sets.iter().filter(|set| !known.contains_key(*set)).collect();
        new.dedup();
        let of_set = |constants| {
            let of_seed =
                move |seed| self.points.iter().map(move |point| PointTask { constants, point, seed });
            (SEED..SEED + self.seeds).flat_map(of_seed)
        };
        let tasks: Vec<_> = new.iter().flat_map(|set| of_set(*set)).collect();
        let metrics = self.run_tasks(&tasks)?;
        let values: Vec<_> = metrics.chunks(self.points.len()).map(|metrics| self.values(metrics)).collect();
        let values = values.chunks(self.seeds as usize).map(<[Vec<f64>]>::to_vec);
        known.extend(new.into_iter().cloned().zip(values));
        Ok(sets.iter().map(|set| known[set].clone()).collect())
    }

    /// Runs each experiment point with the cost constants it is paired with, and the default seed. Returns the metrics in
    /// the order of `tasks`.
    pub(super) fn find(
        &self,
        tasks: &[(&ConstantValues, &'static ExperimentPointRef)],
    ) -> Result<Vec<Metrics>, LabError> {
        let task = |&(constants, point): &(_, _)| PointTask { constants, point, seed: SEED };
        self.run_tasks(&tasks.iter().map(task).collect::<Vec<_>>())
    }

    /// Runs each task, several at a time. Returns the metrics in the order of `tasks`.
    fn run_tasks(&self, tasks: &[PointTask<'_>]) -> Result<Vec<Metrics>, LabError> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut found = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(task) = tasks.get(at) else { return found };
                found.push((at, self.run_task(task)));
            }
        };
        let found: Vec<_> = thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs.get().min(tasks.len())).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
                .collect()
        });
        let mut metrics = vec![Metrics::default(); tasks.len()];
        for (at, found) in found {
            metrics[at] = found?;
        }
        Ok(metrics)
    }

    /// Returns the relative deviation of the model's value `found` from each calibration target, times the target's
    /// weight.
    pub(super) fn misfits<'a>(&'a self, found: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        self.targets.iter().zip(found).map(|(target, found)| target.weight * (found / target.value().0 - 1.0))
    }

    /// Computes the model's value of each calibration target from the metrics of all experiment points.
    pub(super) fn values(&self, metrics: &[Metrics]) -> Vec<f64> {
        let of = |point: &ExperimentPointRef| {
            let at = self.points.iter().position(|known| *known == point);
            at.map(|at| &metrics[at])
        };
        let value = |target: &&CalibrationTarget| {
            let metrics: Vec<_> = target.points.iter().filter_map(of).collect();
            target.formula.value(&metrics)
        };
        self.targets.iter().map(value).collect()
    }

    fn run_task(&self, task: &PointTask<'_>) -> Result<Metrics, LabError> {
        let PointTask { constants, point, seed } = *task;
        let axes = point.axes.iter().copied().map(SettingAssignment::from);
        let constants =
            constants.iter().map(|(name, value)| SettingAssignment::from((format!("cost.{name}"), value)));
        let set = self.set.iter().cloned().chain(axes).chain(constants).collect();
        let options = ExperimentOptions {
            seed,
            set,
            machine: self.machine.clone(),
            unaffected: true,
            ..ExperimentOptions::default()
        };
        let selection = ExperimentSelection::Names(vec![point.experiment.to_owned()]);
        let run = runner::run(&self.catalogue, &selection, &options, &mut ())?;
        Ok(run.records.into_iter().next().map(|record| record.row.metrics).unwrap_or_default())
    }
}

/// Returns mean and half of the interval of 95 % of each target's values by seed.
pub(super) fn intervals(seeds: &[Vec<f64>]) -> impl Iterator<Item = (f64, f64)> + '_ {
    let targets = seeds.first().map_or(0, Vec::len);
    (0..targets).map(|at| interval(&seeds.iter().map(|values| values[at]).collect::<Vec<_>>()))
}
