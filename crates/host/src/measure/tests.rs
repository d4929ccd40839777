//! Tests that each measurement returns a figure or a reason. No test judges a duration.

use std::collections::BTreeSet;

use super::repeat::per_operation;
use super::{DurationProbeError, PROBES};
use crate::test_support::skipped;

#[test]
fn every_host_measurement_returns_a_number_or_a_reason() {
    let names: BTreeSet<_> = PROBES.iter().map(|probe| probe.name).collect();
    assert_eq!(names.len(), PROBES.len());
    for probe in PROBES {
        match (probe.run)() {
            Ok(sample) => {
                assert!(sample.median.is_finite() && sample.median > 0.0, "{} {sample:?}", probe.name);
                assert!(sample.least <= sample.median && sample.median <= sample.most, "{}", probe.name);
            }
            Err(why @ DurationProbeError::System(_)) => panic!("{}: {why}", probe.name),
            Err(why) => skipped(probe.what, &why.to_string()),
        }
    }
}

#[test]
fn repetitions_double_until_a_measurement_is_long_enough() {
    let mut took = [5, 4, 6, 90, 5, 5, 3, 5, 5].into_iter().map(|millions| millions * 1_000_000);
    let mut counts = BTreeSet::new();
    let sample = per_operation(|count| {
        counts.insert(count);
        Ok(if count < 64 { 1 } else { took.next().unwrap_or(5_000_000) })
    });
    let sample = sample.unwrap();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [16, 32, 64]);
    assert_eq!((sample.median, sample.most), (5e6 / 64.0, 90e6 / 64.0));
}

#[test]
fn failing_operation_ends_its_measurement() {
    let failed = per_operation(|_| Err(DurationProbeError::OneProcessor)).unwrap_err();
    assert_eq!(
        failed.to_string(),
        "only one processor is available to this process, but the measurement needs two"
    );
}
