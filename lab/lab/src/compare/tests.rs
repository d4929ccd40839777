//! Tests of comparing two models over stated values.

use std::num::{NonZeroU16, NonZeroUsize};

use super::{CompareError, ComparedModel, ComparedValue, ComparisonOptions, compare, scores};
use crate::catalogue::{
    ExperimentCatalogue, ExperimentPointRef, PointRelation, PublishedRelation, PublishedValue,
};
use crate::experiment::ExperimentPoint;
use crate::runner::RunObserver;
use crate::synthetic;

const STATED: [PublishedValue; 2] = [
    PublishedValue {
        experiment: "queue",
        axes: &[("vms", "1"), ("accel", "true")],
        metric: "throughput_mbps",
        value: 1_000.0,
        is_calibrated: true,
        is_bounded: false,
    },
    PublishedValue {
        experiment: "queue",
        axes: &[("vms", "2"), ("accel", "false")],
        metric: "throughput_mbps",
        value: 1_000.0,
        is_calibrated: false,
        is_bounded: true,
    },
];

fn catalogue() -> ExperimentCatalogue {
    ExperimentCatalogue { stated: STATED.to_vec(), ..synthetic::catalogue() }
}

fn model(set: &[&str]) -> ComparedModel {
    let set = set.iter().map(|text| text.parse().unwrap()).collect();
    ComparedModel::Settings { set, machine: Vec::new() }
}

fn compared(models: [&ComparedModel; 2], jobs: usize) -> Result<Vec<ComparedValue>, CompareError> {
    compare(&catalogue(), models, &[], options(jobs, 1), &mut ())
}

fn options(jobs: usize, seeds: u16) -> ComparisonOptions {
    let (jobs, seeds) = (NonZeroUsize::new(jobs).unwrap(), NonZeroU16::new(seeds).unwrap());
    ComparisonOptions { seed: 1, seeds, jobs }
}

/// Number of points that a comparison has run.
#[derive(Default)]
struct RunPoints(usize);

impl RunObserver for RunPoints {
    fn done(&mut self, _: &ExperimentPoint) {
        self.0 += 1;
    }
}

#[test]
fn compared_values_do_not_depend_on_jobs() {
    let (one, other) = (model(&[]), model(&["contention=3"]));
    let values = compared([&one, &other], 1).unwrap();
    assert_eq!(values, compared([&one, &other], 4).unwrap());
    assert_eq!(values.len(), 2);
    assert!(values.iter().all(|value| value.models.iter().all(Option::is_some)), "{values:?}");
}

#[test]
fn equal_models_have_equal_values_and_none_is_closer() {
    let one = model(&[]);
    let mut run = RunPoints::default();
    let values = compare(&catalogue(), [&one, &one], &[], options(1, 1), &mut run).unwrap();
    assert_eq!(run.0, 2, "equal models are run once");
    let [first, second] = scores(&values, |_| true);
    assert_eq!(first, second);
    assert_eq!((first.values, first.closer), (2, 0));
}

#[test]
fn score_counts_errors_and_the_closer_model() {
    let value = |stated, models| ComparedValue {
        experiment: "queue",
        point: String::new(),
        metric: "throughput_mbps".to_owned(),
        stated,
        is_calibrated: false,
        is_bounded: false,
        models,
        half: [None, None],
    };
    let values = [
        value(100.0, [Some(105.0), Some(80.0)]),
        value(100.0, [Some(150.0), None]),
        // No relative error.
        value(0.0, [Some(1.0), Some(2.0)]),
    ];
    let [one, other] = scores(&values, |_| true);
    assert_eq!((one.values, one.within_10_pct, one.within_30_pct, one.closer), (2, 1, 1, 1));
    assert_eq!((other.values, other.within_10_pct, other.within_30_pct, other.closer), (1, 0, 1, 0));
    assert_eq!((one.mean_error_pct, other.mean_error_pct), (27.5, 20.0));
}

#[test]
fn stored_rows_are_means_of_seeds_and_must_have_equal_settings() {
    let rows = crate::report::tests::records;
    let (one, model) = (ComparedModel::Rows([rows(1, &[]), rows(2, &[])].concat()), model(&[]));
    let values = compare(&catalogue(), [&one, &model], &[], options(1, 2), &mut ()).unwrap();
    assert!(values.iter().all(|value| value.models[0] == value.models[1]), "{values:?}");
    assert!(values.iter().all(|value| value.half[0] == value.half[1]), "{values:?}");
    let mixed = ComparedModel::Rows([rows(1, &[]), rows(1, &["contention=3"])].concat());
    assert!(matches!(compared([&mixed, &model], 1), Err(CompareError::SeveralRows(_))));
}

#[test]
fn unknown_setting_or_experiment_is_refused() {
    let (one, other) = (model(&[]), model(&["contentoin=3"]));
    let error = compared([&one, &other], 1).unwrap_err().to_string();
    assert!(error.contains("did you mean contention"), "{error}");
    let names = ["qeue".to_owned()];
    let error = compare(&catalogue(), [&one, &one], &names, options(1, 1), &mut ()).unwrap_err().to_string();
    assert!(error.contains("qeue"), "{error}");
}

/// Checks a relation against the values of its points, over seeds: a mean of relations, with an interval.
#[test]
fn related_points_are_compared_by_their_relation() {
    const FROM: ExperimentPointRef =
        ExperimentPointRef { experiment: "queue", axes: &[("vms", "1"), ("accel", "false")] };
    const TO: ExperimentPointRef =
        ExperimentPointRef { experiment: "queue", axes: &[("vms", "2"), ("accel", "false")] };
    let value = |ExperimentPointRef { experiment, axes }| PublishedValue {
        experiment,
        axes,
        metric: "throughput_mbps",
        value: 1.0,
        is_calibrated: false,
        is_bounded: false,
    };
    let relation = |relation| PublishedRelation {
        points: [FROM, TO],
        metrics: &["throughput_mbps"],
        relation,
        value: 2.0,
        is_calibrated: false,
    };
    let kinds = [PointRelation::Ratio, PointRelation::Difference(4.0), PointRelation::Saving];
    let catalogue = ExperimentCatalogue {
        stated: vec![value(FROM), value(TO)],
        relations: kinds.map(relation).to_vec(),
        ..synthetic::catalogue()
    };
    assert_eq!(catalogue.problems(), Vec::<String>::new());
    let model = model(&[]);
    let values = compare(&catalogue, [&model, &model], &[], options(1, 1), &mut ()).unwrap();
    let found: Vec<_> = values.iter().map(|value| value.models[0].unwrap()).collect();
    let [from, to, ratio, difference, saving] = found[..] else { panic!("{found:?}") };
    // Values are rounded to six digits.
    let is_near = |one: f64, other: f64| (one - other).abs() < 1e-3;
    assert!(is_near(ratio, to / from) && is_near(difference, (to - from) / 4.0), "{found:?}");
    assert!(is_near(saving, 100.0 - 100.0 * ratio), "{found:?}");
    assert_eq!(values[2].point, "vms=1 accel=false to vms=2 accel=false");
    let metrics = values[2..].iter().map(|value| value.metric.as_str());
    assert!(metrics.eq([
        "ratio of throughput_mbps",
        "1/4 of the difference of throughput_mbps",
        "saving of throughput_mbps"
    ]));
    let over_seeds = compare(&catalogue, [&model, &model], &[], options(1, 3), &mut ()).unwrap();
    assert!(over_seeds.iter().any(|value| value.half[0].unwrap() > 0.0), "{over_seeds:?}");
}
