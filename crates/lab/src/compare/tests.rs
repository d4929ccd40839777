//! Tests of comparing two models over stated values.

use std::num::NonZeroUsize;

use super::{CompareError, ComparedModel, ComparedValue, compare, scores};
use crate::catalogue::{ExperimentCatalogue, PublishedValue};
use crate::synthetic;

const STATED: [PublishedValue; 2] = [
    PublishedValue {
        experiment: "queue",
        axes: &[("vms", "1"), ("accel", "true")],
        metric: "throughput_mbps",
        value: 1_000.0,
        is_calibrated: true,
    },
    PublishedValue {
        experiment: "queue",
        axes: &[("vms", "2"), ("accel", "false")],
        metric: "throughput_mbps",
        value: 1_000.0,
        is_calibrated: false,
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
    compare(&catalogue(), models, &[], (1, NonZeroUsize::new(jobs).unwrap()), &mut ())
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
    let values = compared([&one, &one], 1).unwrap();
    let [first, second] = scores(&values, |_| true);
    assert_eq!(first, second);
    assert_eq!((first.values, first.closer), (2, 0));
}

#[test]
fn score_counts_errors_and_the_closer_model() {
    let value = |stated, models| ComparedValue {
        experiment: "queue",
        point: String::new(),
        metric: "throughput_mbps",
        stated,
        is_calibrated: false,
        models,
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
    let rows = |seed, set: &[&str]| {
        let records = crate::report::tests::records(seed, set);
        records.into_iter().map(|record| record.row).collect::<Vec<_>>()
    };
    let (one, model) = (ComparedModel::Rows([rows(1, &[]), rows(1, &[])].concat()), model(&[]));
    let values = compared([&one, &model], 1).unwrap();
    assert!(values.iter().all(|value| value.models[0] == value.models[1]), "{values:?}");
    let mixed = ComparedModel::Rows([rows(1, &[]), rows(1, &["contention=3"])].concat());
    assert!(matches!(compared([&mixed, &model], 1), Err(CompareError::SeveralRows(_))));
}

#[test]
fn unknown_setting_or_experiment_is_refused() {
    let (one, other) = (model(&[]), model(&["contentoin=3"]));
    let error = compared([&one, &other], 1).unwrap_err().to_string();
    assert!(error.contains("did you mean contention"), "{error}");
    let names = ["qeue".to_owned()];
    let jobs = NonZeroUsize::MIN;
    let error = compare(&catalogue(), [&one, &one], &names, (1, jobs), &mut ()).unwrap_err().to_string();
    assert!(error.contains("qeue"), "{error}");
}
