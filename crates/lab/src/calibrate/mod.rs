//! Calibration: moves a few cost constants within their plausible ranges until the model is close to the
//! published values. The residuals are published too.
//!
//! | module | contents |
//! |---|---|
//! | [`target`] | published values, and the points and formulas that compute them |
//! | [`knob`] | constants that may be moved, singly or in groups |
//! | [`prediction`] | values per figure that nothing is fitted to |
//! | `bench` | runs experiments with given constants, several at a time |
//! | `fit` | least squares in a box |
//! | [`sensitivity`] | effects of constants on targets and predictions |
//! | [`stored`] | results as data files |
//!
//! All targets have equal weight, and no constant is fitted that only one figure depends on.

mod bench;
mod fit;
pub mod knob;
pub mod prediction;
pub mod sensitivity;
pub mod stored;
pub mod target;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use hypervisor::cost::CostTable;
use serde::Serialize;

use crate::catalogue::Residual;
use crate::row::rounded;
use crate::runner::LabError;
use bench::{CalibrationRunner, ConstantValues};
use knob::KNOBS;
use stored::StoredCalibration;
use target::{CalibrationTarget, TARGETS};

/// Weight of the uncalibrated values: a constant at the end of its range counts like a target missed by 2 %.
/// Constants that no target depends on stay at those values.
const PULL: f64 = 0.02;

/// Result of a calibration of the model's constants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibrationResult {
    /// Cost constants that the calibration may change, with their values before and after.
    pub constants: Vec<FittedConstant>,
    /// Residuals of all calibration targets, including those that nothing is fitted to.
    pub residuals: Vec<Residual>,
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
    /// Returns the calibration in the form of the calibration file.
    #[must_use]
    pub fn stored(&self) -> StoredCalibration {
        let constants: BTreeMap<_, _> =
            self.constants.iter().map(|fitted| (fitted.name.to_owned(), fitted.value)).collect();
        StoredCalibration { constants, residuals: self.residuals.clone() }
    }
}

/// Fits the constants of the nehalem cost table, starting from its uncalibrated values. The result is the
/// same on every machine for any number of jobs; `tell` is called with progress messages.
///
/// # Errors
/// [`LabError`] if a point cannot be run.
pub fn calibrate(jobs: NonZeroUsize, tell: &dyn Fn(&str)) -> Result<CalibrationResult, LabError> {
    let seeds = CostTable::nehalem();
    let targets: Vec<_> = TARGETS.iter().filter(|target| target.is_fitted()).collect();
    let bench = CalibrationRunner::new(targets, jobs);
    let start: Vec<f64> = KNOBS.iter().map(|knob| knob.start(&seeds)).collect();
    let misfits = |places: &[Vec<f64>]| -> Result<Vec<Vec<f64>>, LabError> {
        let sets: Vec<_> = places.iter().map(|place| constants(&seeds, place)).collect();
        let found = bench.run(&sets)?;
        let pulls = places.iter().map(|place| place.iter().zip(&start).map(|(at, seed)| PULL * (at - seed)));
        Ok(found
            .iter()
            .zip(pulls)
            .map(|(found, pulls)| bench.misfits(found).chain(pulls).collect())
            .collect())
    };
    let best = fit::minimise(start.clone(), misfits, tell)?;
    let constants = constants(&seeds, &best);
    tell("residuals");
    let residuals = residuals(TARGETS.iter().collect(), &constants, jobs)?;
    Ok(CalibrationResult { constants: fitted(&seeds, &constants), residuals })
}

/// Returns the values of all cost constants that the calibration moves, given the position of each constant
/// group.
fn constants(seeds: &CostTable, places: &[f64]) -> ConstantValues {
    KNOBS.iter().zip(places).flat_map(|(knob, &place)| knob.constants(seeds, place)).collect()
}

/// Returns the residuals of calibration targets with given cost constants.
fn residuals(
    targets: Vec<&'static CalibrationTarget>,
    constants: &ConstantValues,
    jobs: NonZeroUsize,
) -> Result<Vec<Residual>, LabError> {
    let bench = CalibrationRunner::new(targets, jobs);
    let found = bench.run(std::slice::from_ref(constants))?;
    let residual = |(target, model): (&&'static CalibrationTarget, &f64)| {
        let (value, unit) = target.value();
        Residual {
            what: target.what(),
            unit: unit.to_owned(),
            target: value,
            model: rounded(*model),
            source: target.source(),
        }
    };
    Ok(bench.targets().iter().zip(&found[0]).map(residual).collect())
}

fn fitted(seeds: &CostTable, constants: &ConstantValues) -> Vec<FittedConstant> {
    let knobs = KNOBS.iter().flat_map(|knob| knob.members.iter().map(move |cost| (knob.name, *cost)));
    let fitted = |((knob, cost), (name, value)): ((&'static str, _), &(&'static str, u64))| {
        let row = seeds.row(cost);
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
