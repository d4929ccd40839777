//! Tests that TCP segments of a burst reach a driver that takes unsegmented packets as one packet, and that none is lost for it.

use crate::address;
use crate::exchange::datagram;
use crate::machine::{MODERN, Received, TestMachine};
use crate::offloads::{TSO, large_packet};
use offload::uncut;
use plane::PortIndex;
use units::MacAddress;
use virtio::VirtioFeatures;
use virtio::net::{NetHeader, flag, gso};
use virtio_nic::{VfRules, VlanMembership};

/// Features of a driver that takes unsegmented packets.
const TAKES: VirtioFeatures = MODERN.with(VirtioFeatures::GUEST_TSO4).with(VirtioFeatures::GUEST_TSO6);
/// Bytes of a segment's payload.
const MSS: u16 = 1448;

/// Returns a machine whose one guest has these features and buffers, with or without joining.
fn machine(packed: bool, features: VirtioFeatures, buffers: &[&[u32]], joins: bool) -> TestMachine {
    let mut machine = TestMachine::new(&[(packed, features)]);
    machine.nic.coalesce_segments(joins);
    machine.post(0, buffers);
    machine
}

/// Returns the segments of a packet to VF 0, the last one with PSH.
fn segments(payload: &[u8]) -> Vec<Vec<u8>> {
    cut(&large_packet(9, 0, payload), MSS)
}

fn cut(packet: &[u8], mss: u16) -> Vec<Vec<u8>> {
    let mut packet = packet.to_vec();
    let layout = uncut::arrived(&mut packet, true, mss, 9000).unwrap();
    let mut segments = uncut::segments(&layout, &packet).unwrap();
    let mut place = [0; 9000];
    std::iter::from_fn(|| segments.write_next(&mut place).map(|length| place[..length].to_vec())).collect()
}

/// Returns all frames of what a driver has received, those of unsegmented packets cut.
fn frames(received: &[Received]) -> Vec<Vec<u8>> {
    let cut = |(header, bytes, _): &Received| match header.gso_type {
        gso::TCPV4 => cut(bytes, header.gso_size),
        _ => vec![bytes.clone()],
    };
    received.iter().flat_map(cut).collect()
}

fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n % 251) as u8).collect()
}

/// Returns received frames and bytes of VF 0, and the frames that found no buffer.
fn counted(machine: &mut TestMachine) -> (u64, u64, u64) {
    let port = PortIndex::of_field(0);
    machine.plane.ledger.settle_received(port);
    let counters = machine.plane.ledger.of(port);
    (counters.rx_packets, counters.rx_bytes, counters.rx_no_descriptors)
}

#[test]
fn segments_of_a_burst_reach_their_driver_as_one_packet() {
    for packed in [false, true] {
        let mut machine = machine(packed, TAKES, &[&[1600][..]; 30], true);
        machine.wire.arriving.extend(segments(&payload(20_000)));
        machine.poll(0);
        let received = machine.received(0);
        let [(header, bytes, buffers)] = &received[..] else { panic!("{} packets", received.len()) };
        assert_eq!((bytes, *buffers), (&large_packet(9, 0, &payload(20_000)), 13));
        assert_eq!(*header, NetHeader { buffers: 13, ..TSO });
        assert_eq!(counted(&mut machine), (14, 20_000 + 14 * 54, 0));
        let device = machine.nic.counters(0).unwrap();
        assert_eq!((device.coalesced_packets, device.coalesced_frames, device.passed_uncut), (1, 14, 0));
        assert_eq!(device.calls, 1);
    }
}

#[test]
fn segments_are_joined_in_one_large_buffer_too() {
    let features = TAKES.without(VirtioFeatures::MRG_RXBUF);
    let mut machine = machine(false, features, &[&[10_000][..]; 2], true);
    machine.wire.arriving.extend(segments(&payload(9_000)));
    machine.poll(0);
    let received = machine.received(0);
    assert_eq!((received.len(), received[0].0.buffers), (1, 1));
    assert_eq!(frames(&received), segments(&payload(9_000)));
}

#[test]
fn segments_stay_apart_unless_driver_and_port_join_them() {
    let without_checksum = TAKES.without(VirtioFeatures::GUEST_CSUM);
    for (features, joins) in [(TAKES, false), (MODERN, true), (without_checksum, true)] {
        let mut machine = machine(false, features, &[&[1600][..]; 20], joins);
        let sent = segments(&payload(10_000));
        machine.wire.arriving.extend(sent.clone());
        machine.poll(0);
        let received = machine.received(0);
        assert!(received.iter().map(|(_, bytes, _)| bytes).eq(&sent));
        assert_eq!(machine.nic.counters(0).unwrap().coalesced_packets, 0);
    }
}

#[test]
fn single_segment_is_delivered_at_the_end_of_its_burst() {
    let mut machine = machine(false, TAKES, &[&[1600][..]; 20], true);
    let sent = segments(&payload(6 * usize::from(MSS)));
    for (end, count) in [(1, 1), (4, 3), (6, 2)] {
        machine.wire.arriving.extend(sent[end - count..end].to_vec());
        machine.poll(0);
        let received = machine.received(0);
        assert_eq!(received.len(), 1);
        let expected =
            if count == 1 { (flag::DATA_VALID, gso::NONE) } else { (flag::NEEDS_CSUM, gso::TCPV4) };
        assert_eq!((received[0].0.flags, received[0].0.gso_type), expected);
        assert_eq!(frames(&received), sent[end - count..end]);
    }
    assert_eq!(counted(&mut machine).0, 6);
}

#[test]
fn segments_in_a_port_vlan_are_joined_without_their_tag() {
    let mut machine = machine(false, TAKES, &[&[1600][..]; 20], true);
    let addresses = vec![MacAddress(address(0))];
    let rules = VfRules { addresses, vlans: VlanMembership::Port(7), ..VfRules::default() };
    machine.nic.set_rules(0, rules);
    let sent = segments(&payload(5_000));
    let tagged = sent.iter().map(|frame| [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat());
    machine.wire.arriving.extend(tagged);
    machine.poll(0);
    let received = machine.received(0);
    assert_eq!((received.len(), frames(&received)), (1, sent));
    assert_eq!(counted(&mut machine), (4, 5_000 + 4 * 54, 0));
}

#[test]
fn segments_in_a_guest_vlan_are_joined_with_their_tag() {
    let mut machine = machine(false, TAKES, &[&[1600][..]; 20], true);
    let sent = segments(&payload(5_000));
    let tagged = sent.iter().map(|frame| [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat());
    machine.wire.arriving.extend(tagged);
    machine.poll(0);
    let received = machine.received(0);
    let [(header, bytes, _)] = &received[..] else { panic!("{} packets", received.len()) };
    assert_eq!((header.checksum_start, header.header_length, &bytes[12..16]), (38, 58, &[0x81, 0, 0, 7][..]));
    assert_eq!(bytes[58..], payload(5_000));
    assert_eq!(counted(&mut machine), (4, 5_000 + 4 * 58, 0));
}

#[test]
fn packet_without_enough_buffers_is_cut_again() {
    let mut machine = machine(false, TAKES, &[&[1600][..]; 5], true);
    let sent = segments(&payload(20_000));
    machine.wire.arriving.extend(sent.clone());
    machine.poll(0);
    let received = machine.received(0);
    assert!(received.iter().map(|(_, bytes, _)| bytes).eq(&sent[..5]));
    assert!(received.iter().all(|(header, ..)| header.flags == flag::DATA_VALID));
    assert_eq!(counted(&mut machine), (5, 5 * (54 + u64::from(MSS)), 9));
}

#[test]
fn wrong_checksum_reaches_the_driver_unchanged_and_in_order() {
    let mut machine = machine(false, TAKES, &[&[1600][..]; 30], true);
    let mut sent = segments(&payload(20_000));
    sent[5][200] ^= 1;
    machine.wire.arriving.extend(sent.clone());
    machine.poll(0);
    let received = machine.received(0);
    let kinds: Vec<_> = received.iter().map(|(header, ..)| header.flags).collect();
    assert_eq!(kinds, [flag::NEEDS_CSUM, 0, flag::NEEDS_CSUM]);
    assert_eq!(frames(&received), sent);
}

#[test]
fn frames_of_another_vf_pass_no_segment_of_the_same_port() {
    let mut machine = TestMachine::new(&[(false, TAKES), (false, MODERN)]);
    machine.nic.coalesce_segments(true);
    machine.post(0, &[&[1600][..]; 40]);
    let sent = segments(&payload(6_000));
    for round in 0..10 {
        machine.wire.arriving.extend(sent.clone());
        let own = datagram(1, 0, &[round; 300]);
        assert!(machine.send(1, NetHeader::default(), &own, &[]));
        machine.poll(0);
        let received = machine.received(0);
        assert_eq!(received.len(), 2);
        assert_eq!(frames(&received), [&sent[..], &[own]].concat());
        machine.post(0, &[&[1600][..]; 6]);
    }
}

#[test]
fn vf_may_disappear_between_two_bursts_of_segments() {
    let mut machine = machine(false, TAKES, &[&[1600][..]; 20], true);
    let sent = segments(&payload(5_000));
    machine.wire.arriving.extend(sent.clone());
    machine.nic.stop_ring(0, 0);
    machine.poll(0);
    assert_eq!(machine.received(0).len(), 0);
    let port = PortIndex::of_field(0);
    assert_eq!((counted(&mut machine).0, machine.plane.ledger.of(port).rx_disabled), (0, 4));
}
