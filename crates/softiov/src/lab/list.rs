//! `softiov lab list`: lists experiments with their points and metrics, and settings.

use lab::catalogue::{ExperimentCatalogue, SettingDefinition};
use lab::experiment::{Experiment, Metric};
use lab::named::{NamedValues, Params};
use lab::runner::plan;
use lab::value::ParameterValue;
use serde::Serialize;

use super::table::TextTable;
use crate::output;

pub(super) fn list(catalogue: &ExperimentCatalogue, json: bool) -> anyhow::Result<()> {
    let text = if json { as_json(catalogue)? + "\n" } else { as_text(catalogue) };
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
    metrics: Vec<ListedMetric<'a>>,
    points: Vec<Params>,
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
        experiments: catalogue.experiments.iter().map(experiment).collect(),
        settings: catalogue.settings.iter().map(setting).collect(),
    };
    serde_json::to_string_pretty(&listing)
}

fn experiment(experiment: &'static Experiment) -> ListedExperiment<'static> {
    let metric = |&Metric { name, unit, what }: &Metric| ListedMetric { name, unit, what };
    ListedExperiment {
        name: experiment.name,
        title: experiment.title,
        shows: experiment.shows,
        params: experiment.axes.iter().map(|axis| (axis.name.to_owned(), axis.values.list())).collect(),
        metrics: experiment.metrics.iter().map(metric).collect(),
        points: plan::points(experiment),
    }
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
