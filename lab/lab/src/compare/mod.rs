//! Compares two models over all values that papers state: two versions (folders of rows), two hypotheses (settings), or
//! two machines.

mod quantity;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroUsize};

use serde::Serialize;
use thiserror::Error;

use crate::catalogue::{ExperimentCatalogue, ExperimentPointRef};
use crate::report::seeds::interval;
use crate::row::{ResultRow, rounded};
use crate::runner::plan::{ExperimentSelection, PlannedPoint, RunPlanError, SettingAssignment, plan};
use crate::runner::store::StoredResultRow;
use crate::runner::{ExperimentOptions, LabError, RunObserver, run_points};
use quantity::{PointMetrics, StatedQuantity};

/// Model of a comparison: settings of this version, or stored rows.
#[derive(Clone, Debug, PartialEq)]
pub enum ComparedModel {
    /// This version of the model with other settings, possibly of a machine file; none is the model as it is.
    Settings {
        /// Assignments to settings.
        set: Vec<SettingAssignment>,
        /// Values of a machine file.
        machine: Vec<SettingAssignment>,
    },
    /// Rows that a version of the model stored.
    Rows(Vec<StoredResultRow>),
}

/// Options of the runs that a comparison needs.
#[derive(Clone, Copy, Debug)]
pub struct ComparisonOptions {
    /// First seed of random numbers, as for a run of experiments.
    pub seed: u64,
    /// Number of seeds; values are means with an interval.
    pub seeds: NonZeroU16,
    /// Number of points to run at a time; values do not depend on it.
    pub jobs: NonZeroUsize,
}

/// Stated value beside the values of two models.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedValue {
    /// Name of the experiment.
    pub experiment: &'static str,
    /// Point of the experiment, `axis=value` for each axis; two points for a relation: `vms=10 to vms=60`.
    pub point: String,
    /// Name of the metric that the paper states, or of a relation between the points' metrics.
    pub metric: String,
    /// Value that the paper states.
    pub stated: f64,
    /// The model was calibrated on the value; otherwise it predicts the value.
    pub is_calibrated: bool,
    /// Full wires bound the model's value, so that it says little about the model's prices.
    pub is_bounded: bool,
    /// Values of both models, means over seeds; `None` if a model has no row of the point.
    pub models: [Option<f64>; 2],
    /// Half of each value's interval of 95 % over seeds; 0 with a single seed.
    pub half: [Option<f64>; 2],
}

/// Score of a model over stated values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ModelScore {
    /// Number of stated values for which the model has one.
    pub values: usize,
    /// Number of values within 10 % of the stated one.
    pub within_10_pct: usize,
    /// Number of values within 30 % of the stated one.
    pub within_30_pct: usize,
    /// Number of values that are closer to the stated one than the other model's.
    pub closer: usize,
    /// Mean of the relative errors' absolute values, in percent.
    pub mean_error_pct: f64,
}

/// Error of comparing two models.
#[derive(Debug, Error)]
pub enum CompareError {
    /// A setting, axis or experiment is unknown.
    #[error(transparent)]
    Plan(#[from] RunPlanError),
    /// No point of a model could be run.
    #[error(transparent)]
    Run(#[from] LabError),
    /// A folder has rows of one point with different settings.
    #[error(
        "the folder has several rows of {0} with different settings; store each set of settings in its own folder"
    )]
    SeveralRows(String),
    /// No paper states a value of the experiments.
    #[error("no value is stated for these experiments")]
    NothingStated,
}

/// Returns the values of two models beside those that papers state, in the order of the catalogue: values of points,
/// then relations. `names` are the experiments to compare, or all if there are none. Equal models are run once.
///
/// # Errors
/// [`CompareError`] if a model's points cannot be planned or run, or its rows are ambiguous.
pub fn compare(
    catalogue: &ExperimentCatalogue,
    models: [&ComparedModel; 2],
    names: &[String],
    options: ComparisonOptions,
    observer: &mut dyn RunObserver,
) -> Result<Vec<ComparedValue>, CompareError> {
    if let Some(unknown) = names.iter().find(|name| catalogue.experiment(name).is_none()) {
        let selection = ExperimentSelection::Names(vec![unknown.clone()]);
        plan(catalogue, &selection, &options.of_seed(options.seed))?;
    }
    let is_named = |point: &ExperimentPointRef| names.iter().any(|name| name == point.experiment);
    let all = quantity::stated(catalogue).into_iter();
    let stated: Vec<_> = all.filter(|it| names.is_empty() || it.points.iter().all(is_named)).collect();
    if stated.is_empty() {
        return Err(CompareError::NothingStated);
    }
    let mut metrics_of = |model: &ComparedModel| match model {
        ComparedModel::Rows(rows) => stored(rows, &stated),
        ComparedModel::Settings { set, machine } => {
            let seeds = (0..u64::from(options.seeds.get())).map(|n| options.seed + n);
            let found = seeds.map(|seed| {
                let (set, machine) = (set.clone(), machine.clone());
                let options = ExperimentOptions { set, machine, ..options.of_seed(seed) };
                computed(catalogue, &stated, &options, observer)
            });
            found.collect()
        }
    };
    let one = metrics_of(models[0])?;
    let other = if models[0] == models[1] { one.clone() } else { metrics_of(models[1])? };
    Ok(stated.iter().map(|stated| compared(stated, [&one, &other])).collect())
}

/// Returns a stated value beside the means of both models' values, each with half of its interval.
fn compared(stated: &StatedQuantity, models: [&Vec<PointMetrics>; 2]) -> ComparedValue {
    let found = models.map(|seeds| {
        let values: Vec<_> = seeds.iter().filter_map(|metrics| stated.value_of(metrics)).collect();
        (!values.is_empty()).then(|| interval(&values))
    });
    ComparedValue {
        experiment: stated.points[0].experiment,
        point: stated.point_text(),
        metric: stated.metric_text(),
        stated: rounded(stated.value),
        is_calibrated: stated.is_calibrated,
        is_bounded: stated.is_bounded,
        models: found.map(|found| found.map(|(mean, _)| rounded(mean))),
        half: found.map(|found| found.map(|(_, half)| rounded(half))),
    }
}

/// Returns the scores of both models over the values for which `wanted` is true.
#[must_use]
pub fn scores(values: &[ComparedValue], wanted: impl Fn(&ComparedValue) -> bool) -> [ModelScore; 2] {
    let mut scores = [ModelScore::default(); 2];
    for value in values.iter().filter(|value| wanted(value)) {
        let errors = value.errors_pct();
        for (side, score) in scores.iter_mut().enumerate() {
            let Some(error) = errors[side].map(f64::abs) else { continue };
            score.values += 1;
            score.within_10_pct += usize::from(error <= 10.0);
            score.within_30_pct += usize::from(error <= 30.0);
            score.closer += usize::from(errors[1 - side].is_some_and(|other| error < other.abs()));
            score.mean_error_pct += error;
        }
    }
    for score in &mut scores {
        score.mean_error_pct = rounded(score.mean_error_pct / score.values.max(1) as f64);
    }
    scores
}

impl ComparedValue {
    /// Returns the relative errors of both models in percent. A stated 0 has none.
    #[must_use]
    pub fn errors_pct(&self) -> [Option<f64>; 2] {
        let error = |value: f64| 100.0 * (value - self.stated) / self.stated;
        self.models.map(|value| value.filter(|_| self.stated != 0.0).map(error))
    }
}

impl ComparisonOptions {
    /// Returns the options of the runs with a seed.
    fn of_seed(&self, seed: u64) -> ExperimentOptions {
        ExperimentOptions {
            seed,
            jobs: self.jobs,
            // A hypothesis concerns some values, and leaves the others.
            unaffected: true,
            ..ExperimentOptions::default()
        }
    }
}

/// Runs the points of the stated values. Points that fail have no metrics, unless all fail.
fn computed(
    catalogue: &ExperimentCatalogue,
    stated: &[StatedQuantity],
    options: &ExperimentOptions,
    observer: &mut dyn RunObserver,
) -> Result<PointMetrics, CompareError> {
    let mut points: BTreeMap<ExperimentPointRef, PlannedPoint> = BTreeMap::new();
    for point in stated.iter().flat_map(|stated| &stated.points) {
        let axes = point.axes.iter().map(|&pair| SettingAssignment::from(pair));
        let set = options.set.iter().cloned().chain(axes).collect();
        let selection = ExperimentSelection::Names(vec![point.experiment.to_owned()]);
        let planned = plan(catalogue, &selection, &ExperimentOptions { set, ..options.clone() })?;
        points.extend(planned.into_iter().map(|planned| (*point, planned)));
    }
    let (names, points): (Vec<_>, Vec<_>) = points.into_iter().unzip();
    let run = match run_points(&points, options, observer) {
        Err(LabError::Failed { run, .. }) if !run.records.is_empty() => *run,
        other => other?,
    };
    let metrics = |planned: &PlannedPoint| {
        let params = planned.point.params();
        let is_own = |row: &&ResultRow| row.experiment == planned.point.experiment && row.params == params;
        run.records.iter().map(|record| &record.row).find(is_own).map(|row| row.metrics.clone())
    };
    let found = names.into_iter().zip(&points).filter_map(|(name, planned)| Some((name, metrics(planned)?)));
    Ok(found.collect())
}

/// Returns the metrics of the stored rows at the points of the stated values, for each seed.
fn stored(rows: &[StoredResultRow], stated: &[StatedQuantity]) -> Result<Vec<PointMetrics>, CompareError> {
    let mut found: BTreeMap<u64, PointMetrics> = BTreeMap::new();
    for point in stated.iter().flat_map(|stated| &stated.points) {
        let at_point = |record: &&StoredResultRow| {
            let is_equal = |(axis, text): &(&str, &str)| {
                record.row.params.get(axis).is_some_and(|value| value.to_string() == *text)
            };
            record.row.experiment == point.experiment && point.axes.iter().all(is_equal)
        };
        let rows: Vec<_> = rows.iter().filter(at_point).collect();
        if rows.iter().any(|record| record.row.params != rows[0].row.params) {
            return Err(CompareError::SeveralRows(point.to_string()));
        }
        for record in rows {
            found.entry(record.seed).or_default().insert(*point, record.row.metrics.clone());
        }
    }
    Ok(found.into_values().collect())
}
