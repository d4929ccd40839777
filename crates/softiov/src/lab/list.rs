//! `softiov lab list`: lists experiments with their points and metrics, and settings.

use lab::catalogue::{ExperimentCatalogue, PublishedValue, SettingDefinition};
use lab::experiment::{Experiment, FigureDefinition, FigureKind, FigureScale, Metric};
use lab::named::{NamedValues, Params};
use lab::runner::plan::{self, ExperimentSelection};
use lab::value::ParameterValue;
use serde::Serialize;

use super::table::TextTable;
use crate::output;

pub(super) fn list(catalogue: &ExperimentCatalogue, names: &[String], json: bool) -> anyhow::Result<()> {
    let text = match names {
        [] if json => as_json(catalogue)? + "\n",
        [] => as_text(catalogue),
        names => {
            let described = plan::select(catalogue, &ExperimentSelection::Names(names.to_vec()))?;
            described.into_iter().map(describe).collect::<Vec<_>>().join("\n")
        }
    };
    output::print(&text)
}

/// JSON output of `lab list`: experiments and settings.
#[derive(Serialize)]
struct LabListing<'a> {
    experiments: Vec<ListedExperiment<'a>>,
    settings: Vec<ListedSetting<'a>>,
}

#[derive(Serialize)]
struct ListedExperiment<'a> {
    name: &'a str,
    title: &'a str,
    shows: &'a str,
    params: NamedValues<Vec<ParameterValue>>,
    /// Labels of the parameters' values in figures, for parameters whose values have labels.
    labels: NamedValues<&'a [&'a str]>,
    metrics: Vec<ListedMetric<'a>>,
    points: Vec<Params>,
    figures: Vec<ListedFigure<'a>>,
    stated: Vec<ListedStatedValue<'a>>,
}

#[derive(Serialize)]
struct ListedFigure<'a> {
    title: &'a str,
    /// `lines`, `stacked` or `grouped`.
    kind: &'a str,
    x: &'a [&'a str],
    x_title: &'a str,
    split: Option<&'a str>,
    left: ListedScale<'a>,
    right: Option<ListedScale<'a>>,
}

#[derive(Serialize)]
struct ListedScale<'a> {
    title: &'a str,
    unit: &'a str,
    /// Metric and label of each series.
    series: &'a [(&'a str, &'a str)],
}

/// Value that a paper states for a point of an experiment.
#[derive(Serialize)]
struct ListedStatedValue<'a> {
    point: NamedValues<&'a str>,
    metric: &'a str,
    value: f64,
    calibrated: bool,
}

#[derive(Serialize)]
struct ListedMetric<'a> {
    name: &'a str,
    unit: &'a str,
    what: &'a str,
}

#[derive(Serialize)]
struct ListedSetting<'a> {
    name: &'a str,
    default: &'a ParameterValue,
    unit: &'a str,
    what: &'a str,
    choices: &'a [&'a str],
}

pub(super) fn as_json(catalogue: &ExperimentCatalogue) -> Result<String, serde_json::Error> {
    let listing = LabListing {
        experiments: catalogue.experiments.iter().map(|it| experiment(it, &catalogue.stated)).collect(),
        settings: catalogue.settings.iter().map(setting).collect(),
    };
    serde_json::to_string_pretty(&listing)
}

fn experiment(experiment: &'static Experiment, stated: &[PublishedValue]) -> ListedExperiment<'static> {
    let metric = |&Metric { name, unit, what }: &Metric| ListedMetric { name, unit, what };
    let labelled = experiment.axes.iter().filter(|axis| !axis.labels.is_empty());
    let own = stated.iter().filter(|stated| stated.experiment == experiment.name);
    ListedExperiment {
        name: experiment.name,
        title: experiment.title,
        shows: experiment.shows,
        params: experiment.axes.iter().map(|axis| (axis.name.to_owned(), axis.values.list())).collect(),
        labels: labelled.map(|axis| (axis.name.to_owned(), axis.labels)).collect(),
        metrics: experiment.metrics.iter().map(metric).collect(),
        points: plan::points(experiment),
        figures: experiment.figures.iter().map(figure).collect(),
        stated: own.map(stated_value).collect(),
    }
}

fn figure(figure: &'static FigureDefinition) -> ListedFigure<'static> {
    let FigureDefinition { title, kind, x, x_title, split, left, right } = figure;
    let kind = match kind {
        FigureKind::Lines => "lines",
        FigureKind::StackedBars => "stacked",
        FigureKind::GroupedBars => "grouped",
    };
    let right = right.as_ref().map(scale);
    ListedFigure { title, kind, x, x_title, split: *split, left: scale(left), right }
}

fn scale(&FigureScale { title, unit, series }: &FigureScale) -> ListedScale<'static> {
    ListedScale { title, unit, series }
}

fn stated_value(
    &PublishedValue { axes, metric, value, is_calibrated, .. }: &PublishedValue,
) -> ListedStatedValue<'static> {
    let point = axes.iter().map(|&(axis, value)| (axis.to_owned(), value)).collect();
    ListedStatedValue { point, metric, value, calibrated: is_calibrated }
}

fn setting(setting: &SettingDefinition) -> ListedSetting<'_> {
    let SettingDefinition { name, default, unit, what, choices } = setting;
    ListedSetting { name, default, unit, what, choices }
}

pub(super) fn as_text(catalogue: &ExperimentCatalogue) -> String {
    let heading = ["experiment", "points", "parameters", "title"].map(str::to_owned);
    let mut table = TextTable::new(heading.into(), 4);
    for experiment in catalogue.experiments {
        let axes: Vec<_> = experiment.axes.iter().map(|axis| axis.name).collect();
        let points = plan::points(experiment).len().to_string();
        table.row(vec![experiment.name.to_owned(), points, axes.join(" "), experiment.title.to_owned()]);
    }
    let mut text = table.to_string();
    if !catalogue.settings.is_empty() {
        text += "\n";
        text += &settings(&catalogue.settings);
    }
    text
}

/// Returns the text that describes an experiment: what it shows, the values of its parameters, and its metrics.
pub(super) fn describe(experiment: &Experiment) -> String {
    let mut axes = TextTable::new(["parameter", "values", "what"].map(str::to_owned).into(), 3);
    for axis in experiment.axes {
        let values: Vec<_> = axis.values.list().iter().map(ToString::to_string).collect();
        axes.row(vec![axis.name.to_owned(), values.join(" "), axis.what.to_owned()]);
    }
    let mut metrics = TextTable::new(["metric", "unit", "what"].map(str::to_owned).into(), 3);
    for metric in experiment.metrics {
        metrics.row(vec![metric.name.to_owned(), metric.unit.to_owned(), metric.what.to_owned()]);
    }
    format!("{}: {}\n{}\n\n{axes}\n{metrics}", experiment.name, experiment.title, experiment.shows)
}

fn settings(settings: &[SettingDefinition]) -> String {
    let heading = ["setting", "default", "what"].map(str::to_owned);
    let mut table = TextTable::new(heading.into(), 3);
    for setting in settings {
        let default = format!("{} {}", setting.default, setting.unit);
        let choices = match setting.choices {
            [] => String::new(),
            choices => format!(" ({})", choices.join(", ")),
        };
        table.row(vec![setting.name.clone(), default.trim_end().to_owned(), setting.what.clone() + &choices]);
    }
    table.to_string()
}
