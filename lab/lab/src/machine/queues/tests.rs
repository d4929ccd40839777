//! Tests of doorbells and queue pairs by the results of simulations.

use super::{DoorbellPath, MultiqueueResults, MultiqueueSetup, MultiqueueSimulation, MultiqueueTraffic};
use hypervisor::cost::CostTable;
use sim::VirtualDuration;

const DOORBELLS: [DoorbellPath; 3] = [DoorbellPath::Memory, DoorbellPath::Posted, DoorbellPath::Answered];
const LOADS: [MultiqueueTraffic; 3] =
    [MultiqueueTraffic::Stream, MultiqueueTraffic::Datagrams, MultiqueueTraffic::Requests];

fn plan(pairs: u8, doorbell: DoorbellPath, load: MultiqueueTraffic) -> MultiqueueSetup {
    MultiqueueSetup { table: CostTable::modern(), pairs, doorbell, load, seed: 1 }
}

fn simulate(pairs: u8, doorbell: DoorbellPath, load: MultiqueueTraffic) -> MultiqueueResults {
    let mut machine = MultiqueueSimulation::new(&plan(pairs, doorbell, load)).unwrap();
    machine.measure(load, VirtualDuration::from_millis(5), VirtualDuration::from_millis(20)).unwrap()
}

#[test]
fn only_unmapped_doorbells_cause_vm_exits() {
    for load in LOADS {
        for doorbell in DOORBELLS {
            let MultiqueueResults { doorbells, exits, .. } = simulate(1, doorbell, load);
            assert!(doorbells > 300.0, "{load:?} {doorbell:?}: {doorbells}");
            let expected = if doorbell == DoorbellPath::Memory { 0.0 } else { doorbells };
            assert_eq!(exits.to_bits(), expected.to_bits(), "{load:?} {doorbell:?}");
        }
    }
}

#[test]
fn datagram_sender_rings_the_doorbell_once_per_datagram() {
    let doorbells = simulate(1, DoorbellPath::Memory, MultiqueueTraffic::Datagrams).doorbells;
    assert!(
        (1_000.0..1_050.0).contains(&doorbells),
        "expected one doorbell per datagram and per interrupt: {doorbells}"
    );
}

#[test]
fn doorbell_throughput_is_best_mapped_then_posted_then_answered() {
    for load in [MultiqueueTraffic::Stream, MultiqueueTraffic::Datagrams] {
        let throughput = DOORBELLS.map(|doorbell| simulate(1, doorbell, load).throughput_gbps);
        assert!(throughput.is_sorted_by(|one, next| one > next), "{load:?}: {throughput:?}");
    }
    let trips = DOORBELLS.map(|doorbell| simulate(1, doorbell, MultiqueueTraffic::Requests).round_trip_us);
    assert!(trips[0] < trips[1] && trips[0] < trips[2], "{trips:?}");
}

#[test]
fn throughput_scales_with_mapped_queue_pairs() {
    for load in [MultiqueueTraffic::Stream, MultiqueueTraffic::Datagrams] {
        let one = simulate(1, DoorbellPath::Memory, load).throughput_gbps;
        for pairs in [2, 4] {
            let times = simulate(pairs, DoorbellPath::Memory, load).throughput_gbps / one;
            assert!(
                (times - f64::from(pairs)).abs() < 0.1,
                "{load:?}: {pairs} pairs have {times} times the throughput of one"
            );
        }
    }
}

#[test]
fn posted_doorbell_throughput_does_not_scale_beyond_two_queues() {
    let [two, four] = [2, 4]
        .map(|pairs| simulate(pairs, DoorbellPath::Posted, MultiqueueTraffic::Datagrams).throughput_gbps);
    assert!(four < two * 1.1, "{two} and {four}");
}

#[test]
fn number_of_queue_pairs_out_of_range_is_rejected() {
    for pairs in [0, 5] {
        let error = MultiqueueSimulation::new(&plan(pairs, DoorbellPath::Memory, MultiqueueTraffic::Stream))
            .unwrap_err();
        assert_eq!(error, format!("number of queue pairs {pairs} is out of range (1-4)"));
    }
}

#[test]
fn equal_seeds_give_equal_traces_of_the_queue_pair_machine() {
    let story = || {
        let mut machine =
            MultiqueueSimulation::new(&plan(4, DoorbellPath::Posted, MultiqueueTraffic::Stream)).unwrap();
        let found = machine
            .measure(MultiqueueTraffic::Stream, VirtualDuration::ZERO, VirtualDuration::from_millis(2))
            .unwrap();
        (machine.hash(), machine.events(), format!("{found:?}"))
    };
    assert_eq!(story(), story());
}
