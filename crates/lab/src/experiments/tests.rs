//! The experiments: declared as they run, and the same twice.

use super::catalogue;
use crate::row::Row;
use crate::runner::plan::Selection;
use crate::runner::{self, LabError, Options};
use std::num::NonZeroUsize;

#[test]
fn every_experiment_is_declared_consistently() {
    assert_eq!(catalogue().problems(), Vec::<String>::new());
}

/// Every point of every experiment, for a little while.
#[test]
fn every_experiment_tells_the_same_story_twice() {
    let set = ["measure_ms=2", "warm_up_ms=5"].map(|text| text.parse().unwrap());
    let run = |jobs| {
        let jobs = NonZeroUsize::new(jobs).unwrap();
        let options = Options { seed: 3, jobs, shard: None, set: set.to_vec(), out: None };
        runner::run(&catalogue(), &Selection::All, &options, &mut ()).unwrap()
    };
    let (one, two) = (run(1), run(2));
    assert!(one.records.len() >= 48, "{}", one.records.len());
    assert_eq!(format!("{:?}", one.records), format!("{:?}", two.records));
}

/// A constant that is charged to nobody says so where it is listed.
#[test]
fn what_nothing_charges_is_marked_in_the_report() {
    let catalogue = catalogue();
    let source = |name| &catalogue.parameters.iter().find(|parameter| parameter.name == name).unwrap().source;
    for name in ["vm_transition", "exit_interrupt_window", "virtual_ipi", "page_flip"] {
        assert!(source(name).contains("; nothing is charged it: "), "{}", source(name));
    }
    assert!(!source("injection").contains("nothing is charged it"));
}

/// One point with these settings, for a little while.
fn found(experiment: &str, set: &[&str]) -> Result<Row, LabError> {
    let set = ["measure_ms=20"].iter().chain(set).map(|text| text.parse().unwrap()).collect();
    let options = Options { seed: 1, jobs: NonZeroUsize::MIN, shard: None, set, out: None };
    let selection = Selection::Names(vec![experiment.to_owned()]);
    let run = runner::run(&catalogue(), &selection, &options, &mut ())?;
    Ok(run.records.into_iter().next().unwrap().row)
}

#[test]
fn a_stream_has_no_more_under_way_than_its_window() {
    let throughput = |window: &str| {
        let row = found("fig09", &["policy=20k", window]).unwrap();
        *row.metrics.get("throughput_mbps").unwrap()
    };
    // Two segments, and then at least the 30 us of the client and most of an interrupt's 50.
    let narrow = throughput("tcp_window=2896");
    assert!((100.0..463.0).contains(&narrow), "{narrow}");
    assert!(throughput("tcp_window=92672") > 900.0);
}

#[test]
fn values_that_nothing_can_have_are_refused_by_name() {
    for (experiment, set, message) in [
        ("fig06", ["vms=-1", "msi_accel=true"], "vms is -1; it must be from 1 to 255"),
        ("fig16", ["vms=10", "backend_threads=256"], "backend_threads is 256; it must be from 1 to 255"),
        ("fig08", ["policy=2k", "cost.eoi_fast=-7"], "cost.eoi_fast is -7: no constant is negative"),
        ("fig08", ["policy=2k", "cost.clock_hertz=0"], "cost.clock_hertz is 0: it must be from 1 to"),
        (
            "fig08",
            ["policy=2k", "cost.smt_contention=999"],
            "cost.smt_contention is 999: it must be from 1000 to 1000000 permille",
        ),
        ("fig08", ["policy=2k", "loopback_mbps=-1"], "loopback_mbps is -1; it must be from 0 to"),
        ("fig09", ["policy=2k", "tcp_window=1447"], "tcp_window is less than a segment, 1448 bytes"),
    ] {
        let error = found(experiment, &set).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
