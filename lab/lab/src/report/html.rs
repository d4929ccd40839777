//! Renders the report's page: figures, tables, parameters, residuals, and commands to reproduce the rows. It
//! has no scripts and loads nothing.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::figures::{FigureAnnotations, charts};
use super::{ExperimentReport, ReportSection, model};
use crate::experiments::why_nothing;
use crate::row::ResultRow;
use crate::value::ParameterValue;

const STYLE: &str = include_str!("style.css");
/// Content security policy of the report's page: the browser loads and runs nothing, whatever names the result rows
/// contain.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub(super) fn page(report: &ExperimentReport) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "SoftIOV lab report" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(report))
                main {
                    @for section in &report.sections { (experiment(report, section)) }
                    @if !report.residuals.is_empty() { (model::residuals(&report.residuals)) }
                    @if !report.sensitivity.values.is_empty() { (model::sensitivity(report)) }
                    @if !report.parameters.is_empty() { (model::parameters(&report.parameters)) }
                    (reproduce(report))
                }
            }
        }
    };
    page.into_string()
}

fn head(report: &ExperimentReport) -> Markup {
    let rows: usize = report.sections.iter().map(|section| section.rows.len()).sum();
    html! {
        header {
            h1 { "SoftIOV lab report" }
            p.lead {
                "An SR-IOV card and its drivers in a modelled machine, in virtual time. "
                "Every number below follows from the seed and the parameters; none is measured on the machine that made this page."
            }
            dl.facts {
                div { dt { "Version" } dd { code { (report.version) } } }
                div { dt { "Seed" } dd {
                    code { (report.seed) }
                    @if report.seeds > 1 { " and " (report.seeds - 1) " more: means, and half of their 95 % intervals" }
                } }
                div { dt { "Rows" } dd { (rows) } }
            }
            nav aria-label="Contents" {
                ol {
                    @for section in &report.sections {
                        li { a href={ "#" (section.id()) } {
                            b { (section.experiment.name) } " " (section.experiment.title)
                            @if !section.changed.is_empty() { span.changed { (section.changed) } }
                        } }
                    }
                    @if !report.residuals.is_empty() { li { a href="#residuals" { "Calibration residuals" } } }
                    @if !report.sensitivity.values.is_empty() {
                        li { a href="#sensitivity" { "Sensitivity of predictions" } }
                    }
                    @if !report.parameters.is_empty() { li { a href="#parameters" { "Parameters" } } }
                    li { a href="#reproduce" { "How to reproduce" } }
                }
            }
        }
    }
}

fn experiment(report: &ExperimentReport, section: &ReportSection) -> Markup {
    let id = section.id();
    let spread = |row: &ResultRow, metric: &str| report.half(row, metric);
    let annotations = FigureAnnotations {
        stated: report.stated_of(section),
        ranges: report.ranges_of(section),
        spread: &spread,
    };
    html! {
        section id=(id) {
            h2 { span.name { (section.experiment.name) } " " (section.experiment.title) }
            @if !section.changed.is_empty() {
                p { span.changed { "changed: " (section.changed) } }
            }
            p { (section.experiment.shows) }
            @if section.missing > 0 {
                p.warning { "The figure has gaps: points of the sweep that have not been run: " (section.missing) "." }
            }
            @for row in &section.rows {
                @if let Some(why) = why_nothing(row) { p.warning { code { (row.params.to_string()) } ": nothing; " (why) "." } }
            }
            @for chart in charts(section.experiment, &section.rows(), &id, &annotations) {
                figure { (PreEscaped(chart.to_svg())) }
            }
            details {
                summary { "Table: " (section.rows.len()) " rows" }
                (rows(report, section))
            }
            p.command {
                "Reproduce with "
                @for command in section.commands(report.seeds()) { code { (command) } " " }
            }
        }
    }
}

fn rows(report: &ExperimentReport, section: &ReportSection) -> Markup {
    let experiment = section.experiment;
    html! {
        div.scroll { table {
            thead { tr {
                @for axis in experiment.axes { th scope="col" title=(axis.what) { (axis.name) } }
                @for metric in experiment.metrics {
                    th.number scope="col" title=(metric.what) { (metric.name) br; span.unit { (metric.unit) } }
                }
            } }
            tbody {
                @for row in &section.rows { tr {
                    @for axis in experiment.axes {
                        td { @if let Some(value) = row.params.get(axis.name) { (value.to_string()) } }
                    }
                    @for metric in experiment.metrics {
                        td.number {
                            @if let Some(value) = row.metrics.get(metric.name) { (number(*value)) }
                            @if let Some(half) = report.half(row, metric.name) { " \u{b1}\u{a0}" (number(half)) }
                        }
                    }
                } }
            }
        } }
    }
}

fn reproduce(report: &ExperimentReport) -> Markup {
    html! {
        section #reproduce {
            h2 { "How to reproduce" }
            p { "With the version above, on any machine, these commands run the sweeps and create this page:" }
            pre { code {
                @for command in report.commands() { (command) " --out results\n" }
                "softiov lab report --in results --out report.html"
            } }
            p { "The rows themselves are in the CSV and JSON files beside this page." }
        }
    }
}

/// Formats a number as in the rows, without a needless decimal point.
pub(super) fn number(value: f64) -> String {
    ParameterValue::Real(value).to_string().replace('-', "\u{2212}")
}
