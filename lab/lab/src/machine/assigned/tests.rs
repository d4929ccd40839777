//! Tests of the machine with an assigned or shared device: its calibration target, and relations that hold
//! for any costs.

use super::DeviceAccessMode;
use super::net::{self, NetworkSimulation};
use super::storage::{self, DiskSimulation};
use crate::machine::DiskProperties;
use hypervisor::cost::{CostTable, MachineModel};
use sim::VirtualDuration;

fn stream(path: DeviceAccessMode) -> net::NicMachineResults {
    stream_with(path, CostTable::of(MachineModel::Server2009))
}

fn stream_with(path: DeviceAccessMode, table: CostTable) -> net::NicMachineResults {
    NetworkSimulation::new(&net::NicMachineSetup {
        table,
        path,
        card: net::AssignedCardProperties::TEN_GIGABIT,
        seed: 1,
    })
    .measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(100))
    .unwrap()
}

fn disk(path: DeviceAccessMode, block_kb: u32) -> storage::DiskResults {
    let plan = storage::DiskSetup {
        table: CostTable::of(MachineModel::Server2009),
        path,
        disk: DiskProperties::SATA,
        block: block_kb * 1_024,
        seed: 1,
    };
    DiskSimulation::new(&plan)
        .measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(400))
        .unwrap()
}

#[test]
fn split_driver_reaches_its_calibrated_throughput() {
    let found = stream(DeviceAccessMode::Pv);
    assert!((found.throughput_gbps / 2.6 - 1.0).abs() < 0.02, "{found:?}");
    assert!(found.service_pct > 98.0, "the service domain's processor is not full: {found:?}");
}

#[test]
fn stream_is_fastest_by_direct_assignment_then_vmdq_then_pv() {
    let [pv, sorted, direct] =
        [DeviceAccessMode::Pv, DeviceAccessMode::Vmdq, DeviceAccessMode::Direct].map(stream);
    assert!(pv.throughput_gbps < sorted.throughput_gbps && sorted.throughput_gbps < direct.throughput_gbps);
    assert!(direct.service_pct < 1e-9 && direct.cpu_total_pct < pv.cpu_total_pct, "{direct:?}");
    assert!(direct.throughput_gbps < 9.42, "more than the wire carries: {direct:?}");
}

/// Checks that a queue of the card reuses its grants: mapping a page costs only the split driver's stream, whose
/// acknowledgements are mapped one by one.
#[test]
fn page_mappings_slow_only_the_split_drivers_stream() {
    let free = |path| {
        let mut table = CostTable::of(MachineModel::Server2009);
        table.set("grant_map_unmap", 0).unwrap();
        stream_with(path, table)
    };
    let (pv, free_pv) = (stream(DeviceAccessMode::Pv), free(DeviceAccessMode::Pv));
    assert!(free_pv.throughput_gbps > 1.1 * pv.throughput_gbps, "{pv:?} {free_pv:?}");
    for path in [DeviceAccessMode::Vmdq, DeviceAccessMode::Direct] {
        let (priced, free) = (stream(path), free(path));
        assert!((free.throughput_gbps / priced.throughput_gbps - 1.0).abs() < 0.005, "{priced:?} {free:?}");
    }
}

#[test]
fn service_domain_slows_only_disk_requests_of_small_blocks() {
    let both = |kb| [DeviceAccessMode::Pv, DeviceAccessMode::Direct].map(|path| disk(path, kb));
    let [pv, direct] = both(4);
    assert!(pv.throughput_mbps < 0.9 * direct.throughput_mbps, "{pv:?} {direct:?}");
    for kb in [64, 1_024] {
        let [pv, direct] = both(kb);
        assert!((pv.throughput_mbps / direct.throughput_mbps - 1.0).abs() < 0.01, "{pv:?} {direct:?}");
        assert!(pv.cpu_total_pct > 2.0 * direct.cpu_total_pct, "{pv:?} {direct:?}");
        assert!(direct.throughput_mbps < 810.0, "more than the disk's surface delivers: {direct:?}");
    }
}
