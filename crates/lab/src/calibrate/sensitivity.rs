//! Sensitivity of values to constants: each constant is reduced and increased by a fifth, one at a time, even
//! beyond its range.

use std::num::NonZeroUsize;

use hypervisor::cost::{Cost, CostTable, Row};

use super::bench::{self, Bench};
use super::stored;
use super::target::{PointRef, Target};
use crate::catalogue::{Dependence, Effect};
use crate::named::Metrics;
use crate::row::rounded;
use crate::runner::LabError;
use crate::runner::plan::Assignment;

/// Effects below this percentage are omitted.
const WORTH: f64 = 0.5;

/// Settings of a short run, long enough to detect whether a constant is used; most are not, in most
/// experiments.
const BRIEF: [(&str, u32); 2] = [("measure_ms", 10), ("warm_up_ms", 5)];

/// Cost table of a run, with the settings that produce it.
#[derive(Clone, Debug)]
pub struct Constants {
    /// Cost table that the run uses.
    pub table: CostTable,
    /// Settings that produce the cost table.
    pub set: Vec<Assignment>,
}

impl Constants {
    /// Returns the constants of a run without settings.
    #[must_use]
    pub fn calibrated() -> Self {
        // A table that rejects its fit is reported when a point is run.
        let seeds = CostTable::nehalem();
        Self { table: stored::fitted(seeds.clone()).unwrap_or(seeds), set: Vec::new() }
    }
}

/// Computes each value's significant dependences on constants, the largest effect first. The clock is not
/// varied, as it is known.
///
/// # Errors
/// [`LabError`] if a point cannot be run.
pub fn sensitivity(
    targets: Vec<&'static Target>,
    constants: &Constants,
    jobs: NonZeroUsize,
    tell: &dyn Fn(&str),
) -> Result<Vec<Dependence>, LabError> {
    let bench = Bench::new(targets, jobs).with(&constants.set);
    let brief =
        Bench::new(bench.targets().to_vec(), jobs).with(&constants.set).with(&BRIEF.map(Assignment::from));
    tell("computing the predictions with unchanged constants");
    let nothing = bench::Constants::new();
    let base = bench.find(&every(&bench, &nothing))?;
    let brief_base = brief.find(&every(&brief, &nothing))?;
    let values = bench.values(&base);
    let mut dependences: Vec<_> =
        bench.targets().iter().zip(&values).map(|(target, &value)| dependence(target, value)).collect();
    let rows: Vec<_> =
        constants.table.iter().filter(|row| row.cost != Cost::ClockHertz && row.value > 0).collect();
    for (at, row) in rows.iter().enumerate() {
        tell(&format!("computing with constant {} of {}: {}", at + 1, rows.len(), row.name));
        let felt = differing(&brief_base, &brief.find(&every(&brief, &moved(row, 6)))?);
        let less = bench.values(&instead(&bench, &base, &moved(row, 4), &felt)?);
        let more = bench.values(&instead(&bench, &base, &moved(row, 6), &felt)?);
        for (at, dependence) in dependences.iter_mut().enumerate() {
            let change = |found: f64| rounded((found / values[at] - 1.0) * 100.0);
            let (less_pct, more_pct) = (change(less[at]), change(more[at]));
            dependence.effects.push(Effect { constant: row.name.to_owned(), less_pct, more_pct });
        }
    }
    for dependence in &mut dependences {
        dependence.effects.retain(|effect| effect.size() >= WORTH);
        dependence.effects.sort_by(|a, b| b.size().total_cmp(&a.size()));
    }
    Ok(dependences)
}

fn dependence(target: &Target, value: f64) -> Dependence {
    let unit = target.unit().to_owned();
    Dependence { what: target.name.to_owned(), unit, value: rounded(value), effects: Vec::new() }
}

/// Returns a constant multiplied by `fifths` / 5.
fn moved(row: &Row, fifths: u64) -> bench::Constants {
    vec![(row.name, row.value * fifths / 5)]
}

fn every<'a>(
    bench: &Bench,
    constants: &'a bench::Constants,
) -> Vec<(&'a bench::Constants, &'static PointRef)> {
    bench.points().iter().map(|point| (constants, *point)).collect()
}

/// Returns the indices of points with different metrics.
fn differing(base: &[Metrics], found: &[Metrics]) -> Vec<usize> {
    (0..base.len()).filter(|&at| base[at] != found[at]).collect()
}

/// Returns the metrics of all points with other constants, running only the affected ones.
fn instead(
    bench: &Bench,
    base: &[Metrics],
    constants: &bench::Constants,
    felt: &[usize],
) -> Result<Vec<Metrics>, LabError> {
    let tasks: Vec<_> = felt.iter().map(|&at| (constants, bench.points()[at])).collect();
    let mut all = base.to_vec();
    for (&at, found) in felt.iter().zip(bench.find(&tasks)?) {
        all[at] = found;
    }
    Ok(all)
}
