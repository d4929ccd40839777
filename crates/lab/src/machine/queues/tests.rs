//! The rules of doorbells and queue pairs, seen in what a machine does.

use super::{Doorbell, Found, Load, Plan, Queues};
use hypervisor::cost::CostTable;
use sim::Span;

const WAYS: [Doorbell; 3] = [Doorbell::Memory, Doorbell::Posted, Doorbell::Answered];
const LOADS: [Load; 3] = [Load::Stream, Load::Datagrams, Load::Requests];

fn plan(pairs: u8, doorbell: Doorbell, load: Load) -> Plan {
    Plan { table: CostTable::modern(), pairs, doorbell, load, seed: 1 }
}

fn found(pairs: u8, doorbell: Doorbell, load: Load) -> Found {
    let mut machine = Queues::new(&plan(pairs, doorbell, load)).unwrap();
    machine.measure(load, Span::from_millis(5), Span::from_millis(20)).unwrap()
}

#[test]
fn a_mapped_doorbell_never_exits_and_any_other_always_does() {
    for load in LOADS {
        for doorbell in WAYS {
            let Found { doorbells, exits, .. } = found(1, doorbell, load);
            assert!(doorbells > 300.0, "{load:?} {doorbell:?}: {doorbells}");
            let expected = if doorbell == Doorbell::Memory { 0.0 } else { doorbells };
            assert_eq!(exits.to_bits(), expected.to_bits(), "{load:?} {doorbell:?}");
        }
    }
}

#[test]
fn a_sender_of_datagrams_rings_for_each() {
    let doorbells = found(1, Doorbell::Memory, Load::Datagrams).doorbells;
    assert!((1_000.0..1_050.0).contains(&doorbells), "and once for each interrupt: {doorbells}");
}

#[test]
fn a_mapped_page_beats_a_posted_message_which_beats_an_answered_one() {
    for load in [Load::Stream, Load::Datagrams] {
        let throughput = WAYS.map(|doorbell| found(1, doorbell, load).throughput_gbps);
        assert!(throughput.is_sorted_by(|one, next| one > next), "{load:?}: {throughput:?}");
    }
    let trips = WAYS.map(|doorbell| found(1, doorbell, Load::Requests).round_trip_us);
    assert!(trips[0] < trips[1] && trips[0] < trips[2], "{trips:?}");
}

#[test]
fn queue_pairs_with_mapped_doorbells_share_nothing() {
    for load in [Load::Stream, Load::Datagrams] {
        let one = found(1, Doorbell::Memory, load).throughput_gbps;
        for pairs in [2, 4] {
            let times = found(pairs, Doorbell::Memory, load).throughput_gbps / one;
            assert!((times - f64::from(pairs)).abs() < 0.1, "{load:?}: {pairs} pairs are {times} times one");
        }
    }
}

#[test]
fn the_courier_limits_all_pairs() {
    let [two, four] = [2, 4].map(|pairs| found(pairs, Doorbell::Posted, Load::Datagrams).throughput_gbps);
    assert!(four < two * 1.1, "{two} and {four}");
}

#[test]
fn a_number_of_pairs_that_memory_has_no_room_for_is_refused() {
    for pairs in [0, 5] {
        let error = Queues::new(&plan(pairs, Doorbell::Memory, Load::Stream)).unwrap_err();
        assert_eq!(error, format!("{pairs} queue pairs: there is room for 1 to 4"));
    }
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let story = || {
        let mut machine = Queues::new(&plan(4, Doorbell::Posted, Load::Stream)).unwrap();
        let found = machine.measure(Load::Stream, Span::ZERO, Span::from_millis(2)).unwrap();
        (machine.hash(), machine.events(), format!("{found:?}"))
    };
    assert_eq!(story(), story());
}
