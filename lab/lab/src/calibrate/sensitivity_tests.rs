//! Tests of the sensitivity: samples of estimates, and the stored ranges of predictions.

use std::num::NonZeroUsize;

use hypervisor::cost::{CostEvidenceKind, CostTable};

use super::bench::CalibrationRunner;
use super::prediction::{predictions, ranges};
use super::sensitivity::{self as hang, RunCostTable};
use super::stored::sensitivity;
use super::target::{CalibrationTarget, CalibrationTargetFormula, reported};
use crate::catalogue::{ConstantEffect, ExperimentPointRef};
use crate::experiments;

/// Returns `true` if no run of the target has ten ports and many guests, which take too long in a debug build.
fn is_brief(target: &CalibrationTarget) -> bool {
    let is_long =
        |point: &ExperimentPointRef| ["fig14", "fig15", "fig16", "fig17"].contains(&point.experiment);
    !target.points.iter().any(is_long)
}

#[test]
fn stored_sensitivity_has_each_prediction_and_known_constants() {
    let predictions = predictions(&experiments::catalogue());
    let expected: Vec<_> = predictions.iter().map(|target| (target.name, target.unit())).collect();
    let values = &sensitivity().unwrap().values;
    let stored: Vec<_> = values.iter().map(|value| (value.what.as_str(), value.unit.as_str())).collect();
    assert_eq!(stored, expected, "{STORE}");
    for value in values {
        let [least, most] = value.range.unwrap();
        assert!(least <= most, "{}: {STORE}", value.what);
    }
    // No estimate changes a throughput that the wire limits, but processor use always hangs on estimates.
    for value in values.iter().filter(|value| value.what.contains("CPU")) {
        let [least, most] = value.range.unwrap();
        assert!(least < most, "{}: {STORE}", value.what);
    }
    // Sums and relations have no place in a figure.
    assert_eq!(ranges(sensitivity().unwrap()).len(), predictions.len() - 3, "{STORE}");
    let table = CostTable::nehalem();
    for effect in values.iter().flat_map(|value| &value.effects) {
        assert!(table.iter().any(|row| row.name == effect.constant), "{}: {STORE}", effect.constant);
    }
}

/// Remedy for a sensitivity file of another model.
const STORE: &str =
    "run `softiov lab calibrate --sensitivity predictions --out lab/lab/data/sensitivity.toml`";

#[test]
fn stored_sensitivity_values_match_the_model() {
    let all = predictions(&experiments::catalogue());
    let bench = CalibrationRunner::new(
        all.into_iter().filter(|target| is_brief(target)).collect(),
        NonZeroUsize::MIN,
    );
    let found = bench.run(&[Vec::new()]).unwrap();
    let values = &sensitivity().unwrap().values;
    for (target, found) in bench.targets().iter().zip(&found[0]) {
        let stored = values.iter().find(|value| value.what == target.name).unwrap().value;
        assert!(
            (found / stored - 1.0).abs() < 0.01,
            "{}: the model gives {found}, the file {stored}: {STORE}",
            target.name
        );
    }
}

/// Runs the samples of the estimates again for targets that take little time. The value of the calibrated model lies within
/// their range.
#[test]
fn stored_range_of_a_prediction_is_that_of_its_samples() {
    let brief = ["fig07: cycles, 7 guests, fast", "fig08: CPU, adaptive"];
    let all = predictions(&experiments::catalogue());
    let targets: Vec<_> = all.into_iter().filter(|target| brief.contains(&target.name)).collect();
    let bench = CalibrationRunner::new(targets, NonZeroUsize::MIN);
    let found = bench.run(&hang::samples(&RunCostTable::calibrated().table)).unwrap();
    let model = &bench.run(&[Vec::new()]).unwrap()[0];
    let values = &sensitivity().unwrap().values;
    let mut differences = Vec::new();
    for (at, target) in bench.targets().iter().enumerate() {
        let [least, most] = hang::range_of(found.iter().map(|values| values[at]));
        assert!(least <= model[at] && model[at] <= most, "{}: {} {least} {most}", target.name, model[at]);
        let stored = values.iter().find(|value| value.what == target.name).unwrap().range.unwrap();
        let mut ends = [least, most].into_iter().zip(stored);
        if ends.any(|(found, stored)| (found / stored - 1.0).abs() > 0.001) {
            differences.push(format!("{}: {least} to {most}", target.name));
        }
    }
    assert!(differences.is_empty(), "samples give {differences:?}: {STORE}");
}

/// Checks that a range has the samples alone, so that a value outside is seen.
#[test]
fn range_of_a_value_is_that_of_its_samples_only() {
    assert_eq!(hang::range_of([3.0, 1.0, 2.0].into_iter()), [1.0, 3.0]);
}

/// Checks that a fifth more of the cost of an emulated EOI has a proportional effect where EOIs are emulated, and none
/// elsewhere.
#[test]
fn cost_constant_affects_only_experiment_points_that_use_it() {
    const EMULATED: &[ExperimentPointRef] =
        &[ExperimentPointRef { experiment: "fig07", axes: &[("vms", "1"), ("eoi_accel", "false")] }];
    const FAST: &[ExperimentPointRef] =
        &[ExperimentPointRef { experiment: "fig07", axes: &[("vms", "1"), ("eoi_accel", "true")] }];
    static VALUES: [CalibrationTarget; 2] = [
        reported("emulated", EMULATED, CalibrationTargetFormula::Metric("eoi_mcycles", 1.0)),
        reported("fast", FAST, CalibrationTargetFormula::Metric("eoi_mcycles", 1.0)),
    ];
    let constants = RunCostTable { set: vec![("measure_ms", 60).into()], ..RunCostTable::calibrated() };
    let found = hang::sensitivity(VALUES.iter().collect(), &constants, NonZeroUsize::MIN, &|_| ()).unwrap();
    let effect =
        |at: usize, name| found[at].effects.iter().find(|effect: &&ConstantEffect| effect.constant == name);
    let emulated = effect(0, "eoi_emulated").unwrap();
    // Only about proportional: longer interrupts leave time for fewer of them.
    let about_a_fifth = 15.0..25.0;
    assert!(
        about_a_fifth.contains(&-emulated.less_pct) && about_a_fifth.contains(&emulated.more_pct),
        "{emulated:?}"
    );
    assert_eq!((effect(0, "eoi_fast"), effect(1, "eoi_emulated")), (None, None));
    assert!(effect(1, "eoi_fast").is_some());
    assert_eq!((found[0].what.as_str(), found[0].unit.as_str()), ("emulated", "Mcycles/s"));
    let [least, most] = found[0].range.unwrap();
    // The price of an emulated end of interrupt is stated, but its number depends on estimates.
    assert!(least <= found[0].value && found[0].value <= most && least < most, "{found:?}");
}

#[test]
fn samples_of_estimates_lie_in_their_ranges() {
    let table = RunCostTable::calibrated().table;
    let samples = hang::samples(&table);
    assert_eq!(samples, hang::samples(&table));
    let estimates: Vec<_> = table.iter().filter(|row| row.kind == CostEvidenceKind::Estimate).collect();
    for sample in &samples {
        assert_eq!(sample.len(), estimates.len());
        for ((name, value), row) in sample.iter().zip(&estimates) {
            assert_eq!(*name, row.name);
            assert!((row.range.0..=row.range.1).contains(value), "{name} = {value}");
        }
    }
    // Each part of a range has one sample.
    let mut first: Vec<_> = samples.iter().map(|sample| sample[0].1).collect();
    first.sort_unstable();
    first.dedup();
    assert_eq!(first.len(), samples.len());
}

/// Checks that samples are not uniform over a range, since values of estimates lie below the middle of their ranges on
/// average: a model with dearer constants than its own would be sampled.
#[test]
fn value_of_an_estimate_is_the_median_of_its_samples() {
    let table = RunCostTable::calibrated().table;
    let samples = hang::samples(&table);
    for (at, row) in table.iter().filter(|row| row.kind == CostEvidenceKind::Estimate).enumerate() {
        let values = samples.iter().map(|sample| sample[at].1);
        let (below, above) =
            (values.clone().filter(|value| *value <= row.value), values.filter(|value| *value >= row.value));
        assert!(below.count() >= samples.len() / 2 && above.count() >= samples.len() / 2, "{}", row.name);
    }
}
