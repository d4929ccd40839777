//! Tests of the calibration: the stored file is reproducible, and the search finds minima.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use hypervisor::cost::{CostConstant, CostEvidenceKind, CostTable};

use super::bench::CalibrationRunner;
use super::knob::{KNOBS, degrees_of_freedom};
use super::prediction::predictions;
use super::sensitivity::{self as hang, RunCostTable};
use super::stored::{fitted, sensitivity, stored};
use super::target::{CalibrationTarget, CalibrationTargetFormula, TARGETS, reported};
use super::{fit, residuals};
use crate::catalogue::{ConstantEffect, ExperimentPointRef};
use crate::experiments;
use crate::runner::plan::SettingAssignment;

#[test]
fn calibration_file_holds_every_fitted_constant_in_range() {
    let table = fitted(CostTable::nehalem()).unwrap();
    let moved: BTreeSet<_> =
        table.iter().filter(|row| row.kind == CostEvidenceKind::Fitted).map(|row| row.name).collect();
    let may: BTreeSet<_> =
        KNOBS.iter().flat_map(|knob| knob.members).map(|cost| table.row(*cost).name).collect();
    assert_eq!(moved, may);
    for row in table.iter() {
        assert!((row.range.0..=row.range.1).contains(&row.value), "{} = {}", row.name, row.value);
    }
}

#[test]
fn calibration_has_at_least_three_degrees_of_freedom() {
    assert!(degrees_of_freedom() >= 3, "{}", degrees_of_freedom());
}

/// Checks that a constant group that affects only one target names the target, since the target then does not test the
/// model.
#[test]
fn constant_fitted_to_one_target_affects_only_that_target() {
    let targets: Vec<_> = TARGETS.iter().filter(|target| target.is_fitted()).collect();
    let brief = [("measure_ms", 20u64), ("warm_up_ms", 5)].map(SettingAssignment::from);
    let bench = CalibrationRunner::new(targets.clone(), NonZeroUsize::MIN).with(&brief);
    let table = fitted(CostTable::nehalem()).unwrap();
    let more = |cost: &CostConstant| (table.row(*cost).name, table[*cost] * 13 / 10);
    let mut sets = vec![Vec::new()];
    sets.extend(KNOBS.iter().map(|knob| knob.members.iter().map(more).collect()));
    let found = bench.run(&sets).unwrap();
    for (knob, found_with) in KNOBS.iter().zip(&found[1..]) {
        let feels = |(with, without): (&f64, &f64)| (with / without - 1.0).abs() > 0.004;
        let felt = targets.iter().zip(found_with.iter().zip(&found[0]).map(feels));
        let felt: Vec<_> = felt.filter(|(_, feels)| *feels).map(|(target, _)| target.name).collect();
        match knob.alone {
            Some(name) => assert_eq!(felt, [name], "{}", knob.name),
            None => assert!(felt.len() > 1, "{}: {felt:?}", knob.name),
        }
    }
}

#[test]
fn published_and_stated_cost_constants_are_not_fitted() {
    let seeds = CostTable::nehalem();
    for cost in KNOBS.iter().flat_map(|knob| knob.members) {
        let row = seeds.row(*cost);
        assert!(matches!(row.kind, CostEvidenceKind::Estimate | CostEvidenceKind::Derived), "{}", row.name);
    }
}

#[test]
fn cost_table_of_modern_machines_is_not_fitted() {
    assert_eq!(fitted(CostTable::modern()), Ok(CostTable::modern()));
}

/// Returns `true` if no run of the target has ten ports and many guests, which take too long in a debug build.
fn is_brief(target: &CalibrationTarget) -> bool {
    let is_long =
        |point: &ExperimentPointRef| ["fig14", "fig15", "fig16", "fig17"].contains(&point.experiment);
    !target.points.iter().any(is_long)
}

/// Checks the calibration residuals of a single port only: ten ports take too long in a debug build.
#[test]
fn calibration_residuals_of_one_port_match_the_stored_file() {
    let targets: Vec<_> = TARGETS
        .iter()
        .filter(|target| {
            target.points.iter().all(|point| !["fig11", "fig14", "fig16"].contains(&point.experiment))
        })
        .collect();
    assert_eq!(targets.len(), 8);
    let found = residuals(targets, &Vec::new(), NonZeroUsize::MIN).unwrap();
    for now in found {
        let kept = stored().unwrap().residuals.iter().find(|kept| kept.what == now.what).unwrap();
        assert_eq!((kept.target, &kept.unit), (now.target, &now.unit), "{}", now.what);
        let difference = (now.model / kept.model - 1.0).abs();
        assert!(
            difference < 0.01,
            "{}: the model gives {}, the stored calibration {}: run `softiov lab calibrate` again",
            now.what,
            now.model,
            kept.model
        );
    }
}

#[test]
fn calibration_target_has_an_observation_and_valid_points() {
    for target in TARGETS {
        assert!(target.value().0.is_finite(), "{}", target.name);
        assert_points(target);
    }
    assert_eq!(stored().unwrap().residuals.len(), TARGETS.len());
}

fn assert_points(target: &CalibrationTarget) {
    for point in target.points {
        let experiment = experiments::catalogue().experiment(point.experiment).unwrap();
        let axes = experiment.axes.iter().map(|axis| axis.name);
        let named: Vec<_> = point.axes.iter().map(|(name, _)| *name).collect();
        assert!(named.starts_with(&axes.collect::<Vec<_>>()), "{}", target.name);
    }
}

#[test]
fn predicted_calibration_target_has_valid_points_and_metrics() {
    for target in predictions(&experiments::catalogue()) {
        assert_points(target);
        assert_ne!(target.unit(), "", "{}", target.name);
    }
}

#[test]
fn stored_sensitivity_has_each_prediction_and_known_constants() {
    let predictions = predictions(&experiments::catalogue());
    let expected: Vec<_> = predictions.iter().map(|target| (target.name, target.unit())).collect();
    let values = &sensitivity().unwrap().values;
    let stored: Vec<_> = values.iter().map(|value| (value.what.as_str(), value.unit.as_str())).collect();
    assert_eq!(stored, expected, "{STORE}");
    let table = CostTable::nehalem();
    for effect in values.iter().flat_map(|value| &value.effects) {
        assert!(table.iter().any(|row| row.name == effect.constant), "{}: {STORE}", effect.constant);
    }
}

/// Remedy for a sensitivity file of another model.
const STORE: &str =
    "run `softiov lab calibrate --sensitivity predictions --out crates/lab/data/sensitivity.toml`";

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
}

#[test]
fn calibration_search_finds_the_minimum_within_its_bounds() {
    let misfits = |places: &[Vec<f64>]| -> Result<_, ()> {
        let at = |place: &Vec<f64>| vec![place[0] * place[1] - 0.06, place[0] - 0.3, place[2] - 2.0];
        Ok(places.iter().map(at).collect())
    };
    let found = fit::minimise(vec![0.5, 0.5, 0.5], misfits, &|_| ()).unwrap();
    for (found, expected) in found.iter().zip([0.3, 0.2, 1.0]) {
        assert!((found - expected).abs() < 0.02, "the minimum is at {found}, expected {expected}");
    }
}
