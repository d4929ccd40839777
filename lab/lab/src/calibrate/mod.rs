//! Calibration: moves a few cost constants within their plausible ranges until the model is close to the
//! published values. The residuals are published too.
//!
//! | module | contents |
//! |---|---|
//! | [`target`] | published values, and the points and formulas that compute them |
//! | [`knob`] | constants that may be moved, singly or in groups |
//! | [`prediction`] | values per figure that nothing is fitted to |
//! | [`setup`] | inputs of a calibration: table, knobs, targets, settings |
//! | [`targets_file`] | targets of a file |
//! | `bench` | runs experiments with given constants, several at a time |
//! | `search` | the best fit, fits without a target, and a knob's profile |
//! | `fit` | least squares in a box |
//! | [`sensitivity`] | effects of constants on targets and predictions |
//! | [`stored`] | results as data files |
//!
//! All targets have equal weight, and no constant is fitted that only one figure depends on.

mod bench;
mod fit;
pub mod knob;
pub mod prediction;
mod search;
#[cfg(test)]
mod seeds_tests;
pub mod sensitivity;
#[cfg(test)]
mod sensitivity_tests;
pub mod setup;
pub mod stored;
#[cfg(test)]
mod stored_tests;
pub mod target;
pub mod targets_file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use hypervisor::cost::CostConstant;
use serde::Serialize;

use crate::catalogue::Residual;
use crate::row::rounded;
use crate::runner::LabError;
use bench::{CalibrationRunner, ConstantValues, intervals};
use knob::ConstantGroup;
use search::CalibrationSearch;
use setup::CalibrationSetup;
use stored::StoredCalibration;
use target::CalibrationTarget;

/// Number of places of a knob's profile.
const PROFILE_PLACES: u32 = 5;

/// Result of a calibration of the model's constants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibrationResult {
    /// Cost constants that the calibration may change, with their values before and after.
    pub constants: Vec<FittedConstant>,
    /// Residuals of all calibration targets, including those that nothing is fitted to.
    pub residuals: Vec<Residual>,
    /// Best fits with a knob held at several places of its range, knob by knob; empty unless asked for.
    pub profile: Vec<ProfilePlace>,
}

/// Best fit with a knob held at a place of its range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfilePlace {
    /// Name of the held knob.
    pub knob: &'static str,
    /// Value of each constant of the held knob.
    pub constants: BTreeMap<&'static str, u64>,
    /// Root mean square of the fitted targets' relative residuals, in percent.
    pub residual_pct: f64,
}

/// Further results of a calibration, which take several fits each.
#[derive(Clone, Debug, Default)]
pub struct CalibrationExtras {
    /// Fit without each target, and compute its value.
    pub leave_one_out: bool,
    /// Indices of the knobs whose profiles are computed.
    pub profiles: Vec<usize>,
}

/// Cost constant before and after a calibration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedConstant {
    /// Name of the constant in the cost table.
    pub name: &'static str,
    /// Name of the group whose factor scales the constant.
    pub knob: &'static str,
    /// Value of the constant before the calibration.
    pub seed: u64,
    /// Value of the constant after the calibration.
    pub value: u64,
    /// Plausible range of the cost constant.
    pub range: (u64, u64),
    /// Unit of the cost constant's values.
    pub unit: &'static str,
    /// Kind of evidence for the constant in the calibrated table.
    pub kind: &'static str,
}

impl CalibrationResult {
    /// Returns the knobs of `setup` that the fit left at an end of their range.
    pub fn knobs_at_wall<'a>(
        &'a self,
        setup: &'a CalibrationSetup,
    ) -> impl Iterator<Item = &'a ConstantGroup> {
        let value =
            |cost: CostConstant| self.constants.iter().find(|it| it.name == cost.name()).map(|it| it.value);
        setup.knobs.iter().filter(move |knob| knob.is_at_wall(&setup.table, value))
    }

    /// Returns the calibration in the form of the calibration file.
    #[must_use]
    pub fn stored(&self) -> StoredCalibration {
        let constants: BTreeMap<_, _> =
            self.constants.iter().map(|fitted| (fitted.name.to_owned(), fitted.value)).collect();
        StoredCalibration { constants, residuals: self.residuals.clone() }
    }
}

/// Fits a calibration's knobs, starting from the values of its table. Stored constants stay unless the fit is better. The
/// result is the same on every machine for any number of jobs; `tell` is called with progress messages.
///
/// # Errors
/// [`LabError`] if a point cannot be run.
pub fn calibrate(
    setup: &CalibrationSetup,
    extras: &CalibrationExtras,
    tell: &dyn Fn(&str),
) -> Result<CalibrationResult, LabError> {
    let search = CalibrationSearch::new(setup, tell);
    let best = search.best()?;
    let constants = search.kept(search.constants(&best))?;
    tell("residuals");
    let runner = CalibrationRunner::new(setup.targets.clone(), setup.jobs).with(&setup.set);
    let mut residuals = residuals(&runner.on(&setup.machine).over(setup.seeds), &constants)?;
    if extras.leave_one_out {
        let values = search.left_out(&best)?;
        let fitted = setup.targets.iter().zip(&mut residuals).filter(|(target, _)| target.is_fitted());
        for ((_, residual), value) in fitted.zip(values) {
            residual.left_out = Some(rounded(value));
        }
    }
    let mut profile = Vec::new();
    for &held in &extras.profiles {
        let knob = &setup.knobs[held];
        for n in 0..PROFILE_PLACES {
            tell(&format!("profile of {}: fit {} of {PROFILE_PLACES}", knob.name, n + 1));
            let place = f64::from(n) / f64::from(PROFILE_PLACES - 1);
            let (_, residual) = search.held_at(&best, held, place)?;
            let constants = knob.constants(&setup.table, place).into_iter().collect();
            profile.push(ProfilePlace {
                knob: knob.name,
                constants,
                residual_pct: rounded(100.0 * residual),
            });
        }
    }
    Ok(CalibrationResult { constants: fitted(setup, &constants), residuals, profile })
}

/// Returns the residuals of a runner's targets with given cost constants.
fn residuals(runner: &CalibrationRunner, constants: &ConstantValues) -> Result<Vec<Residual>, LabError> {
    let found = runner.run_seeds(std::slice::from_ref(constants))?;
    let seeds = found[0].len();
    let residual = |(target, (model, half)): (&&'static CalibrationTarget, (f64, f64))| {
        let (value, unit) = target.value();
        Residual {
            what: target.what(),
            unit: unit.to_owned(),
            target: value,
            model: rounded(model),
            half: (seeds > 1).then(|| rounded(half)),
            left_out: None,
            source: target.source(),
        }
    };
    Ok(runner.targets().iter().zip(intervals(&found[0])).map(residual).collect())
}

fn fitted(setup: &CalibrationSetup, constants: &ConstantValues) -> Vec<FittedConstant> {
    let knobs = setup.knobs.iter().flat_map(|knob| knob.members.iter().map(move |cost| (knob.name, *cost)));
    let fitted = |((knob, cost), (name, value)): ((&'static str, _), &(&'static str, u64))| {
        let row = setup.table.row(cost);
        FittedConstant {
            name,
            knob,
            seed: row.value,
            value: *value,
            range: row.range,
            unit: row.unit.name(),
            kind: hypervisor::cost::CostEvidenceKind::Fitted.name(),
        }
    };
    knobs.zip(constants).map(fitted).collect()
}
