//! Tests of the experiments: consistent declarations and reproducible results.

use super::{catalogue, guide_example};
use crate::catalogue::ExperimentCatalogue;
use crate::named::Metrics;
use crate::report::seeds::interval;
use crate::row::ResultRow;
use crate::runner::plan::ExperimentSelection;
use crate::runner::store::StoredResultRow;
use crate::runner::{self, ExperimentOptions, LabError};
use hypervisor::cost::CostTable;
use std::num::NonZeroUsize;

#[test]
fn experiments_of_the_catalogue_have_no_inconsistency() {
    assert_eq!(catalogue().problems(), Vec::<String>::new());
}

/// Runs every point of every experiment briefly, twice: with different jobs and shards the bytes are equal.
#[test]
fn experiment_rows_and_traces_are_equal_for_any_job_count() {
    let set = ["measure_ms=2", "warm_up_ms=5"].map(|text| text.parse().unwrap());
    let run = |jobs, shard: Option<&str>| {
        let (jobs, shard) = (NonZeroUsize::new(jobs).unwrap(), shard.map(|text| text.parse().unwrap()));
        let options = ExperimentOptions {
            seed: 3,
            jobs,
            shard,
            set: set.to_vec(),
            unaffected: true,
            ..ExperimentOptions::default()
        };
        let run = runner::run(&catalogue(), &ExperimentSelection::All, &options, &mut ()).unwrap();
        let line = |record: &StoredResultRow| format!("{} {}", record.row.to_json(), record.trace);
        run.records.iter().map(line).collect::<Vec<_>>()
    };
    let (one, two) = (run(1, None), run(2, None));
    assert!(one.len() >= 48, "{}", one.len());
    assert_eq!(one, two);
    let parts = ["1/3", "2/3", "3/3"].map(|part| run(2, Some(part)));
    let dealt: Vec<_> = (0..one.len()).map(|at| parts[at % 3][at / 3].clone()).collect();
    assert_eq!(one, dealt);
}

/// Checks that the report marks a cost constant that no experiment charges.
#[test]
fn report_marks_cost_constants_that_are_never_charged() {
    let catalogue = catalogue();
    let source = |name| &catalogue.parameters.iter().find(|parameter| parameter.name == name).unwrap().source;
    for name in ["vm_transition", "exit_interrupt_window"] {
        assert!(source(name).contains("; never charged: "), "{}", source(name));
    }
    assert!(!source("injection").contains("never charged"));
}

/// Runs one experiment point briefly with the given settings. Returns its row.
pub(super) fn run_point(experiment: &str, set: &[&str]) -> Result<ResultRow, LabError> {
    found_with(1, experiment, set)
}

fn found_with(seed: u64, experiment: &str, set: &[&str]) -> Result<ResultRow, LabError> {
    let set = ["measure_ms=20"].iter().chain(set).map(|text| text.parse().unwrap()).collect();
    let options = ExperimentOptions { seed, set, unaffected: true, ..ExperimentOptions::default() };
    let selection = ExperimentSelection::Names(vec![experiment.to_owned()]);
    let run = runner::run(&catalogue(), &selection, &options, &mut ())?;
    Ok(run.records.into_iter().next().unwrap().row)
}

#[test]
fn tcp_bytes_in_flight_are_limited_by_the_window() {
    let throughput = |window: &str| {
        let row = run_point("fig09", &["policy=20k", window]).unwrap();
        *row.metrics.get("throughput_mbps").unwrap()
    };
    // A window of two segments waits at least 30 us for the client and most of an interrupt's 50 us.
    let narrow = throughput("tcp_window=2896");
    assert!((100.0..463.0).contains(&narrow), "{narrow}");
    assert!(throughput("tcp_window=92672") > 900.0);
}

#[test]
fn out_of_range_settings_are_rejected_by_name() {
    for (experiment, set, message) in [
        ("fig06", ["vms=-1", "msi_accel=true"], "vms is -1; it must be from 1 to 255"),
        ("fig16", ["vms=10", "backend_threads=256"], "backend_threads is 256; it must be from 1 to 255"),
        ("fig08", ["policy=2k", "cost.eoi_fast=-7"], "cost.eoi_fast is -7: a constant must not be negative"),
        (
            "fig08",
            ["policy=2k", "cost.clock_hertz=0"],
            "cost.clock_hertz is 0: the value of the cost constant must be from 1000000 to",
        ),
        (
            "fig08",
            ["policy=2k", "cost.clock_hertz=1"],
            "cost.clock_hertz is 1: the value of the cost constant must be from 1000000 to",
        ),
        ("fig06", ["vms=1", "interrupt_hz=122"], "interrupt_hz is 122; it must be from 123 to 1000000, an"),
        ("fig06", ["vms=1", "interrupt_hz=1000001"], "interrupt_hz is 1000001; it must be from 123"),
        ("fig09", ["policy=2k", "tcp_window=94896128"], "tcp_window is 94896128; it must be at most 65535"),
        (
            "fig08",
            ["policy=2k", "cost.smt_contention=999"],
            "cost.smt_contention is 999: the value of the cost constant must be from 1000 to 1000000 permille",
        ),
        ("fig12", ["message_bytes=1500", "loopback_mbps=-1"], "loopback_mbps is -1; it must be from 0 to"),
        ("fig09", ["policy=2k", "tcp_window=1447"], "tcp_window is 1447; it must be at least a segment"),
    ] {
        let error = run_point(experiment, &set).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// Compares the row of the audio experiment with the result of a simulation of the scheduler alone, to the last digit.
#[test]
fn audio_underrun_row_has_the_recorded_metrics() {
    let row = run_point("rt-audio", &["scheduler=credit", "tick_ms=10", "weights=1:16"]).unwrap();
    let metrics: Vec<_> = row.metrics.iter().map(|(_, value)| *value).collect();
    assert_eq!(metrics, [2.5151, 2.24719, 2.78302]);
}

/// Experiment points, with settings, that together charge every cost constant.
const CHARGED: &[(&str, &[&str])] = &[
    ("fig06", &["vms=1", "msi_accel=false"]),
    ("fig06", &["vms=1", "msi_accel=true"]),
    ("fig07", &["vms=1", "eoi_accel=false"]),
    ("fig07", &["vms=2", "eoi_accel=true"]),
    ("fig07", &["vms=1", "eoi_accel=true", "eoi=checked"]),
    ("fig11", &["guest=2.6.28", "opts=eoi"]),
    ("fig09", &["policy=20k"]),
    ("fig10", &["policy=20k"]),
    ("fig13", &["message_bytes=1500", "warm_up_ms=5"]),
    ("cdna-throughput", &["system=xen", "direction=rx"]),
    ("cdna-throughput", &["system=cdna", "direction=tx"]),
    ("cdna-scaling", &["vms=24", "system=xen", "direction=tx"]),
    ("bitvisor-throughput", &["pf=classical", "guest=loaded"]),
    ("direct-disk", &["path=pv", "block_kb=4"]),
    ("smart-vnic-tx", &["step=vnic", "nic=dumb"]),
    ("smart-vnic-tx", &["step=channel", "nic=smart"]),
    ("smart-vnic-tx", &["step=base", "nic=smart"]),
    ("smart-vnic-rx", &["step=channel", "where=guest"]),
    ("smart-vnic-rx", &["step=base", "where=driver-domain"]),
    ("netfront-lro", &["lro=true", "notify_batch=8", "backend=stock"]),
    ("fig08", &["policy=2k", "table=modern"]),
    ("fig16", &["vms=10", "backend_threads=8"]),
    ("fig17", &["vms=30", "backend_threads=8"]),
    ("fig14", &["vms=60", "warm_up_ms=5"]),
    ("today", &["path=vhost-net", "interrupts=posted"]),
    ("translate", &["page=4k", "nested=true", "vfs=4"]),
    ("translate", &["page=2m", "nested=false", "vfs=64"]),
];

/// Checks that a cost constant that affects no row states the reason; otherwise it should be removed from the table.
#[test]
fn cost_constant_changes_a_result_unless_marked_never_charged() {
    let brief =
        |name: &str, set: &[&str]| run_point(name, &[&["measure_ms=12"], set].concat()).unwrap().metrics;
    let base: Vec<_> = CHARGED.iter().map(|(name, set)| brief(name, set)).collect();
    for row in CostTable::nehalem().iter() {
        let moves = |((name, set), base): (&(&str, &[&str]), &Metrics)| {
            let changed = format!("cost.{}={}", row.name, row.value * 3 / 2);
            brief(name, &[*set, &[changed.as_str()]].concat()) != *base
        };
        // For constants without effect a few points suffice that charge everything of their kind.
        let points = if row.cost.uncharged().is_some() { 8 } else { CHARGED.len() };
        let moved = CHARGED.iter().zip(&base).take(points).any(moves);
        assert_eq!(moved, row.cost.uncharged().is_none(), "{}", row.name);
    }
}

/// Number of seeds over which orders and levels are checked.
const SEEDS: u64 = 5;

/// Returns a metric of a point for each seed.
pub(super) fn over_seeds(experiment: &str, set: &[&str], metric: &str) -> Vec<f64> {
    let value = |seed| *found_with(seed, experiment, set).unwrap().metrics.get(metric).unwrap();
    (1..=SEEDS).map(value).collect()
}

/// Checks relations between result rows that hold for every seed, as they do not depend on clock phases and the starts
/// of streams. The intervals of 95 % of the values' means have the same order.
#[test]
fn ranking_of_configurations_by_metric_holds_for_every_seed() {
    let orders: &[(&str, &str, &[&[&str]])] = &[
        ("direct-net", "throughput_gbps", &[&["path=pv"], &["path=vmdq"], &["path=direct"]]),
        ("direct-disk", "throughput_mbps", &[&["path=pv", "block_kb=4"], &["path=direct", "block_kb=4"]]),
        (
            "cdna-throughput",
            "throughput_mbps",
            &[
                &["system=xen", "direction=rx"],
                &["system=xen", "direction=tx"],
                &["system=cdna", "direction=tx"],
            ],
        ),
        (
            "bitvisor-throughput",
            "throughput_gbps",
            &[&["pf=classical", "guest=loaded"], &["pf=interruptless", "guest=loaded"]],
        ),
        ("fig06", "cpu_dom0_attributed_pct", &[&["vms=1", "msi_accel=true"], &["vms=1", "msi_accel=false"]]),
        ("fig07", "total_mcycles_per_s", &[&["vms=1", "eoi_accel=true"], &["vms=1", "eoi_accel=false"]]),
        ("fig08", "cpu_guest_pct", &[&["policy=2k"], &["policy=20k"]]),
        ("fig08", "throughput_mbps", &[&["policy=1k"], &["policy=2k"]]),
        (
            "doorbells",
            "throughput_gbps",
            &[
                &["load=datagrams", "doorbell=answered"],
                &["load=datagrams", "doorbell=posted"],
                &["load=datagrams", "doorbell=mapped"],
            ],
        ),
    ];
    for (experiment, metric, points) in orders {
        let values: Vec<_> = points.iter().map(|set| over_seeds(experiment, set, metric)).collect();
        for (less, more) in values.iter().zip(&values[1..]) {
            let is_ordered = less.iter().zip(more).all(|(less, more)| less < more);
            let ((low, below), (high, above)) = (interval(less), interval(more));
            assert!(is_ordered && low + below < high - above, "{experiment} {metric}: {less:?} {more:?}");
        }
    }
}

/// Checks levels of stated values over several seeds: the interval of 95 % of the model's mean is narrow, and as near to
/// the value as the page for artifact evaluation states.
#[test]
fn level_of_stated_value_holds_over_all_seeds() {
    // Experiment, point, metric, stated value, and greatest relative distance.
    let levels: &[(&str, &[&str], &str, f64, f64)] = &[
        ("fig06", &["vms=1", "msi_accel=false"], "cpu_dom0_attributed_pct", 17.0, 0.02),
        ("fig06", &["vms=1", "msi_accel=true"], "cpu_dom0_attributed_pct", 3.0, 0.02),
        ("fig07", &["vms=1", "eoi_accel=false"], "apic_access_mcycles", 139.0, 0.05),
        ("fig08", &["policy=20k"], "throughput_mbps", 957.0, 0.01),
        ("direct-net", &["path=pv"], "throughput_gbps", 2.6, 0.02),
        ("direct-net", &["path=vmdq"], "throughput_gbps", 8.2, 0.05),
        ("cdna-throughput", &["system=cdna", "direction=tx"], "cpu_hypervisor_pct", 10.2, 0.02),
    ];
    for (experiment, set, metric, stated, within) in levels {
        let values = over_seeds(experiment, &[*set, &["measure_ms=200"]].concat(), metric);
        let (mean, half) = interval(&values);
        assert!(half < 0.01 * stated, "{experiment} {set:?}: {mean} +- {half}");
        let farthest = (mean - stated).abs() + half;
        assert!(farthest <= within * stated, "{experiment} {set:?}: {mean} +- {half}, stated {stated}");
    }
}

/// Checks that datagrams warm up for one sample of the adaptive policy, and a stream for several.
#[test]
fn adaptive_warm_up_is_one_sample_except_for_streams() {
    let simulated_ms = |experiment: &str| {
        let set = ["policy=aic", "measure_ms=20"].map(|text| text.parse().unwrap()).to_vec();
        let options = ExperimentOptions { set, ..ExperimentOptions::default() };
        let selection = ExperimentSelection::Names(vec![experiment.to_owned()]);
        let run = runner::run(&catalogue(), &selection, &options, &mut ()).unwrap();
        run.records[0].simulated_ps / 1_000_000_000
    };
    assert_eq!(["fig08", "fig10", "latency", "fig09"].map(simulated_ms), [1_070, 1_070, 1_070, 5_070]);
}

#[test]
fn example_of_the_guide_compiles_and_runs() {
    let guide = include_str!("../../../../docs/lab-guide.md");
    assert!(guide.contains(include_str!("guide_example.rs")), "the guide has another example");
    let example = ExperimentCatalogue { experiments: &[guide_example::PRICE], ..catalogue() };
    let set = ["measure_ms=20"].map(|text| text.parse().unwrap());
    let options = ExperimentOptions { set: set.to_vec(), ..ExperimentOptions::default() };
    let run = runner::run(&example, &ExperimentSelection::All, &options, &mut ()).unwrap();
    let shares = run.records.iter().map(|record| *record.row.metrics.get("cpu_xen_pct").unwrap());
    assert!(shares.clone().count() == 5 && shares.is_sorted());
}
