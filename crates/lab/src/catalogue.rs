//! All that is known of a model from outside: its experiments, settings and constants, and whether what they say
//! of each other holds together. Left out: which ones someone wants ([`crate::runner::plan`]).

use std::collections::BTreeSet;

use hypervisor::cost::Row;
use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, Figure, Kind, Points};
use crate::value::Value;

/// What can be changed with `--set` in every experiment: the cost table, a constant in it, a length.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name, dotted where it belongs to a group: `cost.eoi_fast`.
    pub name: String,
    /// What it is if nobody says otherwise; also its kind.
    pub default: Value,
    /// Its unit, as shown; empty for names and switches.
    pub unit: &'static str,
    /// What it is, in a few words.
    pub what: String,
    /// What a name may be; empty for anything of the default's kind.
    pub choices: &'static [&'static str],
}

impl Setting {
    /// Whether the setting can have that value.
    pub(crate) fn takes(&self, value: &Value) -> bool {
        let chosen = || self.choices.iter().any(|&choice| *value == Value::name(choice));
        value.kind() == self.default.kind() && (self.choices.is_empty() || chosen())
    }
}

/// The experiments and settings there are.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The experiments, in the order of rows and reports.
    pub experiments: &'static [Experiment],
    /// The settings, in the order of rows.
    pub settings: Vec<Setting>,
    /// What papers state, for figures.
    pub stated: Vec<Stated>,
    /// The constants of the model, for the report.
    pub parameters: Vec<Parameter>,
    /// How far the calibrated model is from what it was calibrated on, for the report.
    pub residuals: Vec<Residual>,
    /// Which constants predictions hang on, for the report.
    pub sensitivity: Sensitivity,
}

/// What a paper states of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stated {
    /// The experiment.
    pub experiment: &'static str,
    /// A value for each axis.
    pub axes: &'static [(&'static str, &'static str)],
    /// Which metric.
    pub metric: &'static str,
    /// What the paper states.
    pub value: f64,
    /// The model was calibrated on it. Otherwise the row is a prediction of it.
    pub is_calibrated: bool,
}

/// One constant of the model, and how far it is to be trusted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// The table it is in, such as that of one processor.
    pub table: String,
    /// Its name there.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Published, stated, derived, estimate, fitted or measured.
    pub kind: String,
    /// Where it is from.
    pub source: String,
}

impl Parameter {
    /// A row of a cost table of that name.
    pub(crate) fn of(table: &str, row: &Row) -> Self {
        Self {
            table: table.to_owned(),
            name: row.name.to_owned(),
            value: row.value as f64,
            unit: row.unit.name().to_owned(),
            kind: row.kind.name().to_owned(),
            source: match row.cost.uncharged() {
                Some(why) => format!("{}; nothing is charged it: {why}", row.source),
                None => row.source.to_owned(),
            },
        }
    }
}

/// One value that the model was calibrated on, and what the model makes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Residual {
    /// What was measured, and in which set-up.
    pub what: String,
    /// The unit of both values.
    pub unit: String,
    /// What the source says.
    pub target: f64,
    /// What the model says.
    pub model: f64,
    /// Where the target is from.
    pub source: String,
}

impl Residual {
    /// The difference as a part of the target, if that is not zero.
    #[must_use]
    pub fn relative(&self) -> Option<f64> {
        (self.target != 0.0).then(|| (self.model - self.target) / self.target)
    }
}

/// Which constants values hang on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensitivity {
    /// The version of the model that found it ([`crate::VERSION`]); another may find something else.
    pub version: String,
    /// The values.
    #[serde(default, rename = "value")]
    pub values: Vec<Dependence>,
}

/// A value of the model and the constants that it hangs on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dependence {
    /// What it is, and in which set-up.
    pub what: String,
    /// Its unit.
    pub unit: String,
    /// The value with the constants as they are.
    pub value: f64,
    /// What constants do to it, the greatest effect first.
    #[serde(default, rename = "effect")]
    pub effects: Vec<Effect>,
}

/// What a constant does to a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// The constant's name.
    pub constant: String,
    /// By how many percent the value changes with a fifth less.
    pub less_pct: f64,
    /// By how many percent the value changes with a fifth more.
    pub more_pct: f64,
}

impl Effect {
    /// The greater of the two, without its sign.
    #[must_use]
    pub fn size(&self) -> f64 {
        self.less_pct.abs().max(self.more_pct.abs())
    }
}

impl Catalogue {
    /// The experiment of that name.
    #[must_use]
    pub fn experiment(&self, name: &str) -> Option<&'static Experiment> {
        self.experiments.iter().find(|experiment| experiment.name == name)
    }

    /// What does not hold together, for a test to see that there is nothing: names used twice, figures of what
    /// is not measured, points that miss an axis.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = repeated("experiment", self.experiments.iter().map(|experiment| experiment.name));
        problems.extend(repeated("setting", self.settings.iter().map(|setting| setting.name.as_str())));
        problems.extend(self.stated.iter().filter_map(|stated| self.nowhere(stated)));
        for experiment in self.experiments {
            let own = self.problems_of(experiment);
            problems.extend(own.into_iter().map(|problem| format!("{}: {problem}", experiment.name)));
        }
        problems
    }

    /// What is stated of no point or metric that there is.
    fn nowhere(&self, stated: &Stated) -> Option<String> {
        let found = self.experiment(stated.experiment).is_some_and(|experiment| {
            let names = experiment.axes.iter().map(|axis| axis.name);
            names.eq(stated.axes.iter().map(|(name, _)| *name))
                && experiment.metrics.iter().any(|metric| metric.name == stated.metric)
        });
        (!found).then(|| format!("{} is stated of no point of {}", stated.metric, stated.experiment))
    }

    fn problems_of(&self, experiment: &Experiment) -> Vec<String> {
        let mut problems = repeated("axis", experiment.axes.iter().map(|axis| axis.name));
        problems.extend(repeated("metric", experiment.metrics.iter().map(|metric| metric.name)));
        for axis in experiment.axes {
            let values = axis.values.list();
            if values.is_empty() || values.iter().any(|value| value.kind() != values[0].kind()) {
                problems.push(format!("axis {} has no values, or of several kinds", axis.name));
            }
            if !axis.labels.is_empty() && axis.labels.len() != values.len() {
                problems.push(format!("axis {} has another number of labels than of values", axis.name));
            }
            let setting = self.settings.iter().find(|setting| setting.name == axis.name);
            if setting.is_some_and(|setting| !values.iter().all(|value| setting.takes(value))) {
                problems.push(format!("axis {} has values that the setting cannot have", axis.name));
            }
        }
        if let Points::Listed(points) = experiment.points {
            problems.extend(points.iter().filter_map(|point| misplaced(experiment, point)));
        }
        problems.extend(experiment.figures.iter().flat_map(|figure| undrawable(experiment, figure)));
        problems
    }
}

fn repeated<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).map(|name| format!("{what} {name} is there twice")).collect()
}

fn misplaced(experiment: &Experiment, point: &[Value]) -> Option<String> {
    let on_axes = point.len() == experiment.axes.len()
        && point.iter().zip(experiment.axes).all(|(value, axis)| axis.values.list().contains(value));
    (!on_axes).then(|| format!("point {point:?} is not on the axes"))
}

fn undrawable(experiment: &Experiment, figure: &Figure) -> Vec<String> {
    let mut problems = Vec::new();
    let drawn: Vec<_> = figure.x.iter().chain(&figure.split).collect();
    for axis in experiment.axes {
        if drawn.iter().filter(|name| ***name == axis.name).count() != 1 {
            problems.push(format!("figure {:?} does not show axis {} once", figure.title, axis.name));
        }
    }
    if drawn.len() != experiment.axes.len() {
        problems.push(format!("figure {:?} shows what is not an axis", figure.title));
    }
    if figure.kind == Kind::Lines && figure.x.len() != 1 {
        problems.push(format!("figure {:?} has lines over more than one axis", figure.title));
    }
    let scales = std::iter::once(&figure.left).chain(&figure.right);
    for (metric, _) in scales.flat_map(|scale| scale.series) {
        if !experiment.metrics.iter().any(|known| known.name == *metric) {
            problems.push(format!("figure {:?} shows {metric}, which is not measured", figure.title));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;
    use crate::{experiments, synthetic};

    #[test]
    fn the_experiments_there_are_hold_together() {
        for catalogue in [experiments::catalogue(), synthetic::catalogue()] {
            assert_eq!(catalogue.problems(), Vec::<String>::new());
        }
    }

    #[test]
    fn a_figure_of_what_is_not_measured_is_a_problem() {
        let mut experiment = synthetic::catalogue().experiments[0];
        experiment.metrics = &experiment.metrics[1..];
        let experiments = Box::leak(Box::new([experiment]));
        let problems = Catalogue { experiments, ..Catalogue::default() }.problems();
        assert_eq!(
            problems,
            [r#"queue: figure "Load and loss" shows throughput_mbps, which is not measured"#]
        );
    }
}
