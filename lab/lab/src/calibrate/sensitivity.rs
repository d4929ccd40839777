//! Sensitivity of the model's values to cost constants: each constant is reduced and increased by a fifth,
//! one at a time, even beyond its range. Then all estimates take samples of their ranges together.

use std::num::NonZeroUsize;

use hypervisor::cost::{CostConstant, CostEvidenceKind, CostRow, CostTable};

use super::bench::{self, CalibrationRunner};
use super::stored;
use super::target::CalibrationTarget;
use crate::catalogue::{ConstantEffect, ExperimentPointRef, ValueSensitivity};
use crate::named::Metrics;
use crate::row::rounded;
use crate::runner::LabError;
use crate::runner::plan::SettingAssignment;
use crate::runner::sweep::samples_of_parts;

/// Smallest listed effect of a cost constant on a value, in percent.
const WORTH: f64 = 0.5;

/// Number of samples of the estimates' ranges.
const SAMPLES: u32 = 16;

/// Seed of the samples of the estimates' ranges.
const SEED: u64 = 1;

/// Settings of a short run, long enough to detect whether a cost constant is used; most are not, in most
/// experiments.
const BRIEF: [(&str, u32); 2] = [("measure_ms", 10), ("warm_up_ms", 5)];

/// Cost table for runs of experiments, with the settings that select it.
#[derive(Clone, Debug)]
pub struct RunCostTable {
    /// Cost table that the experiments use.
    pub table: CostTable,
    /// Settings that produce the cost table.
    pub set: Vec<SettingAssignment>,
}

impl RunCostTable {
    /// Returns the calibrated cost constants, which a run without settings uses.
    #[must_use]
    pub fn calibrated() -> Self {
        // A table that rejects its fit is reported when a point is run.
        let seeds = CostTable::nehalem();
        Self { table: stored::fitted(seeds.clone()).unwrap_or(seeds), set: Vec::new() }
    }
}

/// Computes each value's significant dependences on cost constants, the largest effect first. The clock is
/// not varied, as it is known.
///
/// # Errors
/// [`LabError`] if a point cannot be run.
pub fn sensitivity(
    targets: Vec<&'static CalibrationTarget>,
    constants: &RunCostTable,
    jobs: NonZeroUsize,
    tell: &dyn Fn(&str),
) -> Result<Vec<ValueSensitivity>, LabError> {
    let bench = CalibrationRunner::new(targets, jobs).with(&constants.set);
    let brief = CalibrationRunner::new(bench.targets().to_vec(), jobs)
        .with(&constants.set)
        .with(&BRIEF.map(SettingAssignment::from));
    tell("computing the predictions with unchanged constants");
    let nothing = bench::ConstantValues::new();
    let base = bench.find(&tasks_for(&bench, &nothing))?;
    let brief_base = brief.find(&tasks_for(&brief, &nothing))?;
    let values = bench.values(&base);
    let mut dependences: Vec<_> =
        bench.targets().iter().zip(&values).map(|(target, &value)| dependence(target, value)).collect();
    let rows: Vec<_> =
        constants.table.iter().filter(|row| row.cost != CostConstant::ClockHertz && row.value > 0).collect();
    for (at, row) in rows.iter().enumerate() {
        tell(&format!("computing with constant {} of {}: {}", at + 1, rows.len(), row.name));
        let felt = differing(&brief_base, &brief.find(&tasks_for(&brief, &scaled_constant(row, 6)))?);
        let less = bench.values(&rerun_metrics(&bench, &base, &scaled_constant(row, 4), &felt)?);
        let more = bench.values(&rerun_metrics(&bench, &base, &scaled_constant(row, 6), &felt)?);
        for (at, dependence) in dependences.iter_mut().enumerate() {
            let change = |found: f64| rounded((found / values[at] - 1.0) * 100.0);
            let (less_pct, more_pct) = (change(less[at]), change(more[at]));
            dependence.effects.push(ConstantEffect { constant: row.name.to_owned(), less_pct, more_pct });
        }
    }
    tell(&format!("computing with {SAMPLES} samples of all estimates"));
    let sampled = bench.run(&samples(&constants.table))?;
    for (at, dependence) in dependences.iter_mut().enumerate() {
        dependence.range = Some(range_of(sampled.iter().map(|values| values[at])).map(rounded));
        dependence.effects.retain(|effect| effect.size() >= WORTH);
        dependence.effects.sort_by(|a, b| b.size().total_cmp(&a.size()));
    }
    Ok(dependences)
}

/// Returns the least and the greatest of a target's values in the samples. The value of the unchanged constants is not
/// among them, and may lie outside.
pub(super) fn range_of(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values
        .fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], value| [least.min(value), most.max(value)])
}

fn dependence(target: &CalibrationTarget, value: f64) -> ValueSensitivity {
    let unit = target.unit().to_owned();
    let (what, value) = (target.name.to_owned(), rounded(value));
    ValueSensitivity { what, unit, value, range: None, effects: Vec::new() }
}

/// Returns samples of the ranges of all estimates, as a Latin hypercube. An estimate's value is the median of its
/// samples: half of them are uniform below it, and half above. A fitted constant keeps its value, which the calibration
/// has chosen from its range.
pub(super) fn samples(table: &CostTable) -> Vec<bench::ConstantValues> {
    let values = |row: &CostRow| {
        let quantiles = samples_of_parts(row.name, (0, 2 * HALF - 1), SAMPLES, SEED);
        quantiles.into_iter().map(|quantile| at_quantile(row, quantile)).collect::<Vec<_>>()
    };
    let estimates: Vec<_> = table.iter().filter(|row| row.kind == CostEvidenceKind::Estimate).collect();
    let columns: Vec<_> = estimates.iter().map(|row| (row.name, values(row))).collect();
    let sample = |at: usize| columns.iter().map(|(name, values)| (*name, values[at])).collect();
    (0..SAMPLES as usize).map(sample).collect()
}

/// Quantile of an estimate's value, its median. The quantile 2 * `HALF` is the end of the range.
const HALF: i64 = 1 << 20;

/// Returns the value of an estimate at a quantile: linear from the least value to the estimate's own, and from there to
/// the greatest. A value that a machine file has set outside its range is an end of it.
fn at_quantile(row: &CostRow, quantile: i64) -> u64 {
    let (least, most) = row.range;
    let median = row.value.clamp(least, most);
    let (first, last, part) =
        if quantile < HALF { (least, median, quantile) } else { (median, most, quantile - HALF) };
    let offset = u128::from(last - first) * u128::from(part.unsigned_abs()) / u128::from(HALF.unsigned_abs());
    first + u64::try_from(offset).unwrap_or(last - first)
}

/// Returns a cost constant multiplied by `fifths` / 5.
fn scaled_constant(row: &CostRow, fifths: u64) -> bench::ConstantValues {
    vec![(row.name, row.value * fifths / 5)]
}

fn tasks_for<'a>(
    bench: &CalibrationRunner,
    constants: &'a bench::ConstantValues,
) -> Vec<(&'a bench::ConstantValues, &'static ExperimentPointRef)> {
    bench.points().iter().map(|point| (constants, *point)).collect()
}

/// Returns the indices of the experiment points whose metrics differ between `base` and `found`.
fn differing(base: &[Metrics], found: &[Metrics]) -> Vec<usize> {
    (0..base.len()).filter(|&at| base[at] != found[at]).collect()
}

/// Returns the metrics of all experiment points with the given cost constants. Runs only the points with the
/// indices `felt`, and copies the others' metrics from `base`.
fn rerun_metrics(
    bench: &CalibrationRunner,
    base: &[Metrics],
    constants: &bench::ConstantValues,
    felt: &[usize],
) -> Result<Vec<Metrics>, LabError> {
    let tasks: Vec<_> = felt.iter().map(|&at| (constants, bench.points()[at])).collect();
    let mut all = base.to_vec();
    for (&at, found) in felt.iter().zip(bench.find(&tasks)?) {
        all[at] = found;
    }
    Ok(all)
}
