//! Writes the report for other programs: CSV and JSON.

use serde::Serialize;

use super::ExperimentReport;
use crate::catalogue::{ModelConstant, ModelSensitivity, Residual};
use crate::csv::{record, union};
use crate::named::{Metrics, NamedValues};
use crate::row::ResultRow;

pub(super) fn csv(report: &ExperimentReport) -> String {
    let rows = || report.sections.iter().flat_map(|section| &section.rows);
    let params = union(rows().flat_map(|row| row.params.names()));
    let metrics = union(rows().flat_map(|row| row.metrics.names()));
    let mut text = String::new();
    record(&mut text, ["experiment"].iter().chain(&params).chain(&metrics));
    for row in rows() {
        let params = params.iter().map(|name| row.params.get(name).map(ToString::to_string));
        let metrics = metrics.iter().map(|name| row.metrics.get(name).map(ToString::to_string));
        let values = params.chain(metrics).map(Option::unwrap_or_default);
        record(&mut text, std::iter::once(row.experiment.clone()).chain(values));
    }
    text
}

#[derive(Serialize)]
struct ReportData<'a> {
    version: &'a str,
    seed: u64,
    seeds: usize,
    experiments: Vec<ExperimentInfo<'a>>,
    rows: Vec<&'a ResultRow>,
    /// Half of each metric's 95 % confidence interval, per row; empty with one seed.
    intervals: Vec<&'a Metrics>,
    parameters: &'a [ModelConstant],
    residuals: &'a [Residual],
    sensitivity: &'a ModelSensitivity,
}

#[derive(Serialize)]
struct ExperimentInfo<'a> {
    experiment: &'a str,
    title: &'a str,
    shows: &'a str,
    units: NamedValues<&'a str>,
    commands: Vec<String>,
    missing_points: usize,
}

pub(super) fn json(report: &ExperimentReport) -> String {
    let rows = || report.sections.iter().flat_map(|section| &section.rows);
    let about = report.sections.iter().map(|section| ExperimentInfo {
        experiment: section.experiment.name,
        title: section.experiment.title,
        shows: section.experiment.shows,
        units: section
            .experiment
            .metrics
            .iter()
            .map(|metric| (metric.name.to_owned(), metric.unit))
            .collect(),
        commands: section.commands(report.seeds()),
        missing_points: section.missing,
    });
    let all = ReportData {
        version: &report.version,
        seed: report.seed,
        seeds: report.seeds,
        experiments: about.collect(),
        rows: rows().collect(),
        intervals: rows().filter_map(|row| report.interval(row)).collect(),
        parameters: &report.parameters,
        residuals: &report.residuals,
        sensitivity: &report.sensitivity,
    };
    // Serializing cannot fail: a report has only names, numbers and texts.
    serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
}
