//! Selects the experiment points to run: experiments, settings, shard, and every point's seed.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::sweep::{self, ParameterSweep};
use super::{ExperimentOptions, hint};
use crate::catalogue::{ExperimentCatalogue, SettingDefinition};
use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, PointRunInputs,
    RunSettings,
};
use crate::hash;
use crate::named::{NamedValues, Params};
use crate::value::ParameterValue;

/// Experiments that a run includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExperimentSelection {
    /// All experiments of the catalogue.
    All,
    /// Experiments by name; they run in catalogue order.
    Names(Vec<String>),
}

/// Assignment `key=value`: fixes an axis or changes a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingAssignment {
    /// Name of the axis or setting that is assigned.
    pub key: String,
    /// Value that is assigned to the axis or setting, as written.
    pub value: String,
}

impl<K: ToString, V: ToString> From<(K, V)> for SettingAssignment {
    fn from((key, value): (K, V)) -> Self {
        Self { key: key.to_string(), value: value.to_string() }
    }
}

/// Error: an assignment lacks its `=`, key or value.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected an assignment of the form key=value")]
pub struct InvalidSettingAssignment;

impl FromStr for SettingAssignment {
    type Err = InvalidSettingAssignment;

    fn from_str(text: &str) -> Result<Self, InvalidSettingAssignment> {
        let (key, value) = text.split_once('=').ok_or(InvalidSettingAssignment)?;
        let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
        if key.is_empty() || value.is_empty() {
            Err(InvalidSettingAssignment)
        } else {
            Ok(Self { key, value })
        }
    }
}

/// Part i of n of a run's points, with i from 1. Points are dealt out in turn, so that each part has cheap and
/// expensive points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunShard {
    part: usize,
    of: usize,
}

/// Error: a shard is not of the form i/n.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected a shard i/n with i from 1 to n, such as 1/4")]
pub struct InvalidRunShard;

impl FromStr for RunShard {
    type Err = InvalidRunShard;

    fn from_str(text: &str) -> Result<Self, InvalidRunShard> {
        let (part, of) = text.split_once('/').ok_or(InvalidRunShard)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| InvalidRunShard);
        let shard = Self { part: number(part)?, of: number(of)? };
        if (1..=shard.of).contains(&shard.part) { Ok(shard) } else { Err(InvalidRunShard) }
    }
}

impl fmt::Display for RunShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

/// Error of planning an experiment run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RunPlanError {
    /// The requested experiment does not exist.
    #[error("unknown experiment `{name}`; {hint}")]
    UnknownExperiment {
        /// Name of the requested experiment, as written.
        name: String,
        /// Names similar to the unknown name, or the names of all experiments.
        hint: String,
    },
    /// No axis or setting has the name that was assigned.
    #[error("unknown axis or setting `{key}`{hint}")]
    UnknownKey {
        /// Name of the axis or setting, as written.
        key: String,
        /// Names similar to the unknown name, or examples of names.
        hint: String,
    },
    /// The value is invalid for its axis or setting.
    #[error("invalid value `{value}` of {key}: expected {expected}")]
    BadValue {
        /// Name of the axis or setting with the invalid value.
        key: String,
        /// Value of the axis or setting, as the user wrote it.
        value: String,
        /// Permitted values of the axis or setting.
        expected: String,
    },
    /// The assignments exclude every point of an experiment.
    #[error("{experiment} has no point with these settings; `softiov lab list --json` lists its points")]
    NoPoint {
        /// Name of the experiment that has no point left.
        experiment: &'static str,
    },
    /// An experiment has no parameter of the swept name.
    #[error("cannot sweep `{key}` in {experiment}: it is neither an axis of the experiment nor a setting")]
    SweptKey {
        /// Name of the swept parameter, as written.
        key: String,
        /// Name of the experiment without that parameter.
        experiment: &'static str,
    },
    /// A parameter is swept and has another value or sweep.
    #[error("`{key}` is swept and set, or swept twice; give it once")]
    SweptTwice {
        /// Name of the parameter, as written.
        key: String,
    },
    /// The sweeps have too many combinations.
    #[error("the sweeps have more than 100000 combinations; sweep fewer values")]
    SweepSize,
}

/// Experiment point with its context, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct PlannedPoint {
    pub(crate) experiment: &'static Experiment,
    pub(crate) point: ExperimentPoint,
    pub(crate) context: PointRunInputs,
}

/// Returns all points of an experiment without assignments, in order.
#[must_use]
pub fn points(experiment: &'static Experiment) -> Vec<Params> {
    axis_combinations(experiment, &[]).into_iter().map(|values| name_values(experiment, values)).collect()
}

/// Returns the points that the selection and the options include, with seeds and settings, in order.
pub(crate) fn plan(
    catalogue: &ExperimentCatalogue,
    selection: &ExperimentSelection,
    options: &ExperimentOptions,
) -> Result<Vec<PlannedPoint>, RunPlanError> {
    let experiments = select(catalogue, selection)?;
    check_keys(catalogue, &experiments, &options.set)?;
    check_sweeps(catalogue, &experiments, options)?;
    let combinations = sweep::combinations(&options.sweep).ok_or(RunPlanError::SweepSize)?;
    let mut planned = Vec::new();
    for experiment in experiments {
        let before = planned.len();
        for combination in &combinations {
            let swept = combination.iter().map(|&pair| SettingAssignment::from(pair));
            let set: Vec<_> = options.set.iter().cloned().chain(swept).collect();
            planned.extend(plan_experiment(catalogue, experiment, &set, options)?);
        }
        if planned.len() == before {
            return Err(RunPlanError::NoPoint { experiment: experiment.name });
        }
    }
    if let Some(RunShard { part, of }) = options.shard {
        let mut at = 0..;
        planned.retain(|_| at.next().is_some_and(|at: usize| at % of == part - 1));
    }
    Ok(planned)
}

/// Returns the points of an experiment that assignments permit, in order. Assignments take precedence over the machine's
/// values, which fix no axis.
fn plan_experiment(
    catalogue: &ExperimentCatalogue,
    experiment: &'static Experiment,
    set: &[SettingAssignment],
    options: &ExperimentOptions,
) -> Result<Vec<PlannedPoint>, RunPlanError> {
    let (settings, changed) = apply(&catalogue.settings, &[&options.machine, set].concat())?;
    let held = hold(experiment, set)?;
    let plan_point = |values| {
        let axes = name_values(experiment, values);
        let (settings, changed) = vary(&axes, &settings, &changed);
        let seed = seed(options.seed, experiment.name, &without(&axes, &settings));
        let point = ExperimentPoint { experiment: experiment.name, axes, changed };
        PlannedPoint {
            experiment,
            point,
            context: PointRunInputs { seed, settings: RunSettings::new(settings) },
        }
    };
    Ok(axis_combinations(experiment, &held).into_iter().map(plan_point).collect())
}

/// Returns the selected experiments, in catalogue order.
///
/// # Errors
/// [`RunPlanError::UnknownExperiment`] if an experiment of the selection does not exist.
pub fn select(
    catalogue: &ExperimentCatalogue,
    selection: &ExperimentSelection,
) -> Result<Vec<&'static Experiment>, RunPlanError> {
    let all = catalogue.experiments.iter();
    let ExperimentSelection::Names(names) = selection else { return Ok(all.collect()) };
    if let Some(name) = names.iter().find(|name| catalogue.experiment(name).is_none()) {
        let known: Vec<_> = all.map(|experiment| experiment.name).collect();
        return Err(RunPlanError::UnknownExperiment {
            name: name.clone(),
            hint: hint::experiment(name, &known),
        });
    }
    Ok(all.filter(|experiment| names.iter().any(|name| name == experiment.name)).collect())
}

/// Checks that every assigned key is an axis of a selected experiment or a setting.
fn check_keys(
    catalogue: &ExperimentCatalogue,
    experiments: &[&'static Experiment],
    set: &[SettingAssignment],
) -> Result<(), RunPlanError> {
    let axes = experiments.iter().flat_map(|experiment| experiment.axes).map(|axis| axis.name);
    let mut known: Vec<&str> =
        axes.chain(catalogue.settings.iter().map(|setting| setting.name.as_str())).collect();
    known.sort_unstable();
    known.dedup();
    match set.iter().find(|assignment| !known.contains(&assignment.key.as_str())) {
        Some(SettingAssignment { key, .. }) => {
            let hint = hint::axis(catalogue, experiments, key).unwrap_or_else(|| hint::key(key, &known));
            Err(RunPlanError::UnknownKey { key: key.clone(), hint })
        }
        None => Ok(()),
    }
}

/// Checks that every swept key is a setting or an axis of each selected experiment, and has no other value.
fn check_sweeps(
    catalogue: &ExperimentCatalogue,
    experiments: &[&'static Experiment],
    options: &ExperimentOptions,
) -> Result<(), RunPlanError> {
    let swept: Vec<_> = options.sweep.iter().map(|sweep| SettingAssignment::from((&sweep.key, ""))).collect();
    check_keys(catalogue, experiments, &swept)?;
    for (at, ParameterSweep { key, .. }) in options.sweep.iter().enumerate() {
        let is_set = options.set.iter().any(|assignment| assignment.key == *key);
        if is_set || options.sweep[..at].iter().any(|other| other.key == *key) {
            return Err(RunPlanError::SweptTwice { key: key.clone() });
        }
        let is_setting = catalogue.settings.iter().any(|setting| setting.name == *key);
        let without = |experiment: &&&Experiment| !experiment.axes.iter().any(|axis| axis.name == key);
        if let Some(experiment) = experiments.iter().find(without).filter(|_| !is_setting) {
            return Err(RunPlanError::SweptKey { key: key.clone(), experiment: experiment.name });
        }
    }
    Ok(())
}

/// Returns all settings, and those that differ from their defaults. The last assignment of a key counts.
fn apply(
    settings: &[SettingDefinition],
    set: &[SettingAssignment],
) -> Result<(Params, Params), RunPlanError> {
    let (mut all, mut changed) = (NamedValues::new(), NamedValues::new());
    for setting in settings {
        let value = match set.iter().rfind(|assignment| assignment.key == setting.name) {
            Some(assignment) => setting_value(setting, assignment)?,
            None => setting.default.clone(),
        };
        if value != setting.default {
            changed.set(&setting.name, value.clone());
        }
        all.set(&setting.name, value);
    }
    Ok((all, changed))
}

fn setting_value(
    setting: &SettingDefinition,
    assignment: &SettingAssignment,
) -> Result<ParameterValue, RunPlanError> {
    let choices: Vec<_> = setting.choices.iter().map(|&choice| ParameterValue::name(choice)).collect();
    parse(assignment, &setting.default, setting.unit, &choices)
}

/// Returns the experiment axes that assignments fix at one value.
fn hold(
    experiment: &Experiment,
    set: &[SettingAssignment],
) -> Result<Vec<(&'static str, ParameterValue)>, RunPlanError> {
    let mut held = Vec::new();
    for axis in experiment.axes {
        if let Some(assignment) = set.iter().rfind(|assignment| assignment.key == axis.name) {
            held.push((axis.name, axis_value(axis, assignment)?));
        }
    }
    Ok(held)
}

/// Parses a value of an axis. A count may be beyond the sweep; a name or switch must be in it.
fn axis_value(axis: &ExperimentAxis, assignment: &SettingAssignment) -> Result<ParameterValue, RunPlanError> {
    let values = axis.values.list();
    match (axis.values, values.first()) {
        (ExperimentAxisValues::List(names), Some(ParameterValue::Text(_))) => {
            parse(assignment, &names[0], "", names)
        }
        (_, Some(like)) => parse(assignment, like, "", &[]),
        (_, None) => parse(assignment, &ParameterValue::Bool(false), "", &[]),
    }
}

/// Parses a value of the kind of `like`, in `unit` unless that is empty.
fn parse(
    assignment: &SettingAssignment,
    like: &ParameterValue,
    unit: &str,
    choices: &[ParameterValue],
) -> Result<ParameterValue, RunPlanError> {
    let SettingAssignment { key, value } = assignment;
    let bad = |expected: String| RunPlanError::BadValue { key: key.clone(), value: value.clone(), expected };
    let parsed = like.parse_alike(value).ok_or_else(|| bad(hint::expected(like, unit, key, value)))?;
    if choices.is_empty() || choices.contains(&parsed) {
        return Ok(parsed);
    }
    let names: Vec<_> = choices.iter().map(ParameterValue::to_string).collect();
    Err(bad(format!("one of {}", names.join(", "))))
}

/// Returns the combinations of axis values that are points of an experiment, in order.
fn axis_combinations(
    experiment: &Experiment,
    held: &[(&'static str, ParameterValue)],
) -> Vec<Vec<ParameterValue>> {
    let held =
        |axis: &ExperimentAxis| held.iter().find(|(name, _)| *name == axis.name).map(|(_, value)| value);
    match experiment.points {
        AxisCombinations::Listed(points) => {
            let fits = |point: &&[ParameterValue]| {
                let mut pairs = point.iter().zip(experiment.axes);
                pairs.all(|(value, axis)| held(axis).is_none_or(|held| held == value))
            };
            points.iter().copied().filter(|point| fits(point)).map(<[ParameterValue]>::to_vec).collect()
        }
        AxisCombinations::All => experiment.axes.iter().fold(vec![Vec::new()], |begun, axis| {
            let values = held(axis).map_or_else(|| axis.values.list(), |value| vec![value.clone()]);
            let extend = |begun: &Vec<ParameterValue>| {
                let begun = begun.clone();
                values.iter().map(move |value| [begun.as_slice(), std::slice::from_ref(value)].concat())
            };
            begun.iter().flat_map(extend).collect()
        }),
    }
}

fn name_values(experiment: &Experiment, values: Vec<ParameterValue>) -> Params {
    experiment.axes.iter().map(|axis| axis.name.to_owned()).zip(values).collect()
}

/// Splits the settings that axes vary from the changed ones: a varied setting has its value on the axis and is not
/// listed as changed. Returns all settings and the changed ones.
fn vary(axes: &Params, settings: &Params, changed: &Params) -> (Params, Params) {
    let at =
        |(name, value): (&str, &ParameterValue)| (name.to_owned(), axes.get(name).unwrap_or(value).clone());
    (settings.iter().map(at).collect(), without(changed, axes))
}

/// Returns the parameters that have no value in `others`.
pub(crate) fn without(params: &Params, others: &Params) -> Params {
    let kept = params.iter().filter(|(name, _)| others.get(name).is_none());
    kept.map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

/// Returns a point's seed, which does not depend on which points the run includes.
fn seed(seed: u64, experiment: &str, axes: &Params) -> u64 {
    hash::stable(format!("{seed} {experiment} {axes}").as_bytes())
}
