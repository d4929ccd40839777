//! Tests of the calibration: the stored file is reproducible, and the search finds minima.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use hypervisor::cost::{CostConstant, CostEvidenceKind, CostTable};

use super::bench::CalibrationRunner;
use super::knob::KNOBS;
use super::prediction::predictions;
use super::setup::CalibrationSetup;
use super::stored::{fitted, stored};
use super::target::{CalibrationTarget, TARGETS};
use super::targets_file::read_targets;
use super::{CalibrationExtras, calibrate, fit, residuals};
use crate::experiments;
use crate::runner::plan::SettingAssignment;

#[test]
fn calibration_file_holds_every_fitted_constant_in_range() {
    let table = fitted(CostTable::nehalem()).unwrap();
    let moved: BTreeSet<_> =
        table.iter().filter(|row| row.kind == CostEvidenceKind::Fitted).map(|row| row.name).collect();
    let may: BTreeSet<_> =
        KNOBS.iter().flat_map(|knob| knob.members.iter()).map(|cost| table.row(*cost).name).collect();
    assert_eq!(moved, may);
    for row in table.iter() {
        assert!((row.range.0..=row.range.1).contains(&row.value), "{} = {}", row.name, row.value);
    }
}

#[test]
fn calibration_has_at_least_three_degrees_of_freedom() {
    let setup = CalibrationSetup::of_paper(NonZeroUsize::MIN);
    assert!(setup.fitted_targets() >= setup.knobs.len() + 3);
}

/// Checks that the stored fit leaves a knob at an end of its range only for a stated reason.
#[test]
fn knob_at_an_end_of_its_range_has_a_reason() {
    let (seeds, table) = (CostTable::nehalem(), fitted(CostTable::nehalem()).unwrap());
    for knob in KNOBS {
        let is_at_wall = knob.is_at_wall(&seeds, |cost| Some(table[cost]));
        assert_eq!(is_at_wall, knob.at_wall.is_some(), "{}", knob.name);
    }
}

/// Checks a constant beside an end of its range: 3,000 to 6,000 cycles.
#[test]
fn knob_within_a_fiftieth_of_its_range_is_at_the_end() {
    let seeds = CostTable::nehalem();
    let knob = KNOBS.iter().find(|knob| knob.name == "back end").unwrap();
    assert_eq!(seeds.row(CostConstant::Backend).range, (3_000, 6_000));
    for (value, expected) in [(3_000, true), (3_060, true), (3_061, false), (5_939, false), (5_940, true)] {
        assert_eq!(knob.is_at_wall(&seeds, |_| Some(value)), expected, "{value}");
    }
}

/// Checks that the stored fit has been repeated without each of its targets.
#[test]
fn calibration_file_has_each_left_out_residual() {
    for (target, residual) in TARGETS.iter().zip(&stored().unwrap().residuals) {
        assert_eq!(residual.left_out.is_some(), target.is_fitted(), "{}", target.name);
    }
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
    for cost in KNOBS.iter().flat_map(|knob| knob.members.iter()) {
        let row = seeds.row(*cost);
        assert!(matches!(row.kind, CostEvidenceKind::Estimate | CostEvidenceKind::Derived), "{}", row.name);
    }
}

#[test]
fn cost_table_of_modern_machines_is_not_fitted() {
    assert_eq!(fitted(CostTable::modern()), Ok(CostTable::modern()));
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
    let runner = CalibrationRunner::new(targets, NonZeroUsize::MIN);
    let found = residuals(&runner, &Vec::new()).unwrap();
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
fn calibration_search_finds_the_minimum_within_its_bounds() {
    let misfits = |places: &[Vec<f64>]| -> Result<_, ()> {
        let at = |place: &Vec<f64>| vec![place[0] * place[1] - 0.06, place[0] - 0.3, place[2] - 2.0];
        Ok(places.iter().map(at).collect())
    };
    let found = fit::minimise(vec![0.5, 0.5, 0.5], misfits, &|_| ()).unwrap();
    for (found, expected) in found.places.iter().zip([0.3, 0.2, 1.0]) {
        assert!((found - expected).abs() < 0.02, "the minimum is at {found}, expected {expected}");
    }
}

/// Checks a fit whose misfits have a minimum of 0 at 0.1, and a local one near 0.9.
#[test]
fn fit_from_two_positions_takes_the_lower_minimum() {
    let misfits = |places: &[Vec<f64>]| -> Result<_, ()> {
        let at = |place: &Vec<f64>| vec![(place[0] - 0.1) * (place[0] - 0.9), 0.2 * (place[0] - 0.1)];
        Ok(places.iter().map(at).collect())
    };
    let local = fit::minimise(vec![0.9], misfits, &|_| ()).unwrap();
    assert!(local.places[0] > 0.8 && local.squares > 0.01, "{local:?}");
    for starts in [[0.0, 0.9], [0.9, 0.0]] {
        let found = fit::minimise_from(starts.map(|start| vec![start]), misfits, &|_| ()).unwrap();
        assert!((found.places[0] - 0.1).abs() < 0.02, "{starts:?}: {found:?}");
    }
}

/// Targets of one guest, which take little time. The first two are those of fig07 at twice their paper's value.
const OWN_TARGETS: &str = r#"
[[target]]
name = "accesses to the APIC"
points = ["fig07 vms=1 eoi_accel=false"]
metrics = ["apic_access_mcycles"]
value = 200.0
source = "a test"

[[target]]
name = "saving of a fast end of interrupt"
points = ["fig07 vms=1 eoi_accel=false", "fig07 vms=1 eoi_accel=true"]
metrics = ["eoi_mcycles"]
relation = "saving"
value = 70.0

[[target]]
name = "throughput"
points = ["fig08 policy=20k"]
metrics = ["throughput_mbps"]
value = 957.0
weight = 0.0
"#;

pub(super) fn own_setup() -> CalibrationSetup {
    let mut setup = CalibrationSetup::of_paper(NonZeroUsize::MIN);
    setup.targets = read_targets(OWN_TARGETS, &experiments::catalogue()).unwrap();
    setup.set(&[("measure_ms", 20u64), ("warm_up_ms", 5)].map(SettingAssignment::from));
    setup
}

#[test]
fn calibration_fits_own_knobs_to_targets_of_a_file() {
    let mut setup = own_setup();
    setup.fit_only(&["timer writes".to_owned(), "eoi_fast".to_owned()]).unwrap_err();
    setup.fit_only(&["timer writes".to_owned()]).unwrap();
    setup.check().unwrap();
    let extras = CalibrationExtras { leave_one_out: true, profiles: vec![0] };
    let found = calibrate(&setup, &extras, &|_| ()).unwrap();
    assert_eq!(found.constants.iter().map(|constant| constant.name).collect::<Vec<_>>(), ["timer_writes"]);
    assert_eq!(found.constants[0].value, found.constants[0].range.1, "more writes cost more accesses");
    let [accesses, saving, throughput] = &found.residuals[..] else { panic!("{found:?}") };
    assert_eq!((accesses.target, accesses.unit.as_str()), (200.0, "Mcycles/s"));
    // Without the target, nothing moves the knob from its start.
    assert!(accesses.left_out.unwrap() < accesses.model, "{accesses:?}");
    assert!((saving.left_out.unwrap() / saving.model - 1.0).abs() < 0.01, "{saving:?}");
    assert_eq!((throughput.what.as_str(), throughput.left_out), ("throughput (not fitted)", None));
    // The greatest value of the knob is the best.
    assert!(found.profile.iter().all(|place| place.knob == "timer writes"));
    let profile: Vec<_> = found.profile.iter().map(|place| place.residual_pct).collect();
    assert_eq!(profile.len(), 5);
    assert!(profile.is_sorted_by(|less, more| less > more), "{profile:?}");
}

#[test]
fn held_constants_and_set_constants_are_not_fitted() {
    let mut setup = CalibrationSetup::of_paper(NonZeroUsize::MIN);
    setup.hold("device model").unwrap();
    setup.hold("copy_cold").unwrap();
    setup.set(&[SettingAssignment::from(("cost.rx_skb", 500))]);
    setup.set(&[SettingAssignment::from(("cost.timer_writes", 800))]);
    let names: Vec<_> = setup.knobs.iter().map(|knob| knob.name).collect();
    assert_eq!(names.len(), KNOBS.len() - 2, "{names:?}");
    assert!(!names.contains(&"device model") && !names.contains(&"timer writes"), "{names:?}");
    let path = setup.knobs.iter().find(|knob| knob.name == "receive path").unwrap();
    assert!(path.members.contains(&CostConstant::RxUdp) && path.members.len() == 5, "{path:?}");
}

#[test]
fn calibration_starts_from_the_table_of_a_machine() {
    let mut setup = own_setup();
    setup.use_machine(vec![("table", "modern").into(), ("cost.timer_writes", 900).into()]).unwrap();
    assert_eq!((setup.table.name(), setup.table[CostConstant::TimerWrites]), ("modern", 900));
    setup.use_machine(vec![("table", "nothing").into()]).unwrap_err();
}

#[test]
fn unknown_knobs_and_targets_are_refused_by_name() {
    let mut setup = own_setup();
    let error = setup.hold("timer_write").unwrap_err().to_string();
    assert!(error.contains("did you mean timer_writes"), "{error}");
    let error = setup.check().unwrap_err().to_string();
    assert!(error.contains("8 knobs cannot be fitted to 2 targets"), "{error}");
    for (from, to, message) in [
        ("fig08 policy=20k", "fig80 policy=20k", "there is no experiment fig80"),
        ("fig08 policy=20k", "fig08", "has no value for policy"),
        ("[\"throughput_mbps\"]", "[\"mbps\"]", "fig08 has no metric mbps"),
        ("value = 957.0", "value = 0.0", "its value is 0"),
        ("relation = \"saving\"", "", "it needs 1 points"),
        ("weight = 0.0", "wieght = 0.0", "unknown field `wieght`"),
    ] {
        let text = OWN_TARGETS.replace(from, to);
        let error = read_targets(&text, &experiments::catalogue()).unwrap_err().to_string();
        assert!(error.contains(message), "{message}: {error}");
    }
}
