//! `softiov lab calibrate`: prints fitted constants and residuals. Progress goes to standard error.

use std::path::Path;

use anyhow::Context;
use lab::calibrate::knob::{KNOBS, degrees_of_freedom};
use lab::calibrate::prediction::predictions;
use lab::calibrate::target::TARGETS;
use lab::calibrate::{self, CalibrationResult, sensitivity};
use lab::catalogue::{ConstantEffect, ModelSensitivity, ValueSensitivity};
use lab::experiments;

use super::progress::{jobs, print_progress};
use super::table::TextTable;
use super::{LabCalibrateArgs, SensitivityValueKind};
use crate::output;

pub(super) fn calibrate(args: &LabCalibrateArgs) -> anyhow::Result<()> {
    args.out.as_deref().map_or(Ok(()), output::check_writable)?;
    if let Some(values) = args.sensitivity {
        return sensitivity(args, values);
    }
    let found = calibrate::calibrate(jobs(args.jobs), &print_progress)?;
    save(args.out.as_deref(), || Ok(found.stored().to_toml()?))?;
    output::print(&if args.json { json(&found)? } else { as_text(&found) })
}

fn sensitivity(args: &LabCalibrateArgs, values: SensitivityValueKind) -> anyhow::Result<()> {
    let targets = match values {
        SensitivityValueKind::Targets => TARGETS.iter().collect(),
        SensitivityValueKind::Predictions => predictions(&experiments::catalogue()),
    };
    let values = sensitivity::sensitivity(
        targets,
        &sensitivity::RunCostTable::calibrated(),
        jobs(args.jobs),
        &print_progress,
    )?;
    let found = ModelSensitivity { version: lab::VERSION.to_owned(), values };
    save(args.out.as_deref(), || Ok(found.to_toml()?))?;
    output::print(&if args.json { json(&found)? } else { dependences(&found.values) })
}

pub(super) fn save(file: Option<&Path>, text: impl FnOnce() -> anyhow::Result<String>) -> anyhow::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let write = || anyhow::Ok(std::fs::write(file, text()?)?);
    write().with_context(|| format!("cannot write {}", file.display()))
}

pub(super) fn json(found: &impl serde::Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(found)? + "\n")
}

pub(super) fn heading(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|&cell| cell.to_owned()).collect()
}

fn as_text(found: &CalibrationResult) -> String {
    let mut constants = TextTable::new(
        heading(&["constant", "unit", "moved with", "kind", "seed", "least", "most", "value"]),
        4,
    );
    for fitted in &found.constants {
        let numbers = [fitted.seed, fitted.range.0, fitted.range.1, fitted.value].map(|n| n.to_string());
        let names = [fitted.name, fitted.unit, fitted.knob, fitted.kind].map(str::to_owned);
        constants.row([names, numbers].concat());
    }
    let mut residuals = TextTable::new(heading(&["target", "unit", "value", "model", "off by"]), 2);
    for residual in &found.residuals {
        let off = residual.relative().map_or_else(String::new, |part| format!("{:+.1} %", part * 100.0));
        let numbers = [residual.target.to_string(), residual.model.to_string(), off];
        residuals.row([vec![residual.what.clone(), residual.unit.clone()], numbers.to_vec()].concat());
    }
    let (free, knobs) = (degrees_of_freedom(), KNOBS.len());
    let alone: Vec<_> = KNOBS.iter().filter_map(|knob| knob.alone).collect();
    let freedom = format!(
        "{knobs} fitted knobs, {free} more values than knobs; values with a knob of their own do not test \
         the model: {}\n",
        alone.join(", ")
    );
    format!("{constants}\n{residuals}\n{freedom}")
}

/// Returns a table of values' dependence on constants: a line for each value and constant, with the changes
/// at -20 % and +20 %.
fn dependences(values: &[ValueSensitivity]) -> String {
    let mut table = TextTable::new(heading(&["value", "unit", "constant", "is", "-20 %", "+20 %"]), 3);
    for ValueSensitivity { what, unit, value, effects } in values {
        for ConstantEffect { constant, less_pct, more_pct } in effects {
            let changes = [less_pct, more_pct].map(|change| format!("{change:+.1} %"));
            let names = [what, unit, constant].map(String::clone);
            table.row([names.as_slice(), &[value.to_string()], &changes].concat());
        }
    }
    table.to_string()
}
