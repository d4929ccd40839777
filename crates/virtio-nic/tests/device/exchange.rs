//! Tests the exchange of frames between guests, and with the uplink.

use crate::address;
use crate::machine::{GuestDriverConfig, MODERN, TestMachine};
use virtio::VirtioFeatures;
use virtio::net::{NetHeader, flag};

/// Returns a UDP datagram in an IPv4 packet from one VF to another, with right checksums.
pub(crate) fn datagram(from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&address(to)[..], &address(from), &[8, 0]].concat();
    let total = 28 + payload.len() as u16;
    let mut ip = vec![0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    let sum = offload::checksum::PartialChecksum::of(&ip).checksum();
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let length = 8 + payload.len() as u16;
    let mut udp = [[0x10, from, 0x20, to].as_slice(), &length.to_be_bytes(), &[0, 0], payload].concat();
    let sum = pseudo(&ip, 17, length.into()).bytes(&udp).udp_checksum();
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    frame.extend(udp);
    frame
}

/// Returns the partial checksum of the pseudo header for an IPv4 header.
pub(crate) fn pseudo(ip: &[u8], protocol: u32, length: u32) -> offload::checksum::PartialChecksum {
    offload::checksum::PartialChecksum::of(&ip[12..20]).number(protocol).number(length)
}

const FORMATS: [[bool; 2]; 4] = [[false, false], [false, true], [true, false], [true, true]];

#[test]
fn frames_pass_between_split_and_packed_rings_in_order() {
    for [one, two] in FORMATS {
        for pieces in [&[][..], &[12], &[12, 20], &[5, 30]] {
            let mut machine = TestMachine::new(&[(one, MODERN), (two, MODERN)]);
            machine.post(1, &[&[1536][..]; 60]);
            let frames: Vec<_> =
                (0..50).map(|n| datagram(0, 1, &vec![n; 30 + 20 * usize::from(n)])).collect();
            for frame in &frames {
                let sent = machine.send(0, NetHeader::default(), frame, pieces);
                if !sent {
                    machine.poll(0);
                    machine.finished(0);
                    assert!(machine.send(0, NetHeader::default(), frame, pieces));
                }
            }
            machine.poll(0);
            machine.finished(0);
            let received = machine.received(1);
            assert_eq!(received.len(), 50, "packed {one} {two}, {pieces:?}");
            for ((header, bytes, buffers), frame) in received.iter().zip(&frames) {
                assert_eq!((bytes, *buffers), (frame, 1));
                assert_eq!((header.flags, header.buffers), (flag::DATA_VALID, 1));
            }
        }
    }
}

#[test]
fn frame_burst_interrupts_its_receiver_once() {
    let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN)]);
    machine.post(1, &[&[1536][..]; 40]);
    (0..32).for_each(|_| assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[7; 60]), &[])));
    machine.poll(0);
    assert_eq!(machine.bus.calls.iter().filter(|call| **call == (1, 0)).count(), 1);
    assert_eq!(machine.finished(0), 32);
}

#[test]
fn long_frame_uses_several_mergeable_receive_buffers() {
    for packed in [false, true] {
        let mut machine = TestMachine::new(&[(packed, MODERN), (packed, MODERN)]);
        machine.post(1, &[&[200], &[100, 100], &[300], &[4096], &[4096]]);
        let frames = [datagram(0, 1, &[1; 500]), datagram(0, 1, &[2; 900])];
        frames.iter().for_each(|frame| assert!(machine.send(0, NetHeader::default(), frame, &[])));
        machine.poll(0);
        let received = machine.received(1);
        let found: Vec<_> =
            received.iter().map(|(header, bytes, _)| (header.buffers, bytes.clone())).collect();
        assert_eq!(found, [(3, frames[0].clone()), (1, frames[1].clone())], "packed {packed}");
    }
}

#[test]
fn frame_without_enough_buffers_is_dropped_and_uses_none() {
    for packed in [false, true] {
        let mut machine = TestMachine::new(&[(packed, MODERN), (packed, MODERN)]);
        machine.post(1, &[&[200], &[200]]);
        assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[1; 900]), &[]));
        assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[2; 300]), &[]));
        machine.poll(0);
        let received = machine.received(1);
        assert_eq!(received.len(), 1, "packed {packed}");
        assert_eq!((received[0].1[60], received[0].2), (2, 2));
        assert_eq!(machine.plane.ledger.of(plane::PortIndex::of_field(1)).rx_no_descriptors, 1);
    }
}

#[test]
fn driver_without_mrg_rxbuf_gets_each_frame_in_one_chain() {
    let features = MODERN.without(VirtioFeatures::MRG_RXBUF);
    for packed in [false, true] {
        let mut machine = TestMachine::new(&[(packed, MODERN), (packed, features)]);
        machine.post(1, &[&[12, 1526], &[12, 100], &[12, 1526]]);
        let frames = [datagram(0, 1, &[1; 500]), datagram(0, 1, &[2; 900]), datagram(0, 1, &[3; 40])];
        frames.iter().for_each(|frame| assert!(machine.send(0, NetHeader::default(), frame, &[])));
        machine.poll(0);
        let bytes: Vec<_> = machine.received(1).into_iter().map(|(_, bytes, _)| bytes).collect();
        assert_eq!(bytes, [frames[0].clone(), frames[2].clone()], "the second does not fit its chain");
    }
}

#[test]
fn guest_sends_to_and_receives_from_the_uplink() {
    let mut machine = TestMachine::new(&[(true, MODERN)]);
    machine.post(0, &[&[1536][..]; 4]);
    let out = datagram(0, 9, &[1; 200]);
    assert!(machine.send(0, NetHeader::default(), &out, &[]));
    let home = datagram(9, 0, &[2; 200]);
    machine.wire.arriving.push_back(home.clone());
    machine.poll(0);
    assert_eq!(machine.wire.sent, [out]);
    let received = machine.received(0);
    assert_eq!((received.len(), &received[0].1, received[0].0.flags), (1, &home, flag::DATA_VALID));
}

#[test]
fn first_queue_pair_receives_for_pairs_without_posted_buffers() {
    // Cloud Hypervisor enables all pairs, and iPXE uses the first one only.
    let kinds = [GuestDriverConfig::of(false, MODERN, 1), GuestDriverConfig::of(false, MODERN, 3)];
    let mut machine = TestMachine::with(&kinds);
    machine.post(1, &[&[1536][..]; 64]);
    for n in 0..48 {
        let mut frame = datagram(0, 1, &[n; 60]);
        // Another address of the sender is another flow; its checksums do not matter here.
        frame[29] = n;
        assert!(machine.send(0, NetHeader::default(), &frame, &[]));
    }
    machine.poll(0);
    assert_eq!(machine.received(1).len(), 48);
}
