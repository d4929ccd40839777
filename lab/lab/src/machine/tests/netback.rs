//! Tests of the back end on several virtual CPUs: its calibration, and no loss or reordering while workers, cards and
//! interfaces move.

use super::setup;
use crate::experiments::topology::of_paper;
use crate::machine::{
    ClientTraffic, NetbackOptions, NetworkAccessMode, ServerResults, ServerSetup, ServerSimulation,
};
use driver::moderation::{ModerationPolicy as Moderation, interval_us};
use guest::{KernelConfig, ProgramWorkload};
use hypervisor::cost::{CostTable, MachineModel};
use hypervisor::domain::DomainKind;
use sim::VirtualDuration;
use split::dispatch::{DispatchPolicy, LoadThresholds};

fn of(workers: u8, dispatch: DispatchPolicy) -> ServerSetup {
    ServerSetup {
        table: CostTable::of(MachineModel::Harpertown),
        topology: of_paper(MachineModel::Harpertown),
        ports: 4,
        guests: 4,
        network: NetworkAccessMode::Split { workers },
        netback: NetbackOptions { dispatch, ..NetbackOptions::SPREAD },
        kind: DomainKind::Pvm,
        spec: KernelConfig::xenlinux_2_6_18(ProgramWorkload::Udp),
        moderation: Moderation::Fixed(interval_us(7_500)),
        ..setup()
    }
}

fn measured(setup: &ServerSetup, millis: u64) -> ServerResults {
    ServerSimulation::new(setup)
        .unwrap()
        .measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(millis))
        .unwrap()
}

#[test]
fn stock_network_back_end_reaches_2300_mb_s_within_2_percent() {
    let stock = of(1, DispatchPolicy::First);
    let fitted = measured(&stock, 100).throughput_mbps();
    assert!((fitted / 2_300.0 - 1.0).abs() < 0.02, "{fitted}");
    let mut table = stock.table.clone();
    // The price that the 3.6 Gb/s of Dong et al. require, on a thread whose sibling is busy.
    table.set("backend", 3_023).unwrap();
    let carried_over = measured(&ServerSetup { table, ..stock }, 100).throughput_mbps();
    assert!((1.24..1.32).contains(&(carried_over / 2_300.0)), "{carried_over}");
}

#[test]
fn more_netback_workers_help_only_if_events_are_distributed() {
    let rate = |workers, dispatch| measured(&of(workers, dispatch), 50).throughput_mbps();
    let [one, four] = [1, 4].map(|workers| rate(workers, DispatchPolicy::First));
    assert!((four / one - 1.0).abs() < 0.03, "{one} {four}");
    assert!(rate(4, DispatchPolicy::Spread) > 3_800.0);
}

/// Runs datagrams and requests at a load near both thresholds, so that workers, cards and interfaces move every few
/// samples. The phases of the ports decide on which side of the thresholds the load of a seed is.
#[test]
fn interface_move_between_workers_loses_and_reorders_no_frame() {
    for (permille, threshold) in [(200, 640), (400, 1_120)] {
        let mut moving = of(4, DispatchPolicy::Balanced(LoadThresholds::new(threshold, threshold).unwrap()));
        moving.traffic = ClientTraffic::Paced { permille };
        moving.first = Some((ClientTraffic::RequestResponse, ProgramWorkload::RequestResponse));
        let moves = (1..=5).map(|seed| {
            let found = measured(&ServerSetup { seed, ..moving.clone() }, 400);
            assert_eq!((found.reordered(), found.lost_events()), (0, 0), "{permille}, seed {seed}");
            found.moves_per_s()
        });
        let moves: Vec<_> = moves.collect();
        assert!(moves.iter().filter(|moves| **moves > 50.0).count() >= 3, "{permille}: {moves:?}");
    }
}

#[test]
fn saturated_back_end_moves_interfaces_without_reordering() {
    let mut full = of(4, DispatchPolicy::Balanced(LoadThresholds::new(600, 1_200).unwrap()));
    full.guests = 8;
    let found = ServerSimulation::new(&full)
        .unwrap()
        .measure(VirtualDuration::ZERO, VirtualDuration::from_millis(60))
        .unwrap();
    // Three tasklets and three cards leave the first virtual CPU, and six guests the first tasklet pair.
    assert!((12.0 * 0.9..12.0 * 1.1).contains(&(found.moves_per_s() * 0.06)), "{}", found.moves_per_s());
    assert_eq!((found.reordered(), found.lost_events()), (0, 0));
}

/// Checks that a request that waits when a saturated virtual CPU hands over its work is continued on another virtual
/// CPU. Tests of `hypervisor::evtchn` show for all histories that rebinding loses no event.
#[test]
fn moving_work_off_a_saturated_back_end_loses_no_guest_event() {
    for seed in 1..=16 {
        let mut full = of(4, DispatchPolicy::Balanced(LoadThresholds::new(600, 1_200).unwrap()));
        full.first = Some((ClientTraffic::RequestResponse, ProgramWorkload::RequestResponse));
        full.seed = seed;
        let found = ServerSimulation::new(&full)
            .unwrap()
            .measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(10))
            .unwrap();
        assert_eq!(found.lost_events(), 0, "seed {seed}");
        assert!(found.transactions_per_s() > 5_000.0, "seed {seed}: {}", found.transactions_per_s());
    }
}

#[test]
fn back_end_event_held_for_batching_arrives_after_its_delay() {
    let slowest = |notify_every| {
        let mut alone = of(1, DispatchPolicy::First);
        (alone.ports, alone.guests) = (1, 1);
        (alone.traffic, alone.spec.load) = (ClientTraffic::RequestResponse, ProgramWorkload::RequestResponse);
        (alone.netback.notify_every, alone.moderation) = (notify_every, Moderation::Fixed(5));
        measured(&alone, 50).round_trip_quantile_us(100)
    };
    let [at_once, later] = [1, 32].map(slowest);
    assert!((40.0..70.0).contains(&(later - at_once)), "{at_once} {later}");
}

#[test]
fn merging_tcp_segments_keeps_throughput_and_saves_cycles() {
    let stream = |merge| {
        let mut stream = of(4, DispatchPolicy::Spread);
        (stream.traffic, stream.spec.load) = (ClientTraffic::Tcp { window: 64 }, ProgramWorkload::Tcp);
        stream.netback.merge = merge;
        measured(&stream, 50)
    };
    let [plain, merged] = [false, true].map(stream);
    assert!(plain.throughput_mbps() > 3_700.0 && merged.throughput_mbps() > 3_700.0);
    assert!(merged.cycles_per_frame() < 0.8 * plain.cycles_per_frame());
}
