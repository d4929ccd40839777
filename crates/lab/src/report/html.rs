//! The page: figures, tables, parameters, residuals, and how to find it all again. Left out: scripts, and
//! anything that would have to be fetched.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Report, Section};
use crate::catalogue::{Parameter, Residual};
use crate::figure::from_rows::charts;
use crate::value::Value;

const STYLE: &str = include_str!("style.css");
/// The browser fetches nothing and runs nothing, whatever a name in a row may hold.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
/// A residual beyond this is marked.
const FAR: f64 = 0.10;

pub(super) fn page(report: &Report) -> String {
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
                    @if !report.residuals.is_empty() { (residuals(&report.residuals)) }
                    @if !report.parameters.is_empty() { (parameters(&report.parameters)) }
                    (reproduce(report))
                }
            }
        }
    };
    page.into_string()
}

fn head(report: &Report) -> Markup {
    let rows: usize = report.sections.iter().map(|section| section.rows.len()).sum();
    html! {
        header {
            h1 { "SoftIOV lab report" }
            p.lead {
                "An SR-IOV card and its drivers on a modelled machine, in virtual time. "
                "Every number below follows from the seed and the parameters; none is measured on the machine that made this page."
            }
            dl.facts {
                div { dt { "Version" } dd { code { (report.version) } } }
                div { dt { "Seed" } dd { code { (report.seed) } } }
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
                    @if !report.parameters.is_empty() { li { a href="#parameters" { "Parameters" } } }
                    li { a href="#reproduce" { "How to reproduce" } }
                }
            }
        }
    }
}

fn experiment(report: &Report, section: &Section) -> Markup {
    let id = section.id();
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
            @for chart in charts(section.experiment, &section.rows(), &id) {
                figure { (PreEscaped(chart.to_svg())) }
            }
            details {
                summary { "Table: " (section.rows.len()) " rows" }
                (rows(section))
            }
            p.command { "Reproduce with " code { (section.command(report.seed)) } }
        }
    }
}

fn rows(section: &Section) -> Markup {
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
                        td.number { @if let Some(value) = row.metrics.get(metric.name) { (number(*value)) } }
                    }
                } }
            }
        } }
    }
}

fn residuals(residuals: &[Residual]) -> Markup {
    html! {
        section #residuals {
            h2 { "Calibration residuals" }
            p {
                "The values that the model was calibrated on, and what it makes of them. "
                "Everything else on this page is a prediction."
            }
            div.scroll { table {
                thead { tr {
                    th scope="col" { "what" } th.number scope="col" { "source says" }
                    th.number scope="col" { "model says" } th scope="col" { "unit" }
                    th.number scope="col" { "difference" } th scope="col" { "source" }
                } }
                tbody {
                    @for residual in residuals { tr {
                        td { (residual.what) }
                        td.number { (number(residual.target)) }
                        td.number { (number(residual.model)) }
                        td { (residual.unit) }
                        (difference(residual))
                        td.source { (residual.source) }
                    } }
                }
            } }
        }
    }
}

fn difference(residual: &Residual) -> Markup {
    let relative = residual.relative();
    let far = relative.is_none_or(|relative| relative.abs() > FAR);
    let text = relative
        .map_or("none".to_owned(), |relative| format!("{:+.1} %", relative * 100.0).replace('-', "\u{2212}"));
    html! { td.number.far[far] { (text) } }
}

fn parameters(parameters: &[Parameter]) -> Markup {
    html! {
        section #parameters {
            h2 { "Parameters" }
            p {
                "What the model is given. " b { "Published" } " and " b { "stated" } " values are somebody's measurements, "
                b { "derived" } " ones follow from them by arithmetic, " b { "fitted" } " ones from the calibration, and "
                b { "estimates" } " are ours."
            }
            div.scroll { table {
                thead { tr {
                    th scope="col" { "table" } th scope="col" { "name" } th.number scope="col" { "value" }
                    th scope="col" { "unit" } th scope="col" { "kind" } th scope="col" { "source" }
                } }
                tbody {
                    @for parameter in parameters { tr {
                        td { (parameter.table) }
                        td { code { (parameter.name) } }
                        td.number { (number(parameter.value)) }
                        td { (parameter.unit) }
                        td { span.kind data-kind=(parameter.kind) { (parameter.kind) } }
                        td.source { (parameter.source) }
                    } }
                }
            } }
        }
    }
}

fn reproduce(report: &Report) -> Markup {
    html! {
        section #reproduce {
            h2 { "How to reproduce" }
            p { "With the version above, on any machine, these run the sweeps again and make this page of them:" }
            pre { code {
                @for command in report.commands() { (command) " --out results\n" }
                "softiov lab report --in results --out report.html"
            } }
            p { "The rows themselves are in the CSV and JSON files beside this page." }
        }
    }
}

/// As in the rows, without a decimal point where none is needed.
fn number(value: f64) -> String {
    Value::Real(value).to_string().replace('-', "\u{2212}")
}
