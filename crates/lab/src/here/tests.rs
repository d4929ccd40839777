//! Tests of the conversion from readings to constants and settings.

use std::num::NonZeroUsize;

use hypervisor::cost::{Cost, CostTable, Kind};

use super::{parameters, settings, table};
use crate::experiments;
use crate::runner::plan::{Assignment, Selection};
use crate::runner::{self, Options};

const READINGS: &[(&str, f64)] = &[
    ("clock", 2e9),
    ("eventfd_write", 150.0),
    ("eventfd_read", 100.0),
    ("switch", 1_250.0),
    ("copy_warm", 20.0),
    ("exit_mmio_kernel", 800.0),
];

#[test]
fn host_measurements_become_cycles_of_the_measured_clock() {
    let table = table(READINGS);
    assert_eq!(table[Cost::ClockHertz], 2_000_000_000);
    assert_eq!(table[Cost::ContextSwitch], 2_000, "1,250 ns less 150 and 100");
    assert_eq!((table[Cost::CopyWarm], table[Cost::ExitMsixMmio], table[Cost::TxSyscall]), (40, 1_600, 300));
    let row = table.row(Cost::ContextSwitch);
    assert_eq!(row.kind, Kind::Measured);
    assert!(row.source.contains("on one processor"));
    let modern = CostTable::modern();
    for cost in [Cost::DeviceModel, Cost::RxUdp, Cost::HypercallHvm] {
        assert_eq!(table.row(cost), modern.row(cost), "one of its readings is missing");
    }
}

#[test]
fn negative_difference_of_host_measurements_is_ignored() {
    let backwards = table(&[("switch", 100.0), ("eventfd_write", 150.0), ("eventfd_read", 100.0)]);
    assert_eq!(backwards.row(Cost::ContextSwitch), CostTable::modern().row(Cost::ContextSwitch));
}

#[test]
fn settings_of_this_host_contain_its_measured_constants() {
    let table = table(READINGS);
    let texts: Vec<_> = settings(&table).iter().map(|it| format!("{}={}", it.key, it.value)).collect();
    assert_eq!(texts[..2], ["table=modern", "cost.clock_hertz=2000000000"]);
    assert!(texts.contains(&"cost.context_switch=2000".to_owned()));
    let measured = parameters(&table).into_iter().filter(|parameter| parameter.table == "this machine");
    assert_eq!(measured.count(), texts.len() - 1);
}

/// Checks that a machine that is twice as fast, and differs in nothing else, is half as busy.
#[test]
fn twice_the_clock_frequency_halves_processor_use() {
    let busy = |hertz| {
        let mut set = settings(&table(&[("clock", hertz)]));
        set.extend([("vms", 10), ("measure_ms", 20), ("warm_up_ms", 5)].map(Assignment::from));
        let options =
            Options { seed: 1, jobs: NonZeroUsize::MIN, shard: None, set, unaffected: true, out: None };
        let selection = Selection::Names(vec!["fig14".to_owned()]);
        let run = runner::run(&experiments::catalogue(), &selection, &options, &mut ()).unwrap();
        *run.records[0].row.metrics.get("cpu_total_pct").unwrap()
    };
    let ratio = busy(2e9) / busy(4e9);
    assert!((ratio - 2.0).abs() < 0.1, "{ratio}");
}
