//! Tests the policy of VFs: addresses, VLANs, checks, rates, and rings that a transport stops.

use crate::address;
use crate::driver::{load, store};
use crate::exchange::datagram;
use crate::machine::{MODERN, TestMachine};
use pcie::VfSet;
use plane::PortIndex;
use units::{MacAddress, VlanIds};
use virtio::net::NetHeader;
use virtio_nic::{VfRules, VlanMembership};

fn rules(n: u8) -> VfRules {
    VfRules { addresses: vec![MacAddress(address(n))], ..VfRules::default() }
}

fn tagged(frame: &[u8], tag: u16) -> Vec<u8> {
    [&frame[..12], &[0x81, 0], &tag.to_be_bytes(), &frame[12..]].concat()
}

fn machine() -> TestMachine {
    let mut machine = TestMachine::new(&[(false, MODERN), (true, MODERN), (false, MODERN)]);
    (0..3).for_each(|vf| machine.post(vf, &[&[1536][..]; 16]));
    machine
}

/// Collects the bytes of the frames that a guest has received.
fn frames(machine: &mut TestMachine, vf: u8) -> Vec<Vec<u8>> {
    machine.received(vf).into_iter().map(|(_, bytes, _)| bytes).collect()
}

#[test]
fn port_vlan_isolates_its_vfs_and_hides_the_tag_from_guests() {
    let mut machine = machine();
    for vf in [0, 1] {
        machine.nic.set_rules(vf, VfRules { vlans: VlanMembership::Port(7), ..rules(vf) });
    }
    let frame = datagram(0, 1, &[1; 100]);
    assert!(machine.send(0, NetHeader::default(), &frame, &[]));
    assert!(machine.send(0, NetHeader::default(), &datagram(0, 9, &[2; 100]), &[]));
    let mut untagged = VlanIds::new();
    untagged.insert(0);
    machine.nic.set_rules(2, VfRules { vlans: VlanMembership::Guest(Box::new(untagged)), ..rules(2) });
    assert!(machine.send(0, NetHeader::default(), &datagram(0, 2, &[3; 100]), &[]));
    machine.poll(0);
    let received = machine.received(1);
    assert_eq!((received.len(), &received[0].1), (1, &frame));
    assert_eq!(
        machine.wire.sent,
        [tagged(&datagram(0, 9, &[2; 100]), 7), tagged(&datagram(0, 2, &[3; 100]), 7)]
    );
    assert!(machine.received(2).is_empty());
}

#[test]
fn port_vlan_tag_has_its_priority_on_the_wire() {
    const TAG: u16 = 3 << 13 | 7;
    let mut machine = machine();
    for vf in [0, 1] {
        machine.nic.set_rules(vf, VfRules { vlans: VlanMembership::Port(TAG), ..rules(vf) });
    }
    let [out, across, back] = [(0, 9), (0, 1), (9, 1)].map(|(from, to)| datagram(from, to, &[1; 100]));
    assert!(machine.send(0, NetHeader::default(), &out, &[]));
    assert!(machine.send(0, NetHeader::default(), &across, &[]));
    // The other end of the wire has set another priority.
    machine.wire.arriving.push_back(tagged(&back, 5 << 13 | 7));
    machine.poll(0);
    assert_eq!(machine.wire.sent, [tagged(&out, TAG)]);
    let mut received = frames(&mut machine, 1);
    received.sort();
    let mut expected = [across, back];
    expected.sort();
    assert_eq!(received, expected);
}

/// `vlan 0 qos 5` of iproute2.
#[test]
fn vf_with_a_priority_alone_receives_frames_without_a_tag() {
    const TAG: u16 = 5 << 13;
    let mut machine = machine();
    machine.nic.set_rules(1, VfRules { vlans: VlanMembership::Port(TAG), ..rules(1) });
    let (to, from) = (datagram(0, 1, &[1; 100]), datagram(1, 9, &[2; 100]));
    let from_uplink = datagram(9, 1, &[3; 100]);
    assert!(machine.send(0, NetHeader::default(), &to, &[]));
    assert!(machine.send(1, NetHeader::default(), &from, &[]));
    machine.wire.arriving.extend([from_uplink.clone(), tagged(&from_uplink, TAG)]);
    machine.poll(0);
    let mut received = frames(&mut machine, 1);
    received.sort();
    let mut expected = [to, from_uplink.clone(), from_uplink];
    expected.sort();
    assert_eq!(received, expected);
    assert_eq!(machine.wire.sent, [tagged(&from, TAG)]);
}

#[test]
fn only_a_promiscuous_vf_gets_unknown_unicast_from_the_uplink() {
    let mut machine = machine();
    for promiscuous in [false, true, false] {
        machine.nic.set_rules(0, VfRules { promiscuous, ..rules(0) });
        let [unknown, known] = [7, 1].map(|to| datagram(9, to, &[2; 100]));
        machine.wire.arriving.extend([unknown.clone(), known.clone()]);
        machine.poll(0);
        let expected = if promiscuous { vec![unknown] } else { vec![] };
        assert_eq!(frames(&mut machine, 0), expected, "promiscuous {promiscuous}");
        assert_eq!((frames(&mut machine, 1), frames(&mut machine, 2)), (vec![known], vec![]));
    }
}

#[test]
fn vf_without_all_multicast_gets_broadcasts_only() {
    let groups = [[0xff; 6], [1, 0, 0x5e, 0, 0, 0xfb], [0x33, 0x33, 0, 0, 0, 1]];
    let group_frame = |from, group: &[u8; 6]| [group, &datagram(from, 0, &[3; 100])[6..]].concat();
    for all_multicast in [false, true] {
        let mut machine = machine();
        machine.nic.set_rules(1, VfRules { all_multicast, ..rules(1) });
        for from in [0, 9] {
            let sent: Vec<_> = groups.iter().map(|group| group_frame(from, group)).collect();
            for frame in &sent {
                match from {
                    0 => assert!(machine.send(0, NetHeader::default(), frame, &[])),
                    _ => machine.wire.arriving.push_back(frame.clone()),
                }
            }
            machine.poll(0);
            let expected = if all_multicast { &sent[..] } else { &sent[..1] };
            assert_eq!(frames(&mut machine, 1), expected, "all_multicast {all_multicast}, from {from}");
            assert_eq!(frames(&mut machine, 2), sent, "from {from}");
        }
    }
}

#[test]
fn vlan_tag_sent_by_a_guest_stays_in_the_frame() {
    let mut machine = machine();
    let frame = tagged(&datagram(0, 1, &[1; 100]), 5);
    assert!(machine.send(0, NetHeader::default(), &frame, &[]));
    machine.poll(0);
    assert_eq!(machine.received(1)[0].1, frame);
}

#[test]
fn spoofed_source_address_is_dropped_and_counted() {
    let mut machine = machine();
    machine.nic.set_rules(0, VfRules { spoof_check: true, ..rules(0) });
    assert!(machine.send(0, NetHeader::default(), &datagram(5, 1, &[1; 100]), &[]));
    assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[2; 100]), &[]));
    machine.poll(0);
    assert_eq!(machine.received(1).len(), 1);
    assert_eq!(machine.plane.ledger.of(PortIndex::of_field(0)).tx_spoofed, 1);
}

#[test]
fn vf_with_spoof_check_sends_into_its_own_vlans_only() {
    let (mut machine, mut vlans) = (machine(), VlanIds::new());
    vlans.insert(7);
    let vlans = VlanMembership::Guest(Box::new(vlans));
    machine.nic.set_rules(0, VfRules { spoof_check: true, vlans, ..rules(0) });
    let [own, foreign] = [7, 8].map(|vlan| tagged(&datagram(0, 9, &[1; 100]), vlan));
    assert!(machine.send(0, NetHeader::default(), &foreign, &[]));
    assert!(machine.send(0, NetHeader::default(), &own, &[]));
    machine.poll(0);
    assert_eq!(machine.wire.sent, [own]);
    assert_eq!(machine.plane.ledger.of(PortIndex::of_field(0)).tx_spoofed, 1);
}

#[test]
fn vf_with_spoof_check_cannot_use_the_mac_address_of_another() {
    let promised = VfRules { promised: Some(MacAddress(address(1))), ..VfRules::default() };
    for owner in [rules(1), promised] {
        let mut machine = machine();
        machine.nic.set_rules(0, VfRules { spoof_check: true, ..VfRules::default() });
        machine.nic.set_rules(1, owner);
        assert!(machine.send(0, NetHeader::default(), &datagram(1, 2, &[1; 100]), &[]));
        machine.poll(0);
        assert_eq!((machine.nic.address(0), machine.received(2).len()), (None, 0));
        assert!(machine.send(0, NetHeader::default(), &datagram(0, 2, &[1; 100]), &[]));
        machine.poll(0);
        assert_eq!(machine.nic.address(0), Some(MacAddress(address(0))));
        assert_eq!(machine.received(2).len(), 1, "its own address is free");
        assert!(machine.send(1, NetHeader::default(), &datagram(1, 2, &[1; 100]), &[]));
        machine.poll(0);
        assert_eq!((machine.nic.address(1), machine.received(2).len()), (Some(MacAddress(address(1))), 1));
    }
}

#[test]
fn vf_without_a_mac_address_learns_that_of_its_first_frame() {
    let mut machine = machine();
    machine.nic.set_rules(0, VfRules::default());
    assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[1; 100]), &[]));
    machine.poll(0);
    assert_eq!(machine.nic.address(0), Some(MacAddress(address(0))));
    assert!(machine.send(1, NetHeader::default(), &datagram(1, 0, &[2; 100]), &[]));
    machine.poll(0);
    assert_eq!((machine.received(1).len(), machine.received(0).len()), (1, 1));
    assert!(machine.wire.sent.is_empty());
}

/// A VMM pauses the rings of a running driver when guest memory is added, and when a migration begins.
#[test]
fn paused_rings_keep_the_address_of_their_driver() {
    let mut machine = machine();
    machine.nic.set_rules(0, VfRules::default());
    assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[1; 100]), &[]));
    machine.poll(0);
    for ring in 0..2 {
        machine.nic.pause_ring(0, ring);
    }
    assert!(machine.nic.take_changed().is_none(), "the switch's tables stay");
    for ring in 0..2 {
        machine.start(0, ring, None).unwrap();
    }
    // Guest 0 is silent, as a server that waits.
    assert!(machine.send(1, NetHeader::default(), &datagram(1, 0, &[2; 100]), &[]));
    machine.poll(0);
    assert_eq!(machine.received(0).len(), 1);
    assert_eq!(machine.nic.address(0), Some(MacAddress(address(0))));
}

#[test]
fn changed_tables_name_the_vfs_whose_guests_have_changed_them() {
    let mut machine = machine();
    machine.poll(0);
    let mut changed_by = |act: &mut dyn FnMut(&mut TestMachine)| {
        act(&mut machine);
        let changed_by = machine.nic.take_changed();
        machine.nic.apply_policy(&mut machine.plane, &machine.mirrors);
        changed_by.map(VfSet::bits)
    };
    let no_address = |machine: &mut TestMachine| machine.nic.set_rules(0, VfRules::default());
    assert_eq!(changed_by(&mut |_| ()), None);
    assert_eq!(changed_by(&mut { no_address }), Some(0), "the administrator's change");
    let first_frame = |machine: &mut TestMachine| {
        assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[1; 100]), &[]));
        machine.poll_once(0, 1);
    };
    assert_eq!(changed_by(&mut { first_frame }), Some(0b1));
    assert_eq!(
        changed_by(&mut |machine| (0..2).for_each(|ring| _ = machine.nic.stop_ring(0, ring))),
        Some(0b1)
    );
    let announced = |machine: &mut TestMachine| {
        machine.nic.announce(0, MacAddress(address(0)));
        machine.poll_once(0, 1);
    };
    assert_eq!(changed_by(&mut { announced }), Some(0b1));
    assert_eq!(changed_by(&mut |machine| [1, 2].iter().for_each(|vf| machine.nic.reset(*vf))), Some(0b110));
}

#[test]
fn first_frame_published_during_a_poll_is_not_dropped() {
    for accesses in 0..20 {
        let mut machine = machine();
        machine.nic.set_rules(0, VfRules { spoof_check: true, ..VfRules::default() });
        let index = machine.guests[0].rings[1].addresses().driver + 2;
        assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[1; 100]), &[]));
        let published: [u8; 2] = load(&machine.bus.memories[0], index);
        store(&mut machine.bus.memories[0], index, &[0; 2]);
        machine.bus.late = Some((machine.bus.accesses + accesses, 0, index, published.to_vec()));
        machine.poll(0);
        store(&mut machine.bus.memories[0], index, &published);
        machine.nic.kick(0, 1);
        machine.poll(0);
        assert_eq!(machine.received(1).len(), 1, "{accesses} accesses before the driver's");
    }
}

#[test]
fn vf_does_not_learn_the_mac_address_of_another_vf() {
    let mut machine = machine();
    machine.nic.set_rules(0, VfRules::default());
    machine.nic.set_rules(2, VfRules::default());
    assert!(machine.send(0, NetHeader::default(), &datagram(1, 9, &[1; 100]), &[]));
    machine.poll(0);
    assert!(machine.send(2, NetHeader::default(), &datagram(2, 1, &[2; 100]), &[]));
    assert!(machine.send(2, NetHeader::default(), &datagram(1, 9, &[3; 100]), &[]));
    machine.poll(0);
    assert_eq!([0, 1, 2].map(|vf| machine.received(vf).len()), [0, 1, 0]);
    assert_eq!((machine.nic.address(0), machine.nic.address(2)), (None, Some(MacAddress(address(2)))));
    // The address of the next frame may be learned; that of VF 2 is taken meanwhile.
    for from in [2, 5] {
        assert!(machine.send(0, NetHeader::default(), &datagram(from, 9, &[1; 100]), &[]));
        machine.poll(0);
    }
    assert_eq!(machine.nic.address(0), Some(MacAddress(address(5))));
    machine.nic.set_rules(1, rules(5));
    assert_eq!(machine.nic.address(0), None, "the administrator's word counts more");
}

#[test]
fn disabled_vf_moves_no_frame_and_returns_every_sent_chain() {
    let mut machine = machine();
    machine.nic.set_rules(0, VfRules { enabled: false, ..rules(0) });
    (0..40).for_each(|_| assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[1; 100]), &[])));
    assert!(machine.send(1, NetHeader::default(), &datagram(1, 0, &[2; 100]), &[]));
    machine.poll(0);
    assert_eq!(machine.finished(0), 40);
    assert!(machine.received(0).is_empty() && machine.received(1).is_empty());
}

#[test]
fn transmit_rate_delays_frames_until_their_due_time() {
    let mut machine = machine();
    machine.nic.set_rules(0, VfRules { max_tx_rate: 10, ..rules(0) });
    (0..10).for_each(|_| assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[1; 1000]), &[])));
    machine.poll(0);
    let first = machine.received(1).len();
    assert!(first < 10, "{first} frames left at once");
    let due = machine.nic.due().expect("the next frame has a time");
    machine.poll(due.as_nanos());
    assert!(!machine.received(1).is_empty());
    machine.poll(1_000_000_000);
    assert_eq!((machine.finished(0), machine.nic.due()), (10, None));
}

#[test]
fn restarted_ring_continues_at_its_saved_position() {
    for vf in [0, 1] {
        let mut machine = machine();
        let to = 1 - vf;
        assert!(machine.send(vf, NetHeader::default(), &datagram(vf, to, &[1; 100]), &[]));
        machine.poll(0);
        let position = machine.nic.stop_ring(vf, 1);
        assert_eq!(position, if vf == 0 { 1 } else { 0x8001_8001 });
        assert!(machine.send(vf, NetHeader::default(), &datagram(vf, to, &[2; 100]), &[]));
        machine.poll(0);
        assert_eq!(machine.received(to).len(), 1, "a stopped ring sends nothing");
        machine.start(vf, 1, Some(position)).unwrap();
        machine.poll(0);
        assert_eq!((machine.received(to).len(), machine.finished(vf)), (1, 2));
    }
}

#[test]
fn broadcast_in_a_port_vlan_reaches_guests_without_the_tag() {
    let mut machine = machine();
    for vf in [0, 1] {
        machine.nic.set_rules(vf, VfRules { vlans: VlanMembership::Port(7), ..rules(vf) });
    }
    let mut frame = datagram(0, 1, &[1; 100]);
    frame[..6].fill(0xff);
    assert!(machine.send(0, NetHeader::default(), &frame, &[]));
    machine.poll(0);
    machine.wire.arriving.push_back(tagged(&frame, 7));
    machine.poll(0);
    let received = machine.received(1);
    assert_eq!(received.iter().map(|(_, bytes, _)| bytes).collect::<Vec<_>>(), [&frame, &frame]);
}

#[test]
fn restarted_driver_may_use_another_mac_address() {
    let mut machine = machine();
    machine.nic.set_rules(0, VfRules { spoof_check: true, ..VfRules::default() });
    assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[1; 100]), &[]));
    machine.poll(0);
    assert_eq!(machine.nic.address(0), Some(MacAddress(address(0))));
    for ring in [0, 1] {
        machine.nic.stop_ring(0, ring);
    }
    assert_eq!(machine.nic.address(0), None);
    for ring in [0, 1] {
        machine.restart(0, ring);
    }
    assert!(machine.send(0, NetHeader::default(), &datagram(7, 1, &[2; 100]), &[]));
    machine.poll(0);
    assert_eq!((machine.received(1).len(), machine.nic.address(0)), (2, Some(MacAddress(address(7)))));
}

#[test]
fn packed_ring_continues_at_its_record_after_a_lost_device() {
    let mut machine = machine();
    assert!(machine.send(1, NetHeader::default(), &datagram(1, 0, &[1; 100]), &[]));
    machine.poll(0);
    assert_eq!((machine.received(0).len(), machine.finished(1)), (1, 1));
    machine.nic.reset(1);
    assert!(machine.send(1, NetHeader::default(), &datagram(1, 0, &[2; 100]), &[]));
    machine.nic.set_features(1, machine.guests[1].features);
    // QEMU starts the rings at their first position.
    for ring in [0, 1] {
        machine.start(1, ring, Some(0x8000_8000)).unwrap();
    }
    machine.poll(0);
    assert_eq!((machine.received(0).len(), machine.finished(1)), (1, 1));
    assert_eq!(machine.nic.stop_ring(1, 1), 0x8002_8002);
}

#[test]
fn mac_control_frame_from_the_uplink_reaches_no_guest() {
    let mut machine = TestMachine::new(&[(false, MODERN)]);
    machine.post(0, &[&[1536][..]; 2]);
    let mut pause = datagram(9, 0, &[0; 40]);
    // Ether type of MAC control (IEEE 802.3, 31.4.1.3).
    pause[12..14].copy_from_slice(&[0x88, 0x08]);
    machine.wire.arriving.extend([pause, datagram(9, 0, &[7; 40])]);
    machine.poll(0);
    let received = machine.received(0);
    assert_eq!(received.len(), 1);
    assert!(received[0].1.ends_with(&[7; 40]));
}
