//! Calibration: a few constants are moved, each within the range that its row states, until the model comes close
//! to the published values there are. What is left over is published with it.
//!
//! | module | what it is |
//! |---|---|
//! | [`target`] | the values to come close to, and how the experiments find them |
//! | [`knob`] | the constants that may be moved, some of them together |
//! | [`prediction`] | values that nothing is fitted to, for each figure |
//! | `bench` | experiments run with other constants, several at a time |
//! | `fit` | least squares in a box |
//! | [`sensitivity`] | which constants targets and predictions hang on |
//! | [`stored`] | the results as data |
//!
//! Left out: weights that favour a figure, and constants that only one figure would feel.

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
use bench::{Bench, Constants};
use knob::KNOBS;
use stored::Stored;
use target::{TARGETS, Target};

/// The pull of the seeds: a constant at the end of its range weighs as much as a target missed by 2 %. What no
/// target asks for stays where it was.
const PULL: f64 = 0.02;

/// What a calibration found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Every constant that may be moved.
    pub constants: Vec<Fitted>,
    /// Every target, those that nothing is fitted to included.
    pub residuals: Vec<Residual>,
}

/// A constant before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fitted {
    /// Its name in the table.
    pub name: &'static str,
    /// Which constants move together with it.
    pub knob: &'static str,
    /// Before.
    pub seed: u64,
    /// After.
    pub value: u64,
    /// Where it is believed to lie.
    pub range: (u64, u64),
    /// Its unit.
    pub unit: &'static str,
    /// Its kind in the calibrated table.
    pub kind: &'static str,
}

impl Calibration {
    /// As it is kept.
    #[must_use]
    pub fn stored(&self) -> Stored {
        let constants: BTreeMap<_, _> =
            self.constants.iter().map(|fitted| (fitted.name.to_owned(), fitted.value)).collect();
        Stored { constants, residuals: self.residuals.clone() }
    }
}

/// Fits the constants of the nehalem table, from its seeds; what was fitted before has no say. The same on every
/// machine, whatever the number of jobs; `tell` hears how far it is.
///
/// # Errors
/// A point cannot be run.
pub fn calibrate(jobs: NonZeroUsize, tell: &dyn Fn(&str)) -> Result<Calibration, LabError> {
    let seeds = CostTable::nehalem();
    let targets: Vec<_> = TARGETS.iter().filter(|target| target.weight > 0.0).collect();
    let bench = Bench::new(targets, jobs);
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
    Ok(Calibration { constants: fitted(&seeds, &constants), residuals })
}

/// The constants with every knob in its place.
fn constants(seeds: &CostTable, places: &[f64]) -> Constants {
    KNOBS.iter().zip(places).flat_map(|(knob, &place)| knob.constants(seeds, place)).collect()
}

/// What the model makes of targets with these constants.
fn residuals(
    targets: Vec<&'static Target>,
    constants: &Constants,
    jobs: NonZeroUsize,
) -> Result<Vec<Residual>, LabError> {
    let bench = Bench::new(targets, jobs);
    let found = bench.run(std::slice::from_ref(constants))?;
    let residual = |(target, model): (&&'static Target, &f64)| {
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

fn fitted(seeds: &CostTable, constants: &Constants) -> Vec<Fitted> {
    let knobs = KNOBS.iter().flat_map(|knob| knob.members.iter().map(move |cost| (knob.name, *cost)));
    let fitted = |((knob, cost), (name, value)): ((&'static str, _), &(&'static str, u64))| {
        let row = seeds.row(cost);
        Fitted {
            name,
            knob,
            seed: row.value,
            value: *value,
            range: row.range,
            unit: row.unit.name(),
            kind: hypervisor::cost::Kind::Fitted.name(),
        }
    };
    knobs.zip(constants).map(fitted).collect()
}
