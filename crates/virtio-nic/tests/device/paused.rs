//! Packets that wait for their VF's rate between two of their segments.

use crate::address;
use crate::machine::{MODERN, TestMachine};
use crate::offloads::{TSO, large_packet};
use plane::PortIndex;
use units::MacAddress;
use virtio_nic::{Nic, PausedPacket, VfRules};

/// Returns a machine whose guest 0 may send 10 Mb/s, with a packet of nine segments that waits after its first.
fn with_paused_packet(packed: bool) -> TestMachine {
    let mut machine = TestMachine::new(&[(packed, MODERN), (false, MODERN)]);
    machine.post(1, &[&[1600][..]; 20]);
    let addresses = vec![MacAddress(address(0))];
    machine.nic.set_rules(0, VfRules { addresses, max_tx_rate: 10, ..VfRules::default() });
    let payload: Vec<u8> = (0..12_000_u32).map(|at| (at / 7) as u8).collect();
    assert!(machine.send(0, TSO, &large_packet(0, 1, &payload), &[]));
    machine.poll(0);
    machine
}

/// Returns the frames that guest 1 has received when no frame waits any more.
fn all_received(machine: &mut TestMachine) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some(due) = machine.nic.due() {
        machine.poll(due.as_nanos());
    }
    frames.extend(machine.received(1).into_iter().map(|(_, frame, _)| frame));
    frames
}

#[test]
fn paused_packet_continues_on_another_card() {
    for packed in [false, true] {
        let expected = all_received(&mut with_paused_packet(packed));
        assert_eq!(expected.len(), 9);
        let mut machine = with_paused_packet(packed);
        let (paused, rules) = (machine.nic.paused_packet(0).unwrap(), machine.nic.rules(0).cloned().unwrap());
        let positions = [0, 1].map(|vf| [0, 1].map(|ring| machine.nic.stop_ring(vf, ring)));
        let first = machine.received(1);
        machine.nic = Nic::new(2);
        machine.nic.set_rules(0, rules);
        machine.nic.set_rules(1, VfRules { addresses: vec![MacAddress(address(1))], ..VfRules::default() });
        assert!(machine.nic.continue_packet(0, &paused));
        for (vf, positions) in (0..).zip(positions) {
            machine.nic.set_features(vf, MODERN);
            for (ring, position) in (0..).zip(positions) {
                machine.start(vf, ring, Some(position)).unwrap();
            }
        }
        machine.poll(0);
        let mut received: Vec<_> = first.into_iter().map(|(_, frame, _)| frame).collect();
        received.extend(all_received(&mut machine));
        assert!(received == expected, "{} of {} frames", received.len(), expected.len());
        assert_eq!(machine.nic.paused_packet(0), None);
    }
}

/// Returns the number of unclaimed packets of VF 0 after a round.
fn unclaimed(machine: &mut TestMachine) -> u64 {
    machine.poll(0);
    machine.plane.ledger.of(PortIndex::of_field(0)).tx_unclaimed
}

/// A driver that begins a ring anew, as after a reboot, is another one than the driver that sent the packet.
#[test]
fn next_driver_sends_no_packet_of_the_former_one() {
    for packed in [false, true] {
        let mut machine = with_paused_packet(packed);
        let positions = [0, 1].map(|ring| machine.nic.stop_ring(0, ring));
        assert!(machine.nic.paused_packet(0).is_some(), "the guest may be paused alone");
        machine.restart(0, 0);
        machine.restart(0, 1);
        assert_eq!((machine.nic.paused_packet(0), unclaimed(&mut machine)), (None, 1), "{positions:x?}");
        assert_eq!(unclaimed(&mut machine), 1);
    }
}

/// Without an address each of its segments would count as spoofed, and the guest as an offender.
#[test]
fn packet_without_an_address_is_dropped_and_counted_once() {
    let mut machine = with_paused_packet(false);
    let rules = VfRules { max_tx_rate: 10, spoof_check: true, ..VfRules::default() };
    machine.nic.set_rules(0, rules);
    let positions = [0, 1].map(|ring| machine.nic.stop_ring(0, ring));
    for (ring, position) in (0..).zip(positions) {
        machine.start(0, ring, Some(position)).unwrap();
    }
    assert_eq!((unclaimed(&mut machine), machine.nic.paused_packet(0)), (1, None));
    machine.poll(1_000_000_000);
    let counters = machine.plane.ledger.of(PortIndex::of_field(0));
    assert_eq!((counters.tx_spoofed, counters.tx_unclaimed), (0, 1));
}

#[test]
fn reset_device_counts_its_paused_packet_as_dropped() {
    let mut machine = with_paused_packet(false);
    machine.nic.reset(0);
    assert_eq!(unclaimed(&mut machine), 1);
}

#[test]
fn disabled_ring_counts_its_paused_packet_as_dropped() {
    let mut machine = with_paused_packet(false);
    machine.nic.enable_ring(0, 1, false);
    machine.poll(1_000_000_000);
    assert_eq!((machine.nic.paused_packet(0), unclaimed(&mut machine)), (None, 1));
}

/// The same driver continues, as after guest memory was added.
#[test]
fn paused_ring_keeps_its_paused_packet() {
    let expected = all_received(&mut with_paused_packet(true));
    let mut machine = with_paused_packet(true);
    machine.nic.pause_ring(0, 1);
    machine.start(0, 1, None).unwrap();
    assert_eq!(unclaimed(&mut machine), 0);
    assert!(all_received(&mut machine) == expected);
}

#[test]
fn paused_packet_that_no_ring_can_have_is_refused() {
    let paused = with_paused_packet(false).nic.paused_packet(0).unwrap();
    assert_eq!((paused.queue, paused.sent, usize::from(paused.segment_size)), (0, 1, 1_448));
    let with = |change: fn(&mut PausedPacket)| {
        let mut changed = paused.clone();
        change(&mut changed);
        changed
    };
    let unsound = [
        with(|packet| packet.queue = 16),
        with(|packet| packet.sent = 0),
        with(|packet| packet.sent = 9),
        with(|packet| packet.segment_size = 0),
        with(|packet| packet.segment_size = u16::MAX),
        with(|packet| packet.bytes.truncate(40)),
        with(|packet| packet.bytes.clear()),
        with(|packet| packet.bytes.resize(65_535 + 100, 0)),
        // UDP.
        with(|packet| packet.bytes[23] = 17),
    ];
    let mut nic = Nic::new(1);
    for packet in &unsound {
        assert!(!nic.continue_packet(0, packet), "{}", packet.sent);
    }
    assert!(nic.paused_packet(0).is_none());
    assert!(!nic.continue_packet(1, &paused), "the card has no such VF");
    assert!(nic.continue_packet(0, &paused));
    assert!(!nic.continue_packet(0, &paused), "a packet is paused already");
}
