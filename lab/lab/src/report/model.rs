//! Renders the report's tables about the model: calibration residuals, sensitivity of predictions,
//! parameters.

use maud::{Markup, html};

use super::ExperimentReport;
use super::html::number;
use crate::catalogue::{ModelConstant, Residual};

/// Relative calibration residual above which a table row is marked.
const FAR: f64 = 0.10;
/// Number of cost constants shown per prediction; the JSON has all.
const SHOWN: usize = 5;

pub(super) fn residuals(residuals: &[Residual]) -> Markup {
    html! {
        section #residuals {
            h2 { "Calibration residuals" }
            p {
                "The values the model was calibrated on, and the model's results. "
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

/// Renders the sensitivity of predictions. It is computed beforehand, so its version may differ from the
/// rows'.
pub(super) fn sensitivity(report: &ExperimentReport) -> Markup {
    let sensitivity = &report.sensitivity;
    html! {
        section #sensitivity {
            h2 { "Sensitivity of predictions" }
            p {
                "Change of a value when one constant is reduced or increased by a fifth, for the constants with the largest effect. "
                "A range has the least and the greatest value of samples in which all estimates lie anywhere in their ranges. "
                "Computed with version " code { (sensitivity.version) } "."
            }
            @if sensitivity.version != report.version {
                p.warning { "The rows on this page are of another version: these numbers may be out of date." }
            }
            div.scroll { table {
                thead { tr {
                    th scope="col" { "prediction" } th.number scope="col" { "model says" }
                    th.number scope="col" { "range of estimates" } th scope="col" { "unit" }
                    th scope="col" { "constant: reduced, increased by a fifth" }
                } }
                tbody {
                    @for value in &sensitivity.values { tr {
                        td { (value.what) }
                        td.number { (number(value.value)) }
                        td.number {
                            @if let Some([least, most]) = value.range { (number(least)) " to " (number(most)) }
                        }
                        td { (value.unit) }
                        td {
                            @for effect in value.effects.iter().take(SHOWN) {
                                div { code { (effect.constant) } ": " (signed(effect.less_pct)) ", " (signed(effect.more_pct)) }
                            }
                            @if value.effects.is_empty() { "no constant changes this value by half a percent" }
                        }
                    } }
                }
            } }
        }
    }
}

pub(super) fn parameters(parameters: &[ModelConstant]) -> Markup {
    html! {
        section #parameters {
            h2 { "Parameters" }
            p {
                "The inputs of the model. " b { "Published" } " and " b { "stated" } " values are others' measurements, "
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

fn signed(percent: f64) -> String {
    format!("{percent:+.1} %").replace('-', "\u{2212}")
}
