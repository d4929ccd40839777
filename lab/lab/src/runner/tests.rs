//! Tests of the experiment runner: reproducible and complete rows, and failures that name their points.

use std::num::NonZeroUsize;
use std::{fs, io};

use super::notes::{equal_for_all_seeds, unread_values};
use super::plan::{ExperimentSelection, RunPlanError, RunShard, SettingAssignment};
use super::store::{self, StoredResultRow};
use super::{ExperimentOptions, LabError, RunObserver, RunResult, run};
use crate::catalogue::ExperimentCatalogue;
use crate::experiment::{Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint};
use crate::row::ResultRow;
use crate::synthetic::catalogue;
use crate::value::ParameterValue;

fn options(jobs: usize) -> ExperimentOptions {
    ExperimentOptions { jobs: NonZeroUsize::new(jobs).unwrap(), ..ExperimentOptions::default() }
}

fn set(assignments: &[&str]) -> ExperimentOptions {
    ExperimentOptions { set: assignments.iter().map(|text| text.parse().unwrap()).collect(), ..options(2) }
}

fn names(names: &[&str]) -> ExperimentSelection {
    ExperimentSelection::Names(names.iter().map(|&name| name.to_owned()).collect())
}

fn go(selection: &ExperimentSelection, options: &ExperimentOptions) -> Result<RunResult, LabError> {
    run(&catalogue(), selection, options, &mut ())
}

fn lines(run: &RunResult) -> Vec<String> {
    run.records.iter().map(|record| record.row.to_json()).collect()
}

fn params(run: &RunResult) -> Vec<String> {
    run.records.iter().map(|record| record.row.params.to_string()).collect()
}

#[test]
fn result_rows_are_equal_for_any_number_of_jobs() {
    let one = go(&ExperimentSelection::All, &options(1)).unwrap();
    let four = go(&ExperimentSelection::All, &options(4)).unwrap();
    assert_eq!(one.records, four.records, "rows and traces depend on the number of jobs");
    let other = go(&ExperimentSelection::All, &ExperimentOptions { seed: 2, ..options(1) }).unwrap();
    assert!(one.records.iter().zip(&other.records).all(|(one, other)| one.trace != other.trace));
}

#[test]
fn result_rows_are_in_the_order_of_the_points() {
    let run = go(&names(&["ladder", "queue"]), &options(3)).unwrap();
    let params = params(&run);
    assert_eq!(params[..3], ["vms=1 accel=false", "vms=1 accel=true", "vms=2 accel=false"]);
    assert_eq!(params[14], "guest=old opts=none");
    assert_eq!(params.len(), 14 + 5);
    assert_eq!((run.events, run.simulated_ps), (19_000, 38_000_000_000_000));
}

#[test]
fn result_row_of_a_point_is_independent_of_other_points() {
    let all = lines(&go(&ExperimentSelection::All, &options(2)).unwrap());
    let one = lines(&go(&names(&["queue"]), &set(&["vms=3", "accel=true"])).unwrap());
    assert_eq!(one, [all[5].clone()]);
}

#[test]
fn experiment_axis_named_like_a_setting_varies_the_setting() {
    const EOI: ExperimentAxis = ExperimentAxis {
        name: "cost.eoi_full",
        what: "an end of interrupt",
        values: ExperimentAxisValues::List(&[ParameterValue::Int(8_400), ParameterValue::Int(2_500)]),
        labels: &[],
    };
    let catalogue = catalogue();
    let experiment = Experiment { axes: &[EOI], figures: &[], ..catalogue.experiments[0] };
    let catalogue = ExperimentCatalogue {
        experiments: Box::leak(Box::new([experiment])),
        stated: Vec::new(),
        ..catalogue
    };
    assert_eq!(catalogue.problems(), Vec::<String>::new());
    let both = run(&catalogue, &ExperimentSelection::All, &options(1), &mut ()).unwrap();
    assert_eq!(params(&both), ["cost.eoi_full=8400", "cost.eoi_full=2500"]);
    let found = |name| {
        both.records.iter().map(|record| record.row.metrics.get(name).copied().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(found("cpu_xen_pct"), [39.0, 11.6071]);
    assert_eq!(
        found("cpu_guest_pct")[0],
        found("cpu_guest_pct")[1],
        "equal axes use the same random numbers"
    );
    let one = run(&catalogue, &ExperimentSelection::All, &set(&["cost.eoi_full=2500"]), &mut ()).unwrap();
    assert_eq!(lines(&one), lines(&both)[1..]);
}

#[test]
fn shards_of_an_experiment_run_together_have_every_point() {
    let whole = lines(&go(&ExperimentSelection::All, &options(2)).unwrap());
    let mut parts = Vec::new();
    for part in ["1/3", "2/3", "3/3"] {
        let shard: RunShard = part.parse().unwrap();
        parts.push(lines(
            &go(&ExperimentSelection::All, &ExperimentOptions { shard: Some(shard), ..options(2) }).unwrap(),
        ));
    }
    let dealt: Vec<_> = (0..whole.len()).map(|at| parts[at % 3][at / 3].clone()).collect();
    assert_eq!(dealt, whole);
    for no in ["0/3", "4/3", "1", "1/0", "a/b"] {
        assert!(no.parse::<RunShard>().is_err(), "{no}");
    }
}

#[test]
fn experiment_axis_may_be_set_to_a_value_outside_its_sweep() {
    assert_eq!(
        params(&go(&names(&["queue"]), &set(&["vms=9"])).unwrap()),
        ["vms=9 accel=false", "vms=9 accel=true"]
    );
    assert_eq!(
        params(&go(&names(&["ladder"]), &set(&["guest=new"])).unwrap()),
        ["guest=new opts=none", "guest=new opts=eoi"]
    );
    let error = go(&names(&["ladder"]), &set(&["guest=native", "opts=eoi"])).unwrap_err();
    assert!(matches!(error, LabError::Plan(RunPlanError::NoPoint { experiment: "ladder" })), "{error}");
}

#[test]
fn changed_setting_is_in_the_result_row_and_keeps_the_seed() {
    let changed = go(&names(&["queue"]), &set(&["vms=1", "accel=true", "contention=1.5", "cpu=nehalem"]));
    let changed = changed.unwrap();
    assert_eq!(
        params(&changed),
        ["vms=1 accel=true contention=1.5"],
        "a setting at its default is not in the row"
    );
    let plain = go(&names(&["queue"]), &set(&["vms=1", "accel=true"])).unwrap();
    let metric = |run: &RunResult, name| *run.records[0].row.metrics.get(name).unwrap();
    assert_eq!(metric(&changed, "throughput_mbps"), metric(&plain, "throughput_mbps"));
    assert!(metric(&changed, "cpu_xen_pct") > metric(&plain, "cpu_xen_pct"));
}

/// Checks a folder with rows of two machine files that differ in a value that no point reads.
#[test]
fn stored_row_is_reused_and_read_once_without_unread_values() {
    let folder = tempfile::tempdir().unwrap();
    let on = |cpu: &str, unaffected| ExperimentOptions {
        out: Some(folder.path().to_owned()),
        machine: vec![("cpu", cpu).into(), ("contention", "1.5").into()],
        unaffected,
        ..set(&["vms=1", "accel=true"])
    };
    let rows = |cpu, unaffected| go(&names(&["queue"]), &on(cpu, unaffected)).unwrap();
    let first = rows("modern", false);
    assert_eq!(params(&first), ["vms=1 accel=true contention=1.5"]);
    assert_eq!(unread_values(&first.records), [("queue", vec!["cpu"])]);
    let again = rows("modern", false);
    assert_eq!((again.reused, &again.records), (1, &first.records));
    rows("nehalem", false);
    assert_eq!(store::read(folder.path()).unwrap().0.len(), 1, "both machines have one row");
    let all = rows("modern", true);
    assert_eq!(
        (all.reused, params(&all)),
        (0, vec!["vms=1 accel=true cpu=modern contention=1.5".to_owned()])
    );
}

#[test]
fn experiments_with_equal_rows_for_all_seeds_are_named() {
    let record = |experiment: &str, seed, mbps| {
        let run = go(&names(&["queue"]), &set(&["vms=1", "accel=true"])).unwrap();
        let mut record = run.records[0].clone();
        record.row.experiment = experiment.to_owned();
        record.row.metrics.set("throughput_mbps", mbps);
        StoredResultRow { seed, ..record }
    };
    let rows =
        [record("equal", 1, 2.0), record("moved", 1, 2.0), record("equal", 2, 2.0), record("moved", 2, 3.0)];
    assert_eq!(equal_for_all_seeds(&rows), ["equal"]);
    assert!(equal_for_all_seeds(&rows[..2]).is_empty(), "one seed says nothing");
}

#[test]
fn setting_without_effect_on_many_points_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let out = Some(folder.path().to_owned());
    let changed = ExperimentOptions { out, ..set(&["cpu=modern", "contention=1.5"]) };
    for _ in 0..2 {
        let error = go(&names(&["queue"]), &changed).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("settings without effect on this point: cpu; remove them"), "{text}");
        assert!(text.ends_with("(and 13 more of its points)") && text.lines().count() == 2, "{text}");
        let LabError::Failed { run, .. } = error else { panic!("{error}") };
        assert!(run.records.is_empty(), "rows without an effect are not in the result");
    }
    let all = go(&names(&["queue"]), &ExperimentOptions { unaffected: true, ..changed }).unwrap();
    assert_eq!(all.records.len(), 14);
    assert!(go(&names(&["queue"]), &set(&["cpu=nehalem"])).is_ok(), "a setting at its default is accepted");
}

#[test]
fn unknown_experiment_is_rejected_with_the_known_names() {
    for (selection, assignment, message) in [
        (
            names(&["quue"]),
            "vms=1",
            "unknown experiment `quue`; did you mean queue? `softiov lab list` shows all",
        ),
        (names(&["QUEUE"]), "vms=1", "unknown experiment `QUEUE`; did you mean queue?"),
        (names(&["zzz"]), "vms=1", "unknown experiment `zzz`; known: queue, ladder, sizes"),
        (names(&["all", "sizes"]), "vms=1", "unknown experiment `all`; give `all` alone"),
        (
            ExperimentSelection::All,
            "cost.eoi_ful=1",
            "unknown axis or setting `cost.eoi_ful`; did you mean cost.eoi_full?",
        ),
        (ExperimentSelection::All, "eoi=1", "unknown axis or setting `eoi`; did you mean cost.eoi_full?"),
        (
            ExperimentSelection::All,
            "zzz=1",
            "unknown axis or setting `zzz`: `softiov lab list` shows all, such as accel",
        ),
        (
            names(&["sizes"]),
            "vms=one",
            "unknown axis or setting `vms`: it is an axis of queue; axes of this run are ",
        ),
        (ExperimentSelection::All, "vms=one", "invalid value `one` of vms: expected an integer"),
        (
            ExperimentSelection::All,
            "vms=1,2",
            "invalid value `1,2` of vms: expected an integer; several values are --sweep vms=1,2",
        ),
        (
            ExperimentSelection::All,
            "vms=1-9",
            "invalid value `1-9` of vms: expected an integer; a range is --sweep vms=1..9",
        ),
        (
            ExperimentSelection::All,
            "cost.eoi_full=8kc",
            "invalid value `8kc` of cost.eoi_full: expected an integer (cycles, without the unit)",
        ),
        (ExperimentSelection::All, "cpu=z80", "invalid value `z80` of cpu: expected one of nehalem, modern"),
        (
            ExperimentSelection::All,
            "guest=dos",
            "invalid value `dos` of guest: expected one of old, new, native",
        ),
    ] {
        let error = go(&selection, &set(&[assignment])).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert!("vms".parse::<SettingAssignment>().is_err() && "=1".parse::<SettingAssignment>().is_err());
}

#[test]
fn failed_experiment_point_is_named_and_others_are_run() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        ExperimentOptions { out: Some(folder.path().to_owned()), ..set(&["cost.eoi_full=-1", "accel=true"]) };
    let error = go(&names(&["queue"]), &options).unwrap_err();
    let text = error.to_string();
    let start = "7 of 7 points failed: \n  queue vms=1 accel=true cost.eoi_full=-1: invariant of the model violated: the sum";
    assert!(text.starts_with(start), "{text}");
    assert!(
        text.ends_with("is not the time that passed (and 6 more of its points)"),
        "expected one line for the experiment: {text}"
    );
    let LabError::Failed { failures, points: 7, .. } = error else { panic!("{error}") };
    assert_eq!(failures.len(), 7);
    let refused = go(&names(&["queue"]), &set(&["vms=61"])).unwrap_err().to_string();
    assert!(refused.contains("queue vms=61 accel=false: vms is 61; the port takes 0 to 60"), "{refused}");
}

#[test]
fn stored_result_row_with_equal_inputs_is_reused() {
    let folder = tempfile::tempdir().unwrap();
    let options = ExperimentOptions { out: Some(folder.path().to_owned()), ..options(2) };
    let first = go(&names(&["queue"]), &options).unwrap();
    let again = go(&ExperimentSelection::All, &options).unwrap();
    assert_eq!((first.reused, again.reused), (0, 14));
    assert_eq!(again.records[..14], first.records);
    assert_eq!(store::read(folder.path()).unwrap().0.len(), again.records.len());
    let other_seed = go(&names(&["queue"]), &ExperimentOptions { seed: 2, ..options.clone() }).unwrap();
    let other_set = ExperimentOptions { set: vec!["contention=2".parse().unwrap()], ..options };
    assert_eq!((other_seed.reused, go(&names(&["queue"]), &other_set).unwrap().reused), (0, 0));
}

#[test]
fn damaged_or_outdated_stored_rows_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let options = ExperimentOptions { out: Some(folder.path().to_owned()), ..options(2) };
    go(&names(&["sizes"]), &options).unwrap();
    let mut files: Vec<_> =
        fs::read_dir(folder.path().join("rows")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let text = fs::read_to_string(&files[0]).unwrap();
    let mut old: StoredResultRow = serde_json::from_str(&text).unwrap();
    old.version = "0.0.9+0".to_owned();
    fs::write(&files[0], serde_json::to_string(&old).unwrap()).unwrap();
    fs::write(&files[1], &text[..40]).unwrap();
    let (rows, broken) = store::read(folder.path()).unwrap();
    assert_eq!((rows.len(), broken.len()), (3, 1), "a torn file prevents reading the other rows");
    assert!(broken[0].to_string().contains("does not contain a result row of the lab"), "{}", broken[0]);
    assert_eq!(go(&names(&["sizes"]), &options).unwrap().reused, 2);
    assert_eq!(fs::read_to_string(&files[0]).unwrap(), text);
    assert_eq!(go(&names(&["sizes"]), &options).unwrap().reused, 4);
}

/// Observer of an experiment run that accepts two rows and then fails.
struct FailingObserver(Vec<String>);

impl RunObserver for FailingObserver {
    fn done(&mut self, point: &ExperimentPoint) {
        assert_eq!(point.experiment, "queue");
    }

    fn row(&mut self, row: &ResultRow) -> io::Result<()> {
        self.0.push(row.to_json());
        if self.0.len() < 2 { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
}

#[test]
fn experiment_run_stops_when_the_observer_takes_no_more_rows() {
    let mut full = FailingObserver(Vec::new());
    let error = run(&catalogue(), &names(&["queue"]), &options(2), &mut full).unwrap_err();
    assert!(matches!(error, LabError::Output(_)), "{error}");
    assert_eq!(full.0.len(), 2);
}
