//! The calibration: the file that it left is what it would leave again, and the search finds what there is.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use hypervisor::cost::{CostTable, Kind};

use super::knob::KNOBS;
use super::stored::{fitted, stored};
use super::target::TARGETS;
use super::{fit, residuals};

#[test]
fn the_file_holds_the_constants_that_may_be_moved_each_in_its_range() {
    let table = fitted(CostTable::nehalem()).unwrap();
    let moved: BTreeSet<_> =
        table.iter().filter(|row| row.kind == Kind::Fitted).map(|row| row.name).collect();
    let may: BTreeSet<_> =
        KNOBS.iter().flat_map(|knob| knob.members).map(|cost| table.row(*cost).name).collect();
    assert_eq!(moved, may);
    for row in table.iter() {
        assert!((row.range.0..=row.range.1).contains(&row.value), "{} = {}", row.name, row.value);
    }
}

#[test]
fn nothing_published_or_stated_is_moved() {
    let seeds = CostTable::nehalem();
    for cost in KNOBS.iter().flat_map(|knob| knob.members) {
        let row = seeds.row(*cost);
        assert!(matches!(row.kind, Kind::Estimate | Kind::Derived), "{}", row.name);
    }
}

#[test]
fn the_modern_table_is_not_fitted() {
    assert_eq!(fitted(CostTable::modern()), Ok(CostTable::modern()));
}

/// One port only: ten take their time in a build for tests.
#[test]
fn the_residuals_of_one_port_are_those_of_the_file() {
    let targets: Vec<_> = TARGETS
        .iter()
        .filter(|target| target.points.iter().all(|point| !["fig11", "fig14"].contains(&point.experiment)))
        .collect();
    assert_eq!(targets.len(), 8);
    let found = residuals(targets, &Vec::new(), NonZeroUsize::MIN).unwrap();
    for now in found {
        let kept = stored().unwrap().residuals.iter().find(|kept| kept.what == now.what).unwrap();
        assert_eq!((kept.target, &kept.unit), (now.target, &now.unit), "{}", now.what);
        let difference = (now.model / kept.model - 1.0).abs();
        assert!(difference < 0.01, "{}: {} was {}: calibrate again", now.what, now.model, kept.model);
    }
}

#[test]
fn every_target_is_an_observation_of_points_that_there_are() {
    for target in TARGETS {
        assert!(target.value().0.is_finite(), "{}", target.name);
        for point in target.points {
            let experiment = crate::experiments::catalogue().experiment(point.experiment).unwrap();
            let axes = experiment.axes.iter().map(|axis| axis.name);
            assert!(axes.eq(point.axes.iter().map(|(name, _)| *name)), "{}", target.name);
        }
    }
    assert_eq!(stored().unwrap().residuals.len(), TARGETS.len());
}

#[test]
fn the_search_finds_the_least_squares_and_stops_at_walls() {
    let misfits = |places: &[Vec<f64>]| -> Result<_, ()> {
        let at = |place: &Vec<f64>| vec![place[0] * place[1] - 0.06, place[0] - 0.3, place[2] - 2.0];
        Ok(places.iter().map(at).collect())
    };
    let found = fit::minimise(vec![0.5, 0.5, 0.5], misfits, &|_| ()).unwrap();
    for (found, expected) in found.iter().zip([0.3, 0.2, 1.0]) {
        assert!((found - expected).abs() < 0.02, "{found} is not {expected}");
    }
}
