//! Tests of the conversion from host measurements to cost constants and settings.

use hypervisor::cost::{CostConstant, CostEvidenceKind, CostTable};

use super::{parameters, paths, settings, table};
use crate::experiments;
use crate::runner::plan::{ExperimentSelection, SettingAssignment};
use crate::runner::{self, ExperimentOptions};

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
    assert_eq!(table[CostConstant::ClockHertz], 2_000_000_000);
    assert_eq!(table[CostConstant::ContextSwitch], 2_000, "1,250 ns minus 150 and 100 at 2 GHz");
    assert_eq!(
        (table[CostConstant::CopyWarm], table[CostConstant::ExitMsixMmio], table[CostConstant::TxSyscall]),
        (40, 1_600, 300)
    );
    let row = table.row(CostConstant::ContextSwitch);
    assert_eq!(row.kind, CostEvidenceKind::Measured);
    assert!(row.source.contains("on one processor"));
    let modern = CostTable::modern();
    for cost in [CostConstant::DeviceModel, CostConstant::RxUdp, CostConstant::HypercallHvm] {
        assert_eq!(
            table.row(cost),
            modern.row(cost),
            "a constant without all its measurements keeps the base value"
        );
    }
}

#[test]
fn negative_difference_of_host_measurements_is_ignored() {
    let backwards = table(&[("switch", 100.0), ("eventfd_write", 150.0), ("eventfd_read", 100.0)]);
    assert_eq!(
        backwards.row(CostConstant::ContextSwitch),
        CostTable::modern().row(CostConstant::ContextSwitch)
    );
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

/// Checks that measured prices move the paths that pay them: only QEMU's own path makes a system call for each segment.
#[test]
fn host_measurements_move_the_paths_that_pay_them() {
    let [cheap, dear] =
        [150.0, 350.0].map(|ns| paths(&settings(&table(&[("clock", 2e9), ("eventfd_write", ns)]))).unwrap());
    assert_eq!(cheap.len(), 10);
    for (cheap, dear) in cheap.iter().zip(&dear) {
        assert!(cheap.least <= cheap.cycles && cheap.cycles <= cheap.most, "{cheap:?}");
        let expected = if cheap.path == "virtio-qemu" { 400.0 } else { 0.0 };
        assert!((dear.cycles - cheap.cycles - expected).abs() < 0.1, "{cheap:?} {dear:?}");
    }
}

/// Checks that a host that is twice as fast, and differs in nothing else, is half as busy.
#[test]
fn twice_the_clock_frequency_halves_processor_use() {
    let busy = |hertz| {
        let mut set = settings(&table(&[("clock", hertz)]));
        set.extend([("vms", 10), ("measure_ms", 20), ("warm_up_ms", 5)].map(SettingAssignment::from));
        let options = ExperimentOptions { set, unaffected: true, ..ExperimentOptions::default() };
        let selection = ExperimentSelection::Names(vec!["fig14".to_owned()]);
        let run = runner::run(&experiments::catalogue(), &selection, &options, &mut ()).unwrap();
        *run.records[0].row.metrics.get("cpu_total_pct").unwrap()
    };
    let ratio = busy(2e9) / busy(4e9);
    assert!((ratio - 2.0).abs() < 0.1, "{ratio}");
}
