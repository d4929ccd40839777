//! Announcements of guests that have moved to this host.

use crate::address;
use crate::exchange::datagram;
use crate::machine::{MODERN, TestMachine};
use plane::PortIndex;
use plane::guard::{GuardedPlane, PortGuard};
use units::{MacAddress, WorkCost};
use virtio::net::NetHeader;
use virtio_nic::{KnownGuest, VfRules, VlanMembership};

/// Returns the RARP request of an address (RFC 903), with VLAN 5 if `tagged`.
fn request(address: [u8; 6], tagged: bool) -> Vec<u8> {
    let tag: &[u8] = if tagged { &[0x81, 0, 0, 5] } else { &[] };
    let parts: [&[u8]; 6] =
        [&[0xff; 6], &address, tag, &[0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3], &address, &[0; 4]];
    let mut frame = [&parts.concat()[..], &address].concat();
    frame.resize(60 + tag.len(), 0);
    frame
}

fn rules(addresses: Vec<MacAddress>) -> VfRules {
    VfRules { addresses, spoof_check: true, ..VfRules::default() }
}

#[test]
fn announcement_reaches_uplink_and_other_vfs_once() {
    let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN)]);
    machine.post(1, &[&[1536][..]; 2]);
    let wanted = request(address(0), false);
    // A storm of requests is one announcement.
    (0..100).for_each(|_| machine.nic.announce(0, MacAddress(address(0))));
    machine.poll(0);
    machine.poll(0);
    assert_eq!(machine.wire.sent, std::slice::from_ref(&wanted));
    let received = machine.received(1);
    assert_eq!((received.len(), &received[0].1), (1, &wanted));
}

#[test]
fn announcements_keep_to_the_rate_of_their_vf() {
    let mut machine = TestMachine::new(&[(false, MODERN)]);
    machine.nic.set_rules(0, VfRules { max_tx_rate: 1, ..rules(vec![MacAddress(address(0))]) });
    // 64 bytes take 512 us at 1 Mb/s.
    for micros in 0..10_000 {
        machine.nic.announce(0, MacAddress(address(0)));
        machine.poll(micros * 1000);
    }
    assert!((18..=21).contains(&machine.wire.sent.len()), "{} announcements", machine.wire.sent.len());
    let sent = machine.wire.sent.len();
    let due = machine.nic.due().expect("an announcement waits");
    machine.poll(due.as_nanos());
    assert_eq!(machine.wire.sent.len(), sent + 1);
    // The transmit ring, which has no frame, is looked at when the rate permits one.
    machine.poll(machine.nic.due().unwrap().as_nanos());
    assert_eq!((machine.nic.due(), machine.wire.sent.len()), (None, sent + 1));
}

#[test]
fn announcements_are_charged_for_their_copies() {
    let mut machine = TestMachine::new(&[(false, MODERN); 60]);
    (0..60).for_each(|vf| machine.nic.set_rules(vf, rules(vec![MacAddress(address(vf))])));
    machine.plane.shares.set_quantum(WorkCost(30));
    // The first poll makes the tables.
    machine.poll(0);
    for _ in 0..100 {
        machine.nic.announce(0, MacAddress(address(0)));
        machine.poll_once(0, 64);
    }
    // An announcement costs some 120 units: the frame, and 2 for each of 59 VFs.
    assert!((23..=27).contains(&machine.wire.sent.len()), "{} announcements", machine.wire.sent.len());
    assert!(machine.poll_once(0, 64), "an announcement waits for credit");
}

#[test]
fn announcement_leaves_beside_a_ring_that_stays_full() {
    let mut machine = TestMachine::new(&[(false, MODERN)]);
    machine.nic.set_rules(0, rules(vec![MacAddress(address(0))]));
    machine.plane.shares.set_quantum(WorkCost(30));
    let frame = datagram(0, 9, &[7; 1000]);
    for round in 0..40 {
        machine.finished(0);
        while machine.send(0, NetHeader::default(), &frame, &[]) {}
        if round == 20 {
            machine.nic.announce(0, MacAddress(address(0)));
        }
        assert!(machine.poll_once(0, 64), "the ring has more frames than a round's credit pays for");
    }
    let (announced, others): (Vec<_>, Vec<_>) =
        machine.wire.sent.iter().partition(|sent| **sent == request(address(0), false));
    assert!(announced.len() == 1 && others.len() > 40, "{} and {}", announced.len(), others.len());
}

#[test]
fn announcement_has_the_port_vlan() {
    let mut machine = TestMachine::new(&[(false, MODERN)]);
    let rules = VfRules { vlans: VlanMembership::Port(5), ..rules(vec![MacAddress(address(0))]) };
    machine.nic.set_rules(0, rules);
    machine.nic.announce(0, MacAddress(address(0)));
    machine.poll(0);
    assert_eq!(machine.wire.sent, [request(address(0), true)]);
}

#[test]
fn vf_without_an_address_has_the_announced_one() {
    let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN)]);
    machine.nic.set_rules(0, rules(vec![]));
    machine.nic.announce(0, MacAddress(address(7)));
    machine.poll(0);
    assert_eq!(machine.nic.address(0), Some(MacAddress(address(7))));
    assert_eq!(machine.wire.sent, [request(address(7), false)]);
}

#[test]
fn announcement_of_a_foreign_address_is_dropped_as_spoofed() {
    let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN)]);
    for before in [vec![MacAddress(address(0))], vec![]] {
        machine.nic.set_rules(0, rules(before.clone()));
        machine.nic.announce(0, MacAddress(address(1)));
        machine.poll(0);
        assert_eq!((machine.wire.sent.len(), machine.nic.address(0)), (0, before.first().copied()));
    }
}

#[test]
fn announcement_of_a_group_disabled_or_missing_vf_is_ignored() {
    let mut machine = TestMachine::new(&[(false, MODERN)]);
    for (vf, announced) in [(0, MacAddress::BROADCAST), (0, MacAddress::ZERO), (9, MacAddress(address(0)))] {
        machine.nic.announce(vf, announced);
    }
    machine.nic.announce(0, MacAddress(address(0)));
    machine.nic.reset(0);
    machine.poll(0);
    machine.nic.set_rules(0, VfRules { enabled: false, ..rules(vec![MacAddress(address(0))]) });
    machine.nic.announce(0, MacAddress(address(0)));
    machine.poll(0);
    assert_eq!(machine.wire.sent.len(), 0);
}

/// Creates a card with a VF without a guest. The address of the guest that comes next is that of a station beyond the uplink. Also
/// returns the positions at which the guest's rings were on another card.
fn card_before_an_arrival() -> (TestMachine, [u32; 2]) {
    let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN)]);
    machine.post(0, &[&[1536][..]; 4]);
    for n in 0..3 {
        machine.wire.arriving.push_back(datagram(9, 0, &[n]));
        assert!(sends(&mut machine));
    }
    let bases = [0, 1].map(|ring| machine.nic.stop_ring(0, ring));
    let guard = || PortGuard { checks_claims: true, ..PortGuard::default() };
    machine.plane.set_guards(&[guard(), guard()], &[], 1);
    leave(&mut machine);
    machine.plane.release_claims(PortIndex::of_field(0));
    machine.wire.arriving.push_back(datagram(0, 9, b"station"));
    machine.poll(0);
    (machine, bases)
}

/// Resets the device of VF 0, as after a connection.
fn leave(machine: &mut TestMachine) {
    machine.nic.reset(0);
    machine.nic.set_rules(0, rules(Vec::new()));
    machine.nic.set_features(0, MODERN);
}

fn start_rings(machine: &mut TestMachine, bases: [u32; 2]) {
    (0..).zip(bases).for_each(|(ring, base)| machine.start_as(0, ring, Some(base), base != 0).unwrap());
}

/// Has the guest of VF 0 send a frame, and returns true if the frame left by the uplink.
fn sends(machine: &mut TestMachine) -> bool {
    assert!(machine.send(0, NetHeader::default(), &datagram(0, 9, b"guest"), &[]));
    machine.poll(0);
    machine.finished(0);
    !std::mem::take(&mut machine.wire.sent).is_empty()
}

#[test]
fn guest_of_another_process_keeps_its_address_or_brings_it() {
    let mac = Some(MacAddress(address(0)));
    for guest in [
        KnownGuest { address: mac, has_arrived: false },
        KnownGuest { address: None, has_arrived: true },
        KnownGuest::default(),
    ] {
        let (mut machine, bases) = card_before_an_arrival();
        machine.nic.continue_guest(0, guest);
        assert_eq!(machine.nic.known_guest(0), guest);
        for (ring, base) in (0..).zip(bases) {
            machine.nic.continue_ring(0, ring, base);
            machine.start(0, ring, None).unwrap();
        }
        // The address of an earlier process is asked for in the tables, and that of a station is refused there.
        assert_eq!(sends(&mut machine), guest.has_arrived, "{guest:?}");
    }
}

#[test]
fn guest_of_another_process_keeps_the_address_promised_to_it() {
    let mac = MacAddress(address(0));
    for (promised_to, kept) in [(0, Some(mac)), (1, None)] {
        let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN)]);
        let promised = VfRules { promised: Some(mac), ..VfRules::default() };
        machine.nic.set_rules(0, VfRules::default());
        machine.nic.set_rules(promised_to, promised);
        machine.nic.continue_guest(0, KnownGuest { address: Some(mac), has_arrived: false });
        assert_eq!(machine.nic.address(0), kept, "promised to VF {promised_to}");
    }
}

#[test]
fn guest_that_has_moved_here_brings_its_address() {
    let (mut machine, bases) = card_before_an_arrival();
    start_rings(&mut machine, bases);
    assert!(sends(&mut machine));
    // So does one that its VMM announces.
    let (mut machine, bases) = card_before_an_arrival();
    start_rings(&mut machine, bases);
    machine.nic.announce(0, MacAddress(address(0)));
    machine.poll(0);
    machine.poll(0);
    assert_eq!(machine.wire.sent, [request(address(0), false)]);
}

#[test]
fn guest_that_starts_here_gets_no_address_of_a_station() {
    let (mut machine, _) = card_before_an_arrival();
    (0..2).for_each(|ring| machine.restart(0, ring));
    assert!(!sends(&mut machine));
    // Nor if it stops and starts its rings.
    let bases = [0, 1].map(|ring| machine.nic.stop_ring(0, ring));
    assert_ne!(bases[1], 0);
    start_rings(&mut machine, bases);
    assert!(!sends(&mut machine));
    // Nor if it has the host end the connection.
    let bases = [0, 1].map(|ring| machine.nic.stop_ring(0, ring));
    leave(&mut machine);
    machine.nic.expect_same_guest(0);
    start_rings(&mut machine, bases);
    assert!(!sends(&mut machine));
}
