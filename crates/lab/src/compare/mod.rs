//! Compares two models over all values that papers state: two versions (folders of rows), two hypotheses (settings), or
//! two machines.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use serde::Serialize;
use thiserror::Error;

use crate::catalogue::{ExperimentCatalogue, PublishedValue};
use crate::named::Metrics;
use crate::row::{ResultRow, rounded};
use crate::runner::plan::{ExperimentSelection, PlannedPoint, RunPlanError, SettingAssignment, plan};
use crate::runner::{ExperimentOptions, LabError, RunObserver, run_points};

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
    Rows(Vec<ResultRow>),
}

/// Stated value beside the values of two models.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedValue {
    /// Name of the experiment.
    pub experiment: &'static str,
    /// Point of the experiment, `axis=value` for each axis.
    pub point: String,
    /// Name of the metric that the paper states.
    pub metric: &'static str,
    /// Value that the paper states.
    pub stated: f64,
    /// The model was calibrated on the value; otherwise it predicts the value.
    pub is_calibrated: bool,
    /// Values of both models; `None` if a model has no row of the point.
    pub models: [Option<f64>; 2],
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

/// Experiment and axis values of a point, as text.
type PointName = (&'static str, String);

/// Returns the values of two models beside those that papers state, in the order of the catalogue. `names` are the
/// experiments to compare, or all if there are none.
///
/// # Errors
/// [`CompareError`] if a model's points cannot be planned or run, or its rows are ambiguous.
pub fn compare(
    catalogue: &ExperimentCatalogue,
    models: [&ComparedModel; 2],
    names: &[String],
    (seed, jobs): (u64, NonZeroUsize),
    observer: &mut dyn RunObserver,
) -> Result<Vec<ComparedValue>, CompareError> {
    if let Some(unknown) = names.iter().find(|name| catalogue.experiment(name).is_none()) {
        let selection = ExperimentSelection::Names(vec![unknown.clone()]);
        plan(catalogue, &selection, &options(seed, jobs))?;
    }
    let is_wanted =
        |value: &&PublishedValue| names.is_empty() || names.iter().any(|name| name == value.experiment);
    let stated: Vec<_> = catalogue.stated.iter().filter(is_wanted).collect();
    if stated.is_empty() {
        return Err(CompareError::NothingStated);
    }
    let mut found = Vec::new();
    for model in models {
        found.push(match model {
            ComparedModel::Rows(rows) => stored(rows, &stated)?,
            ComparedModel::Settings { set, machine } => {
                let options =
                    ExperimentOptions { set: set.clone(), machine: machine.clone(), ..options(seed, jobs) };
                computed(catalogue, &stated, &options, observer)?
            }
        });
    }
    let value = |side: &BTreeMap<PointName, Metrics>, stated: &PublishedValue| {
        side.get(&name(stated)).and_then(|metrics| metrics.get(stated.metric)).copied()
    };
    let compared = stated.iter().map(|stated| ComparedValue {
        experiment: stated.experiment,
        point: point(stated),
        metric: stated.metric,
        stated: rounded(stated.value),
        is_calibrated: stated.is_calibrated,
        models: [value(&found[0], stated), value(&found[1], stated)],
    });
    Ok(compared.collect())
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

fn options(seed: u64, jobs: NonZeroUsize) -> ExperimentOptions {
    ExperimentOptions {
        seed,
        jobs,
        // A hypothesis concerns some values, and leaves the others.
        unaffected: true,
        ..ExperimentOptions::default()
    }
}

/// Runs the points of the stated values. Points that fail have no metrics, unless all fail.
fn computed(
    catalogue: &ExperimentCatalogue,
    stated: &[&PublishedValue],
    options: &ExperimentOptions,
    observer: &mut dyn RunObserver,
) -> Result<BTreeMap<PointName, Metrics>, CompareError> {
    let mut points: BTreeMap<PointName, PlannedPoint> = BTreeMap::new();
    for value in stated {
        let axes = value.axes.iter().map(|&pair| SettingAssignment::from(pair));
        let set = options.set.iter().cloned().chain(axes).collect();
        let selection = ExperimentSelection::Names(vec![value.experiment.to_owned()]);
        let planned = plan(catalogue, &selection, &ExperimentOptions { set, ..options.clone() })?;
        points.extend(planned.into_iter().map(|planned| (name(value), planned)));
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

/// Returns the means over all seeds of the stored rows at the points of the stated values.
fn stored(
    rows: &[ResultRow],
    stated: &[&PublishedValue],
) -> Result<BTreeMap<PointName, Metrics>, CompareError> {
    let mut found = BTreeMap::new();
    for value in stated {
        let at_point = |row: &&ResultRow| {
            let is_equal = |(axis, text): &(&str, &str)| {
                row.params.get(axis).is_some_and(|value| value.to_string() == *text)
            };
            row.experiment == value.experiment && value.axes.iter().all(is_equal)
        };
        let rows: Vec<_> = rows.iter().filter(at_point).collect();
        let Some(first) = rows.first() else { continue };
        if rows.iter().any(|row| row.params != first.params) {
            return Err(CompareError::SeveralRows(format!("{} {}", value.experiment, point(value))));
        }
        let mean =
            |name: &str| rows.iter().filter_map(|row| row.metrics.get(name)).sum::<f64>() / rows.len() as f64;
        let metrics = first.metrics.names().map(|name| (name.to_owned(), rounded(mean(name)))).collect();
        found.insert(name(value), metrics);
    }
    Ok(found)
}

fn name(value: &PublishedValue) -> PointName {
    (value.experiment, point(value))
}

fn point(value: &PublishedValue) -> String {
    value.axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect::<Vec<_>>().join(" ")
}
