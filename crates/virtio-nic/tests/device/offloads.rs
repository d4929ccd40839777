//! Tests checksums and segmentation that a driver leaves to the card.

use crate::address;
use crate::exchange::{datagram, pseudo};
use crate::machine::{MODERN, TestMachine};
use offload::{FrameHeaders, uncut, verify};
use plane::PortIndex;
use plane::frame::HEADROOM;
use units::MacAddress;
use virtio::VirtioFeatures;
use virtio::net::{NetHeader, flag, gso};
use virtio_nic::{DeviceCounters, VfRules, VlanMembership};

/// Header of a TCP packet that the card is to segment.
pub(crate) const TSO: NetHeader = NetHeader {
    flags: flag::NEEDS_CSUM,
    gso_type: gso::TCPV4,
    header_length: 54,
    gso_size: 1448,
    checksum_start: 34,
    checksum_offset: 16,
    buffers: 0,
};

/// Returns a TCP packet over IPv4 as Linux passes it to a device that segments it: with its whole length in the
/// headers, and the pseudo header's sum as its checksum.
pub(crate) fn large_packet(from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
    ip[2..4].copy_from_slice(&(40 + payload.len() as u16).to_be_bytes());
    let sum = offload::checksum::PartialChecksum::of(&ip).checksum();
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut tcp = vec![0x10, from, 0x20, to, 0, 0, 1, 0, 0, 0, 2, 0, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0];
    let seed = pseudo(&ip, 6, 20 + payload.len() as u32).value();
    tcp[16..18].copy_from_slice(&seed.to_be_bytes());
    [&address(to)[..], &address(from), &[8, 0], &ip, &tcp, payload].concat()
}

/// Returns the counters of a device that has sent one packet to segment, before the packet's outcome is counted.
fn large() -> DeviceCounters {
    DeviceCounters { checksums: 1, segmented: 1, ..DeviceCounters::default() }
}

/// Returns the counters of a sender's device, without notifications and interrupts.
fn sent_packets(machine: &TestMachine, vf: u8) -> DeviceCounters {
    DeviceCounters { kicks: 0, calls: 0, ..*machine.nic.counters(vf).unwrap() }
}

fn is_right(frame: &[u8]) -> bool {
    let headers = FrameHeaders::parse(frame);
    verify::network(frame, &headers) == Some(true) && verify::transport(frame, &headers, None) == Some(true)
}

#[test]
fn partial_checksum_is_completed_with_and_without_bursts() {
    for careful in [false, true] {
        let mut machine = TestMachine::new(&[(false, MODERN), (true, MODERN)]);
        if careful {
            machine.nic.take_no_shortcuts();
        }
        machine.post(1, &[&[1536][..]; 8]);
        let right = datagram(0, 1, &[9; 400]);
        let mut partial = right.clone();
        let seed = pseudo(&right[14..34], 17, 408).value();
        partial[40..42].copy_from_slice(&seed.to_be_bytes());
        let header = NetHeader {
            flags: flag::NEEDS_CSUM,
            checksum_start: 34,
            checksum_offset: 6,
            ..NetHeader::default()
        };
        assert!(machine.send(0, header, &partial, &[]));
        assert!(machine.send(0, header, &partial, &[12, 7]));
        machine.poll(0);
        let received = machine.received(1);
        assert_eq!(received.len(), 2);
        for (header, bytes, _) in received {
            assert_eq!((bytes, header.flags), (right.clone(), flag::DATA_VALID), "careful {careful}");
        }
        let expected = DeviceCounters { checksums: 2, checksums_filled: 2, ..DeviceCounters::default() };
        assert_eq!(sent_packets(&machine, 0), expected, "careful {careful}");
    }
}

#[test]
fn large_tcp_packet_is_segmented_for_a_vf_and_for_the_uplink() {
    for packed in [false, true] {
        for to in [1, 9] {
            let mut machine = TestMachine::new(&[(packed, MODERN), (packed, MODERN)]);
            machine.post(1, &[&[1600][..]; 20]);
            let payload: Vec<u8> = (0..12_000).map(|n| (n % 251) as u8).collect();
            assert!(machine.send(0, TSO, &large_packet(0, to, &payload), &[12, 54, 4096, 4096]));
            machine.poll(0);
            let frames: Vec<_> = match to {
                1 => machine.received(1).into_iter().map(|(_, bytes, _)| bytes).collect(),
                _ => machine.wire.sent.clone(),
            };
            assert_eq!(frames.len(), 9, "packed {packed} to {to}");
            assert!(frames.iter().all(|frame| is_right(frame)));
            let whole: Vec<u8> = frames.iter().flat_map(|frame| frame[54..].to_vec()).collect();
            assert_eq!(whole, payload);
            assert_eq!(sent_packets(&machine, 0), DeviceCounters { packets_cut: 1, ..large() });
        }
    }
}

#[test]
fn large_tcp_packet_leaves_by_a_tap_unsegmented() {
    let mut machine = TestMachine::new(&[(false, MODERN)]);
    machine.wire.takes_uncut = true;
    let packet = large_packet(0, 9, &[7; 12_000]);
    assert!(machine.send(0, TSO, &packet, &[]));
    machine.poll(0);
    assert_eq!(machine.wire.sent, [packet]);
    assert_eq!(sent_packets(&machine, 0), DeviceCounters { uncut_to_uplink: 1, ..large() });
}

#[test]
fn dropped_large_packet_counts_as_requested_only() {
    let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN | VirtioFeatures::GUEST_TSO4)]);
    machine.post(1, &[&[1600][..]; 2]);
    assert!(machine.send(0, TSO, &large_packet(0, 1, &[7; 12_000]), &[]));
    machine.poll(0);
    assert!(machine.received(1).is_empty());
    assert_eq!(sent_packets(&machine, 0), large());
}

#[test]
fn packet_whose_segments_wait_for_a_rate_counts_once_as_cut() {
    let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN)]);
    machine.post(1, &[&[1600][..]; 20]);
    let addresses = vec![MacAddress(address(0))];
    machine.nic.set_rules(0, VfRules { addresses, max_tx_rate: 10, ..VfRules::default() });
    assert!(machine.send(0, TSO, &large_packet(0, 1, &[7; 12_000]), &[]));
    let (mut received, mut polls) = (0, 0);
    machine.poll(0);
    while let Some(due) = machine.nic.due() {
        received += machine.received(1).len();
        polls += 1;
        machine.poll(due.as_nanos());
    }
    assert!(polls > 1, "the rate delays no segment");
    assert_eq!(received + machine.received(1).len(), 9);
    assert_eq!(sent_packets(&machine, 0), DeviceCounters { packets_cut: 1, ..large() });
}

#[test]
fn transmit_rate_limits_the_segments_of_a_virtio_packet() {
    for mbps in [10, 100, 1_000] {
        let mut machine = TestMachine::new(&[(false, MODERN)]);
        let addresses = vec![MacAddress(address(0))];
        machine.nic.set_rules(0, VfRules { addresses, max_tx_rate: mbps, ..VfRules::default() });
        assert!(machine.send(0, TSO, &large_packet(0, 9, &[7; 60_000]), &[]));
        machine.poll(0);
        let mut now = 0;
        while let Some(due) = machine.nic.due() {
            assert!(due.as_nanos() > now);
            now = due.as_nanos();
            machine.poll(now);
        }
        let sent = &machine.wire.sent;
        let bits: usize = sent.iter().map(|frame| (frame.len() + 4) * 8).sum();
        let wanted = bits as u64 * 1_000 / u64::from(mbps);
        assert_eq!(sent.len(), 42);
        assert!(now <= wanted && now * 100 >= wanted * 97, "{mbps} Mb/s: {now} ns of {wanted} ns");
    }
}

#[test]
fn packet_with_an_offload_not_negotiated_is_dropped() {
    let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN)]);
    machine.post(1, &[&[1536][..]; 8]);
    let header = NetHeader {
        gso_type: gso::UDP_L4,
        gso_size: 100,
        flags: flag::NEEDS_CSUM,
        checksum_start: 34,
        checksum_offset: 6,
        ..NetHeader::default()
    };
    assert!(machine.send(0, header, &datagram(0, 1, &[9; 400]), &[]));
    assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[8; 400]), &[]));
    machine.poll(0);
    assert_eq!(machine.received(1).len(), 1);
    assert_eq!(machine.nic.counters(0).unwrap().malformed, 1);
    assert_eq!(machine.finished(0), 2);
}

#[test]
fn cwr_flag_of_a_large_packet_stays_in_its_first_segment() {
    let features = MODERN | VirtioFeatures::HOST_ECN;
    let receiver = MODERN | VirtioFeatures::GUEST_TSO4;
    for receiver in [receiver, receiver | VirtioFeatures::GUEST_ECN] {
        let mut machine = TestMachine::new(&[(false, features), (false, receiver)]);
        machine.post(1, &[&[1600][..]; 40]);
        let mut packet = large_packet(0, 1, &[7; 4_000]);
        // CWR among the flags of TCP.
        packet[47] |= 0x80;
        let header = NetHeader { gso_type: gso::TCPV4 | gso::ECN, ..TSO };
        assert!(machine.send(0, header, &packet, &[]));
        machine.poll(0);
        // A driver that gets the packet uncut would repeat a mark in each segment, unless the header has it.
        let marks: Vec<_> =
            machine.received(1).iter().map(|(header, bytes, _)| (bytes[47] >> 7, header.gso_type)).collect();
        assert!(matches!(marks[..], [(1, 0), (0, 0), (0, 0)] | [(1, 0x81)]), "{marks:?}");
    }
}

#[test]
fn large_tcp_packet_is_not_segmented_for_a_guest_tso4_driver() {
    for [one, two] in [[false, true], [true, false]] {
        let mut machine = TestMachine::new(&[(one, MODERN), (two, MODERN | VirtioFeatures::GUEST_TSO4)]);
        machine.post(1, &[&[1600][..]; 40]);
        let payload: Vec<u8> = (0..40_000).map(|n| (n % 251) as u8).collect();
        let packet = large_packet(0, 1, &payload);
        assert!(machine.send(0, TSO, &packet, &[12, 54, 4096, 4096]));
        machine.poll(0);
        let received = machine.received(1);
        assert_eq!(received.len(), 1);
        let (header, bytes, buffers) = &received[0];
        assert_eq!((bytes == &packet, *buffers), (true, 26));
        assert_eq!(*header, NetHeader { buffers: 26, ..TSO });
        assert_eq!(sent_packets(&machine, 0), DeviceCounters { uncut_to_guests: 1, ..large() });
        assert_eq!(machine.nic.counters(1).unwrap().passed_uncut, 1);
        // The counters of the ports count segments.
        machine.plane.ledger.settle_received(PortIndex::of_field(1));
        assert_eq!(machine.plane.ledger.of(PortIndex::of_field(1)).rx_packets, 28);
    }
}

#[test]
fn large_uplink_packet_is_not_segmented_for_a_guest_tso4_driver() {
    let payload: Vec<u8> = (0..20_000).map(|n| (n % 251) as u8).collect();
    let packet = large_packet(9, 0, &payload);
    for (takes, vlan) in [(false, None), (true, None), (false, Some(7)), (true, Some(7))] {
        let more = if takes { VirtioFeatures::GUEST_TSO4 } else { VirtioFeatures::NONE };
        let mut machine = TestMachine::new(&[(false, MODERN | more)]);
        machine.post(0, &[&[1600][..]; 30]);
        let tag: &[u8] = if let Some(vlan) = vlan {
            let addresses = vec![MacAddress(address(0))];
            let rules = VfRules { addresses, vlans: VlanMembership::Port(vlan), ..VfRules::default() };
            machine.nic.set_rules(0, rules);
            &[0x81, 0, 0, 7]
        } else {
            &[]
        };
        let mut arriving = [&[0; HEADROOM], &packet[..12], tag, &packet[12..]].concat();
        let layout = uncut::arrived(&mut arriving[HEADROOM..], true, 1448, 9000).unwrap();
        machine.wire.large = Some((arriving, layout));
        machine.poll(0);
        let received = machine.received(0);
        if takes {
            let (header, bytes, buffers) = &received[0];
            assert_eq!((received.len(), bytes == &packet, *buffers), (1, true, 13), "{vlan:?}");
            assert_eq!(*header, NetHeader { buffers: 13, ..TSO });
        } else {
            assert_eq!(received.len(), 14, "{vlan:?}");
            assert!(received.iter().all(|(_, frame, _)| is_right(frame)));
        }
        machine.plane.ledger.settle_received(PortIndex::of_field(0));
        let counters = *machine.plane.ledger.of(PortIndex::of_field(0));
        assert_eq!((counters.rx_packets, counters.rx_bytes), (14, 20_000 + 14 * 54), "{takes} {vlan:?}");
    }
}

#[test]
fn driver_without_guest_csum_gets_zero_header_flags() {
    for careful in [false, true] {
        let plain = MODERN.without(VirtioFeatures::GUEST_CSUM);
        let mut machine = TestMachine::new(&[(false, MODERN), (true, plain)]);
        if careful {
            machine.nic.take_no_shortcuts();
        }
        machine.post(1, &[&[1536][..]; 4]);
        assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[9; 400]), &[]));
        machine.poll(0);
        assert_eq!(machine.received(1)[0].0, NetHeader { buffers: 1, ..NetHeader::default() });
    }
}

#[test]
fn unknown_transport_gets_its_checksum_at_the_requested_offset() {
    let mut machine = TestMachine::new(&[(false, MODERN), (true, MODERN)]);
    machine.post(1, &[&[1536][..]; 2]);
    // GRE with a checksum: its field is 4 bytes behind the transport's start, and has no pseudo header.
    let mut frame = datagram(0, 1, &[9; 100]);
    frame[23] = 47;
    frame[38..40].fill(0);
    let header =
        NetHeader { flags: flag::NEEDS_CSUM, checksum_start: 34, checksum_offset: 4, ..NetHeader::default() };
    assert!(machine.send(0, header, &frame, &[]));
    machine.poll(0);
    let (_, bytes, _) = &machine.received(1)[0];
    assert_eq!(offload::checksum::PartialChecksum::of(&bytes[34..]).checksum(), 0);
    assert_eq!(machine.nic.counters(0).unwrap().checksums_filled, 1);
}
