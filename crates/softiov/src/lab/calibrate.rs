//! `softiov lab calibrate`: prints fitted constants and residuals. Progress goes to standard error.

use std::path::Path;

use anyhow::Context;
use lab::calibrate::prediction::predictions;
use lab::calibrate::setup::CalibrationSetup;
use lab::calibrate::target::TARGETS;
use lab::calibrate::targets_file::read_targets;
use lab::calibrate::{self, CalibrationExtras, CalibrationResult, sensitivity};
use lab::catalogue::{ConstantEffect, ModelSensitivity, Residual, ValueSensitivity};
use lab::experiments;

use super::progress::{jobs, print_progress};
use super::table::TextTable;
use super::{LabCalibrateArgs, LabCalibrationInputs, SensitivityValueKind, machine};
use crate::output;

/// Value of `--profile` that selects every fitted knob.
const ALL_KNOBS: &str = "all";

pub(super) fn calibrate(args: &LabCalibrateArgs) -> anyhow::Result<()> {
    args.out.as_deref().map_or(Ok(()), output::check_writable)?;
    if let Some(values) = args.sensitivity {
        return sensitivity(args, values);
    }
    let (setup, extras) = setup(args)?;
    let found = calibrate::calibrate(&setup, &extras, &print_progress)?;
    save(args.out.as_deref(), || Ok(found.stored().to_toml(&command(&args.inputs))?))?;
    output::print(&if args.json { json(&found)? } else { as_text(&setup, &found) })
}

/// Returns the calibration that the arguments describe.
fn setup(args: &LabCalibrateArgs) -> anyhow::Result<(CalibrationSetup, CalibrationExtras)> {
    let inputs = &args.inputs;
    let catalogue = experiments::catalogue();
    let mut setup = CalibrationSetup::of_paper(jobs(args.jobs));
    if let Some(table) = &inputs.table {
        setup.use_machine(machine::read_checked(table, &catalogue.settings)?.values)?;
    }
    if let Some(file) = &inputs.targets {
        let of_file = || format!("targets file {}", file.display());
        let text = std::fs::read_to_string(file).with_context(of_file)?;
        setup.use_targets(read_targets(&text, &catalogue).with_context(of_file)?);
    }
    if !inputs.knobs.is_empty() {
        setup.fit_only(&inputs.knobs)?;
    }
    for name in &inputs.hold {
        setup.hold(name)?;
    }
    setup.set(&inputs.set);
    setup.seeds = inputs.seeds.unwrap_or(setup.seeds);
    setup.check()?;
    let profiles = match inputs.profile.as_deref() {
        None => Vec::new(),
        Some(ALL_KNOBS) => (0..setup.knobs.len()).collect(),
        Some(name) => vec![knob(&setup, name)?],
    };
    Ok((setup, CalibrationExtras { leave_one_out: inputs.leave_one_out, profiles }))
}

/// Returns the index of a fitted knob.
fn knob(setup: &CalibrationSetup, name: &str) -> anyhow::Result<usize> {
    let names: Vec<_> = setup.knobs.iter().map(|knob| knob.name).collect();
    let unknown = || format!("no fitted knob is called {name}; fitted knobs are {}", names.join(", "));
    names.iter().position(|known| *known == name).with_context(unknown)
}

/// Returns the command that computes the calibration again. Neither --jobs nor --json changes it.
fn command(inputs: &LabCalibrationInputs) -> String {
    let mut words = vec!["softiov lab calibrate".to_owned()];
    let mut option = |name: &str, value: &str| {
        let quoted = if value.contains(' ') { format!("'{value}'") } else { value.to_owned() };
        words.push(format!("--{name} {quoted}").trim_end().to_owned());
    };
    inputs.table.iter().for_each(|table| option("table", table));
    inputs.targets.iter().for_each(|file| option("targets", &file.display().to_string()));
    if !inputs.knobs.is_empty() {
        option("knobs", &inputs.knobs.join(","));
    }
    inputs.hold.iter().for_each(|name| option("hold", name));
    inputs.set.iter().for_each(|set| option("set", &format!("{}={}", set.key, set.value)));
    inputs.seeds.iter().for_each(|seeds| option("seeds", &seeds.to_string()));
    if inputs.leave_one_out {
        option("leave-one-out", "");
    }
    words.push("--out FILE".to_owned());
    words.join(" ")
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

fn as_text(setup: &CalibrationSetup, found: &CalibrationResult) -> String {
    let mut constants = TextTable::new(
        heading(&["constant", "unit", "moved with", "kind", "seed", "least", "most", "value"]),
        4,
    );
    for fitted in &found.constants {
        let numbers = [fitted.seed, fitted.range.0, fitted.range.1, fitted.value].map(|n| n.to_string());
        let names = [fitted.name, fitted.unit, fitted.knob, fitted.kind].map(str::to_owned);
        constants.row([names, numbers].concat());
    }
    let (free, knobs) = (setup.fitted_targets() - setup.knobs.len(), setup.knobs.len());
    let alone: Vec<_> = setup.knobs.iter().filter_map(|knob| knob.alone).collect();
    let mut freedom = format!("{knobs} fitted knobs, {free} more values than knobs");
    if !alone.is_empty() {
        freedom += "; values with a knob of their own do not test the model: ";
        freedom += &alone.join(", ");
    }
    for knob in found.knobs_at_wall(setup) {
        let unknown = || format!("no reason is stated; `--profile '{}'` fits with it elsewhere", knob.name);
        let reason = knob.at_wall.map_or_else(unknown, str::to_owned);
        freedom += &format!("\nat an end of its range: {} ({reason})", knob.name);
    }
    let profile = if found.profile.is_empty() { String::new() } else { profile(found) };
    format!("{constants}\n{}\n{freedom}\n{profile}", residuals(found))
}

/// Returns a table of residuals, with the values that the other targets predict if they were computed.
fn residuals(found: &CalibrationResult) -> String {
    let has_left_out = found.residuals.iter().any(|residual| residual.left_out.is_some());
    let columns = if has_left_out { 7 } else { 5 };
    let all = ["target", "unit", "value", "model", "off by", "left out", "off by"];
    let mut table = TextTable::new(heading(&all[..columns]), 2);
    for residual in &found.residuals {
        let off = |model: Option<f64>| {
            let part = model.and_then(|model| Residual { model, ..residual.clone() }.relative());
            part.map_or_else(String::new, |part| format!("{:+.1} %", part * 100.0))
        };
        let left_out = residual.left_out.map_or_else(String::new, |value| value.to_string());
        let mut row = vec![residual.what.clone(), residual.unit.clone(), residual.target.to_string()];
        let half = residual.half.map_or_else(String::new, |half| format!(" +- {half}"));
        row.extend([residual.model.to_string() + &half, off(Some(residual.model))]);
        row.extend([left_out, off(residual.left_out)]);
        row.truncate(columns);
        table.row(row);
    }
    table.to_string()
}

/// Returns a table of knobs' profiles: a knob's constants, and the residuals of the best fit of the other knobs.
fn profile(found: &CalibrationResult) -> String {
    let mut table = TextTable::new(heading(&["knob", "held at", "root mean square of residuals"]), 2);
    for place in &found.profile {
        let constants = place.constants.iter().map(|(name, value)| format!("{name}={value}"));
        let residual = format!("{:.2} %", place.residual_pct);
        table.row(vec![place.knob.to_owned(), constants.collect::<Vec<_>>().join(" "), residual]);
    }
    format!("\n{table}")
}

/// Returns a table of values' dependence on constants: a line for each value and constant, with the range of the value
/// and its changes at -20 % and +20 %.
fn dependences(values: &[ValueSensitivity]) -> String {
    let mut table =
        TextTable::new(heading(&["value", "unit", "constant", "is", "least", "most", "-20 %", "+20 %"]), 3);
    for ValueSensitivity { what, unit, value, range, effects } in values {
        let ends = range.map_or([String::new(), String::new()], |ends| ends.map(|end| end.to_string()));
        for ConstantEffect { constant, less_pct, more_pct } in effects {
            let changes = [less_pct, more_pct].map(|change| format!("{change:+.1} %"));
            let names = [what, unit, constant].map(String::clone);
            table.row([names.as_slice(), &[value.to_string()], &ends, &changes].concat());
        }
    }
    table.to_string()
}
