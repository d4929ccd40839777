//! The catalogue: a model's experiments, settings and cost constants, and the check that they are consistent.
//! [`crate::runner::plan`] selects from it.

use std::collections::BTreeSet;
use std::fmt;

use hypervisor::cost::CostRow;
use serde::{Deserialize, Serialize};

use crate::experiment::{AxisCombinations, Experiment, FigureDefinition, FigureKind};
use crate::value::ParameterValue;

/// Setting that `--set` changes in every experiment: the cost table, a constant in that table, or a duration.
#[derive(Clone, Debug)]
pub struct SettingDefinition {
    /// Name of the setting, with a prefix for its group: `cost.eoi_fast`.
    pub name: String,
    /// Default value of the setting, which also defines the kind of its values.
    pub default: ParameterValue,
    /// Unit of the setting as shown; empty for names and switches.
    pub unit: &'static str,
    /// Short description of the setting for help and reports.
    pub what: String,
    /// Names that the setting permits; empty if every value of the default's kind is permitted.
    pub choices: &'static [&'static str],
}

impl SettingDefinition {
    /// Returns `true` if the setting permits this value.
    pub(crate) fn takes(&self, value: &ParameterValue) -> bool {
        let chosen = || self.choices.iter().any(|&choice| *value == ParameterValue::name(choice));
        value.kind() == self.default.kind() && (self.choices.is_empty() || chosen())
    }
}

/// Experiments, settings and reference data of a model.
#[derive(Clone, Debug, Default)]
pub struct ExperimentCatalogue {
    /// Experiments of the model, in the order of rows and reports.
    pub experiments: &'static [Experiment],
    /// Settings of the model, in the order of result rows.
    pub settings: Vec<SettingDefinition>,
    /// Values stated by papers, for figures.
    pub stated: Vec<PublishedValue>,
    /// Relations between two points that papers state, for comparisons.
    pub relations: Vec<PublishedRelation>,
    /// Constants of the model, for the report.
    pub parameters: Vec<ModelConstant>,
    /// Residuals of the calibration, for the report.
    pub residuals: Vec<Residual>,
    /// Sensitivity of the model's predictions to cost constants, for the report.
    pub sensitivity: ModelSensitivity,
}

/// Values of a prediction with estimated constants anywhere in their ranges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedRange {
    /// Point that the prediction belongs to.
    pub point: ExperimentPointRef,
    /// Name of the predicted metric.
    pub metric: &'static str,
    /// Least value of the metric.
    pub least: f64,
    /// Greatest value of the metric.
    pub most: f64,
}

/// Value that a paper states for an experiment point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedValue {
    /// Name of the experiment that the stated value belongs to.
    pub experiment: &'static str,
    /// Axis values of the point that the stated value belongs to.
    pub axes: &'static [(&'static str, &'static str)],
    /// Name of the metric that the paper states.
    pub metric: &'static str,
    /// Value that the paper states, in the metric's unit.
    pub value: f64,
    /// The model was calibrated on the paper's value; otherwise the value only checks a prediction.
    pub is_calibrated: bool,
    /// Full wires bound the model's value, so that no price moves it as long as processors keep up.
    pub is_bounded: bool,
}

impl PublishedValue {
    /// Returns the point that the stated value belongs to.
    #[must_use]
    pub const fn point(&self) -> ExperimentPointRef {
        ExperimentPointRef { experiment: self.experiment, axes: self.axes }
    }
}

/// Experiment point by name: the experiment and its axis values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExperimentPointRef {
    /// Name of the experiment that the point belongs to.
    pub experiment: &'static str,
    /// Values of the experiment's axes at this point, followed by changed settings.
    pub axes: &'static [(&'static str, &'static str)],
}

/// Formats a point as its experiment and axis values: `fig14 vms=10`.
impl fmt::Display for ExperimentPointRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.experiment)?;
        self.axes.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// Relation that a paper states between two experiment points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedRelation {
    /// The point to start from, and the point that is compared with it.
    pub points: [ExperimentPointRef; 2],
    /// Metrics whose sum the relation compares, all in one unit.
    pub metrics: &'static [&'static str],
    /// Kind of the relation.
    pub relation: PointRelation,
    /// Value that the paper states for the relation.
    pub value: f64,
    /// The model was calibrated on the paper's value; otherwise the value only checks a prediction.
    pub is_calibrated: bool,
}

/// Relation between the values of two points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PointRelation {
    /// The second value divided by the first.
    Ratio,
    /// The second value less the first, divided by this number of steps.
    Difference(f64),
    /// Percentage by which the second value is lower than the first.
    Saving,
}

impl PointRelation {
    /// Returns the relation of `second` to `first`.
    #[must_use]
    pub fn value(self, first: f64, second: f64) -> f64 {
        match self {
            Self::Ratio => second / first,
            Self::Difference(steps) => (second - first) / steps,
            Self::Saving => (1.0 - second / first) * 100.0,
        }
    }
}

/// Formats the relation as the words before a metric's name: `ratio of`.
impl fmt::Display for PointRelation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ratio => f.write_str("ratio of"),
            Self::Difference(1.0) => f.write_str("difference of"),
            Self::Difference(steps) => write!(f, "1/{steps} of the difference of"),
            Self::Saving => f.write_str("saving of"),
        }
    }
}

/// Constant of the model, with its kind and source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelConstant {
    /// Name of the cost table that has the constant, such as `nehalem`.
    pub table: String,
    /// Name of the constant in the cost table.
    pub name: String,
    /// Value of the constant, in `unit`.
    pub value: f64,
    /// Unit of the constant's value.
    pub unit: String,
    /// Kind of evidence for the value: published, stated, derived, estimate, fitted or measured.
    pub kind: String,
    /// Source of the constant's value.
    pub source: String,
}

impl ModelConstant {
    /// Creates the description of a constant from its row in the cost table `table`.
    pub(crate) fn of(table: &str, row: &CostRow) -> Self {
        Self {
            table: table.to_owned(),
            name: row.name.to_owned(),
            value: row.value as f64,
            unit: row.unit.name().to_owned(),
            kind: row.kind.name().to_owned(),
            source: match row.cost.uncharged() {
                Some(why) => format!("{}; never charged: {why}", row.source),
                None => row.source.to_owned(),
            },
        }
    }
}

/// Published value of a calibration target, with the value that the model computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Residual {
    /// Quantity that the target measures, and its set-up.
    pub what: String,
    /// Unit of the published value and of the model's value.
    pub unit: String,
    /// Published value of the target.
    pub target: f64,
    /// Value that the model computes for the target, the mean over the calibration's seeds.
    pub model: f64,
    /// Half of the interval of 95 % of the model's value over several seeds; `None` for a single seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half: Option<f64>,
    /// Value that the model computes if nothing is fitted to the target; `None` if that was not computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<f64>,
    /// Source of the published value.
    pub source: String,
}

impl Residual {
    /// Returns the relative difference of the model's value from the published one, or `None` if that is zero.
    #[must_use]
    pub fn relative(&self) -> Option<f64> {
        (self.target != 0.0).then(|| (self.model - self.target) / self.target)
    }
}

/// Sensitivity of the model's values to its constants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSensitivity {
    /// Version of the model that computed the sensitivity ([`crate::VERSION`]); other versions may differ.
    pub version: String,
    /// Values of the model, with the constants that affect them.
    #[serde(default, rename = "value")]
    pub values: Vec<ValueSensitivity>,
}

/// Value that the model computes, with the constants that affect it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueSensitivity {
    /// Quantity that the model computes, and its set-up.
    pub what: String,
    /// Unit of the value that the model computes.
    pub unit: String,
    /// Value that the model computes with unchanged constants.
    pub value: f64,
    /// Least and greatest value with constants anywhere in their ranges; `None` if that was not computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Effects of constants on the value, the largest first.
    #[serde(default, rename = "effect")]
    pub effects: Vec<ConstantEffect>,
}

/// Effect of a cost constant on a value that the model computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantEffect {
    /// Name of the constant that affects the value.
    pub constant: String,
    /// Change of the value in percent when the constant is reduced by a fifth.
    pub less_pct: f64,
    /// Change of the value in percent when the constant is increased by a fifth.
    pub more_pct: f64,
}

impl ConstantEffect {
    /// Returns the larger of the constant's two effects, as an absolute percentage.
    #[must_use]
    pub fn size(&self) -> f64 {
        self.less_pct.abs().max(self.more_pct.abs())
    }
}

impl ExperimentCatalogue {
    /// Returns the experiment called `name` in the catalogue.
    #[must_use]
    pub fn experiment(&self, name: &str) -> Option<&'static Experiment> {
        self.experiments.iter().find(|experiment| experiment.name == name)
    }

    /// Returns a description of each inconsistency of the catalogue: names used twice, figures of undeclared metrics,
    /// points off their axes. A test asserts that there are none.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = repeated("experiment", self.experiments.iter().map(|experiment| experiment.name));
        problems.extend(repeated("setting", self.settings.iter().map(|setting| setting.name.as_str())));
        let values = self.stated.iter().map(|stated| (stated.point(), stated.metric));
        let related = |relation: &PublishedRelation| {
            let PublishedRelation { points, metrics, .. } = *relation;
            points.into_iter().flat_map(move |point| metrics.iter().map(move |&metric| (point, metric)))
        };
        let stated = values.chain(self.relations.iter().flat_map(related));
        problems.extend(stated.filter_map(|(point, metric)| self.stated_value_problem(point, metric)));
        for experiment in self.experiments {
            let own = self.problems_of(experiment);
            problems.extend(own.into_iter().map(|problem| format!("{}: {problem}", experiment.name)));
        }
        problems
    }

    /// Returns a description of the problem if a stated value matches no experiment point or metric.
    fn stated_value_problem(&self, point: ExperimentPointRef, metric: &str) -> Option<String> {
        let found = self.experiment(point.experiment).is_some_and(|experiment| {
            let names = experiment.axes.iter().map(|axis| axis.name);
            names.eq(point.axes.iter().map(|(name, _)| *name))
                && experiment.metrics.iter().any(|known| known.name == metric)
        });
        (!found).then(|| format!("stated value of {metric} matches no point of {}", point.experiment))
    }

    fn problems_of(&self, experiment: &Experiment) -> Vec<String> {
        let mut problems = repeated("axis", experiment.axes.iter().map(|axis| axis.name));
        problems.extend(repeated("metric", experiment.metrics.iter().map(|metric| metric.name)));
        for axis in experiment.axes {
            let values = axis.values.list();
            if values.is_empty() || values.iter().any(|value| value.kind() != values[0].kind()) {
                problems.push(format!("axis {} has no values, or values of several kinds", axis.name));
            }
            if !axis.labels.is_empty() && axis.labels.len() != values.len() {
                problems.push(format!("axis {} has different numbers of labels and values", axis.name));
            }
            let setting = self.settings.iter().find(|setting| setting.name == axis.name);
            if setting.is_some_and(|setting| !values.iter().all(|value| setting.takes(value))) {
                problems.push(format!("axis {} has values that the setting does not permit", axis.name));
            }
        }
        if let AxisCombinations::Listed(points) = experiment.points {
            problems.extend(points.iter().filter_map(|point| misplaced(experiment, point)));
        }
        problems.extend(experiment.figures.iter().flat_map(|figure| undrawable(experiment, figure)));
        problems
    }
}

fn repeated<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).map(|name| format!("{what} {name} is declared twice")).collect()
}

fn misplaced(experiment: &Experiment, point: &[ParameterValue]) -> Option<String> {
    let on_axes = point.len() == experiment.axes.len()
        && point.iter().zip(experiment.axes).all(|(value, axis)| axis.values.list().contains(value));
    (!on_axes).then(|| format!("point {point:?} does not lie on the experiment's axes"))
}

fn undrawable(experiment: &Experiment, figure: &FigureDefinition) -> Vec<String> {
    let mut problems = Vec::new();
    let drawn: Vec<_> = figure.x.iter().chain(&figure.split).collect();
    for axis in experiment.axes {
        if drawn.iter().filter(|name| ***name == axis.name).count() != 1 {
            problems.push(format!("figure {:?} does not show axis {} exactly once", figure.title, axis.name));
        }
    }
    if drawn.len() != experiment.axes.len() {
        problems.push(format!("figure {:?} shows an undeclared axis", figure.title));
    }
    if figure.kind == FigureKind::Lines && figure.x.len() != 1 {
        problems.push(format!("figure {:?} has lines over more than one axis", figure.title));
    }
    let scales = std::iter::once(&figure.left).chain(&figure.right);
    for (metric, _) in scales.flat_map(|scale| scale.series) {
        if !experiment.metrics.iter().any(|known| known.name == *metric) {
            problems.push(format!("figure {:?} shows undeclared metric {metric}", figure.title));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use crate::catalogue::ExperimentCatalogue;
    use crate::{experiments, synthetic};

    #[test]
    fn experiment_figures_show_declared_axes_and_metrics() {
        for catalogue in [experiments::catalogue(), synthetic::catalogue()] {
            assert_eq!(catalogue.problems(), Vec::<String>::new());
        }
    }

    #[test]
    fn figure_of_an_undeclared_metric_is_reported_as_a_problem() {
        let mut experiment = synthetic::catalogue().experiments[0];
        experiment.metrics = &experiment.metrics[1..];
        let experiments = Box::leak(Box::new([experiment]));
        let problems = ExperimentCatalogue { experiments, ..ExperimentCatalogue::default() }.problems();
        assert_eq!(problems, [r#"queue: figure "Load and loss" shows undeclared metric throughput_mbps"#]);
    }
}
