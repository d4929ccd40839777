//! `softiov lab calibrate`: what is fitted and what is left over on standard output, progress on standard error.

use anyhow::Context;
use lab::calibrate::sensitivity::{Effect, sensitivity};
use lab::calibrate::{self, Calibration};

use super::table::Table;
use super::{CalibrateArgs, jobs};
use crate::output;

pub(super) fn calibrate(args: &CalibrateArgs) -> anyhow::Result<()> {
    let tell = |text: &str| eprintln!("softiov lab: {text}");
    if args.sensitivity {
        let effects = sensitivity(jobs(args.jobs), &tell)?;
        let text = if args.json { json(&effects)? } else { effects_as_text(&effects) };
        return output::print(&text);
    }
    let found = calibrate::calibrate(jobs(args.jobs), &tell)?;
    if let Some(file) = &args.out {
        let write = || anyhow::Ok(std::fs::write(file, found.stored().to_toml()?)?);
        write().with_context(|| format!("cannot write {}", file.display()))?;
    }
    output::print(&if args.json { json(&found)? } else { as_text(&found) })
}

fn json(found: &impl serde::Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(found)? + "\n")
}

fn heading(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|&cell| cell.to_owned()).collect()
}

fn as_text(found: &Calibration) -> String {
    let mut constants =
        Table::new(heading(&["constant", "unit", "moved with", "kind", "seed", "least", "most", "value"]), 4);
    for fitted in &found.constants {
        let numbers = [fitted.seed, fitted.range.0, fitted.range.1, fitted.value].map(|n| n.to_string());
        let names = [fitted.name, fitted.unit, fitted.knob, fitted.kind].map(str::to_owned);
        constants.row([names, numbers].concat());
    }
    let mut residuals = Table::new(heading(&["target", "unit", "value", "model", "off by"]), 2);
    for residual in &found.residuals {
        let off = residual.relative().map_or_else(String::new, |part| format!("{:+.1} %", part * 100.0));
        let numbers = [residual.target.to_string(), residual.model.to_string(), off];
        residuals.row([vec![residual.what.clone(), residual.unit.clone()], numbers.to_vec()].concat());
    }
    format!("{constants}\n{residuals}")
}

fn effects_as_text(effects: &[Effect]) -> String {
    let mut table = Table::new(heading(&["target", "constant", "-20 %", "+20 %"]), 2);
    for effect in effects {
        let changes = [effect.less_pct, effect.more_pct].map(|change| format!("{change:+.1} %"));
        let names = [effect.target, effect.constant].map(str::to_owned);
        table.row([names, changes].concat());
    }
    table.to_string()
}
