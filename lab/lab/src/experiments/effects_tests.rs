//! Tests that every setting affects a result row wherever it is accepted, and is rejected where it has no effect.

use super::catalogue;
use crate::experiment::{Experiment, PointRunError};
use crate::named::{Metrics, Params};
use crate::runner::plan::{ExperimentSelection, SettingAssignment, points};
use crate::runner::{self, ExperimentOptions, LabError, RunResult};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Value other than the default for each setting that is no cost constant, and for some constants. The adaptive
/// policy's r and bufs, which have no effect in the first second, and the scheduler, which has one only after a while,
/// have their own tests.
const OTHER: &[(&str, &str)] = &[
    // An experiment's own table is among the two values.
    ("table", "modern"),
    ("table", "opteron"),
    ("interrupt_hz", "9000"),
    ("driver_hz", "4000"),
    ("tcp_window", "3000"),
    ("loopback_mbps", "50"),
    ("inside", "stream"),
    ("inside_mtu", "1000"),
    ("clients", "stream"),
    ("eoi", "checked"),
    ("aic_lif_hz", "3000"),
    ("warm_up_ms", "3"),
    ("measure_ms", "4"),
    ("cost.backend", "9000"),
    ("cost.eoi_emulated", "9000"),
    ("cost.tx_stack", "9000"),
    ("cost.grant_copy", "9000"),
];

fn run(experiment: &Experiment, point: &Params, set: &[(&str, &str)]) -> Result<RunResult, LabError> {
    let axes = point.iter().map(|(name, value)| SettingAssignment::from((name, value)));
    let set = axes.chain(set.iter().map(|&pair| SettingAssignment::from(pair))).collect();
    let options = ExperimentOptions { set, ..ExperimentOptions::default() };
    let selection = ExperimentSelection::Names(vec![experiment.name.to_owned()]);
    runner::run(&catalogue(), &selection, &options, &mut ())
}

fn without_effect(error: &LabError) -> bool {
    let is_so = |error: &PointRunError| matches!(error, PointRunError::NoEffect(_));
    matches!(error, LabError::Failed { failures, .. } if failures.iter().all(|failure| is_so(&failure.error)))
}

/// Returns everything that an experiment run produced except its point; the trace shows small effects that rounded
/// metrics hide.
fn run_outputs(run: &RunResult) -> (&Metrics, u64, u64) {
    let record = &run.records[0];
    (&record.row.metrics, record.trace, record.simulated_ps)
}

/// Returns the first and the last of an experiment's points with at most ten guests.
fn end_points(experiment: &'static Experiment) -> Vec<Params> {
    let few = |point: &Params| point.int("vms").is_ok_and(|vms| vms <= 10) || point.get("vms").is_none();
    let mut points: Vec<_> = points(experiment).into_iter().filter(few).collect();
    let last = points.pop();
    points.into_iter().take(1).chain(last).collect()
}

/// Returns the settings that are accepted at an experiment point although they have no effect there.
fn idle_settings(experiment: &Experiment, point: &Params) -> Vec<String> {
    let brief: &[_] = &[("warm_up_ms", "8"), ("measure_ms", "8")];
    let is_timed = run(experiment, point, brief).is_ok();
    let brief = if is_timed { brief } else { &[] };
    let base = run(experiment, point, brief).unwrap();
    let mut moves = BTreeMap::<&str, bool>::new();
    for other in OTHER.iter().filter(|(name, _)| point.get(name).is_none()) {
        match run(experiment, point, &[brief, &[*other]].concat()) {
            Ok(run) => *moves.entry(other.0).or_default() |= run_outputs(&run) != run_outputs(&base),
            Err(error) => assert!(without_effect(&error), "{error}"),
        }
    }
    let idle = moves.into_iter().filter(|(_, moves)| !moves);
    idle.map(|(name, _)| format!("{} {point}: {name}", experiment.name)).collect()
}

#[test]
fn experiment_setting_changes_a_result_row_or_is_rejected() {
    let all = catalogue().experiments.iter();
    let points: Vec<_> = all
        .flat_map(|experiment| end_points(experiment).into_iter().map(move |it| (experiment, it)))
        .collect();
    // Points are independent, and this is the crate's longest test: each thread takes the next point.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut idle = Vec::new();
        while let Some((experiment, point)) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
            idle.extend(idle_settings(experiment, point));
        }
        idle
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let idle: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(idle, Vec::<String>::new());
}

/// Checks that a run rejects the scheduler setting if no guests share a thread, so that the scheduler has no decision
/// to take.
#[test]
fn scheduler_setting_is_rejected_if_guests_share_no_thread() {
    let credit = ("scheduling", "credit");
    let find = |name: &str| catalogue().experiment(name).unwrap();
    let alone = run(find("fig08"), &points(find("fig08"))[0], &[credit, ("measure_ms", "5")]);
    assert!(without_effect(&alone.unwrap_err()));
    let [base, other] = ["round-robin", "credit"].map(|name| {
        let point = &points(find("fig11"))[0];
        run(find("fig11"), point, &[("scheduling", name), ("measure_ms", "60")]).unwrap()
    });
    assert_ne!(run_outputs(&base), run_outputs(&other));
}
