//! Runs the experiment points that calibration targets need, with given cost constants, several points at a time.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{panic, thread};

use super::target::CalibrationTarget;
use crate::catalogue::{ExperimentCatalogue, ExperimentPointRef};
use crate::experiments;
use crate::named::Metrics;
use crate::runner::plan::{ExperimentSelection, SettingAssignment};
use crate::runner::{self, ExperimentOptions, LabError};

/// Cost constants of the model by name, each with its value.
pub(super) type ConstantValues = Vec<(&'static str, u64)>;

/// Default seed of `softiov lab run`.
const SEED: u64 = 1;

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
    /// Values of targets by constants. Fits with another target left out begin with equal runs.
    known: Mutex<BTreeMap<ConstantValues, Vec<f64>>>,
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

    pub(super) fn targets(&self) -> &[&'static CalibrationTarget] {
        &self.targets
    }

    pub(super) fn points(&self) -> &[&'static ExperimentPointRef] {
        &self.points
    }

    /// Runs the points of all targets with each set of cost constants. Returns each target's value for each set.
    pub(super) fn run(&self, sets: &[ConstantValues]) -> Result<Vec<Vec<f64>>, LabError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new: Vec<_> = sets.iter().filter(|set| !known.contains_key(*set)).collect();
        new.dedup();
        let tasks: Vec<_> =
            new.iter().flat_map(|set| self.points.iter().map(|point| (*set, *point))).collect();
        let metrics = self.find(&tasks)?;
        let values = metrics.chunks(self.points.len()).map(|metrics| self.values(metrics));
        known.extend(new.into_iter().cloned().zip(values));
        Ok(sets.iter().map(|set| known[set].clone()).collect())
    }

    /// Runs each experiment point with the cost constants it is paired with. Returns the metrics in the order of
    /// `tasks`.
    pub(super) fn find(
        &self,
        tasks: &[(&ConstantValues, &ExperimentPointRef)],
    ) -> Result<Vec<Metrics>, LabError> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut found = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((set, point)) = tasks.get(at) else { return found };
                found.push((at, self.find_one(set, point)));
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

    fn find_one(&self, constants: &ConstantValues, point: &ExperimentPointRef) -> Result<Metrics, LabError> {
        let axes = point.axes.iter().copied().map(SettingAssignment::from);
        let constants =
            constants.iter().map(|(name, value)| SettingAssignment::from((format!("cost.{name}"), value)));
        let set = self.set.iter().cloned().chain(axes).chain(constants).collect();
        let options = ExperimentOptions {
            seed: SEED,
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
