//! Tests receive rings of hostile drivers: buffers that are too few, too small or malformed, and rings that lose their
//! memory.

use crate::driver::PARTS;
use crate::exchange::datagram;
use crate::machine::{MODERN, POSTED, RING, TestMachine};
use plane::PortIndex;
use units::WorkCost;
use units::work::FRAME_QUANTUM;
use virtio::VirtioFeatures;
use virtio::net::NetHeader;

fn no_buffer(machine: &mut TestMachine, vf: u32) -> u64 {
    machine.plane.ledger.of(PortIndex::of_field(vf)).rx_no_descriptors
}

#[test]
fn dropped_frame_of_too_many_buffers_keeps_earlier_frames() {
    for packed in [false, true] {
        let mut machine = TestMachine::new(&[(packed, MODERN), (packed, MODERN)]);
        machine.post(1, &[&[100][..]; 120]);
        // The first frame is in a buffer of the first burst; the second would need 64 buffers of three bursts and more.
        for payload in [40, 9_000, 42] {
            assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &vec![7; payload]), &[]));
        }
        machine.poll(0);
        let lengths: Vec<_> = machine.received(1).iter().map(|(_, bytes, _)| bytes.len() - 42).collect();
        assert_eq!((lengths, machine.nic.counters(1).unwrap().faults), (vec![40, 42], 0), "packed {packed}");
        assert_eq!(no_buffer(&mut machine, 1), 1);
    }
}

/// A merged frame is longer than all buffers together.
#[test]
fn cve_2014_0077_frame_beyond_all_buffers_writes_no_stray_byte() {
    for packed in [false, true] {
        let mut machine = TestMachine::new(&[(packed, MODERN), (packed, MODERN)]);
        machine.post(1, &[&[100][..]; 9]);
        assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[7; 900]), &[]));
        machine.poll(0);
        assert!(machine.received(1).is_empty());
        assert_eq!(machine.stray_byte(1), None, "packed {packed}");
    }
}

/// The number of buffers is written to the first of them when the others are filled. In the CVE the buffer was unmapped by
/// then; here its memory vanishes at any access.
#[test]
fn cve_2021_3748_buffer_count_is_written_before_buffers_return() {
    let mut outcomes = [0; 2];
    for packed in [false, true] {
        for after in 0..60 {
            let mut machine = TestMachine::new(&[(packed, MODERN), (packed, MODERN)]);
            machine.post(1, &[&[100][..]; 20]);
            let frame = datagram(0, 1, &[7; 900]);
            assert!(machine.send(0, NetHeader::default(), &frame, &[]));
            machine.bus.holes = vec![(1, POSTED..POSTED + 0x1000)];
            (machine.bus.accesses, machine.bus.holes_after) = (0, after);
            machine.poll(0);
            let received = machine.received(1);
            outcomes[received.len()] += 1;
            if let [(header, bytes, buffers)] = &received[..] {
                assert_eq!((bytes, *buffers, header.buffers), (&frame, 10, 10), "packed {packed}, {after}");
            }
            let counted = machine.plane.ledger.total(PortIndex::of_field(1)).rx_packets;
            assert_eq!(counted, received.len() as u64, "packed {packed}, {after}");
            assert_eq!(machine.stray_byte(1), None, "packed {packed}, {after}");
        }
    }
    assert!(outcomes[0] > 4 && outcomes[1] > 4, "{outcomes:?}");
}

#[test]
fn frame_cost_is_bounded_for_receive_chains_of_many_buffers() {
    let features = MODERN.with(VirtioFeatures::INDIRECT_DESC);
    for packed in [false, true] {
        let mut machine = TestMachine::new(&[(packed, MODERN), (packed, features)]);
        machine.post(1, &[&[1; 16][..]; 120]);
        assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[7; 9_000]), &[]));
        machine.bus.accesses = 0;
        machine.poll(0);
        let accesses = machine.bus.accesses;
        assert!(accesses < 400, "{accesses} accesses for one frame");
        assert!(machine.received(1).is_empty());
    }
}

#[test]
fn malformed_receive_buffer_stops_only_its_ring() {
    // Shorter than a header; without memory; a buffer that the device reads.
    for buffer in [(0x9_0000, 11, true), (1 << 40, 1500, true), (0x9_0000, 1500, false)] {
        for packed in [false, true] {
            let mut machine = TestMachine::new(&[(packed, MODERN), (packed, MODERN), (packed, MODERN)]);
            machine.post(2, &[&[1500][..]; 8]);
            machine.post(1, &[&[1500]]);
            assert!(machine.make_available(1, 0, &[buffer]));
            machine.post(1, &[&[1500]]);
            for (to, byte) in [(1, 1), (1, 2), (1, 3), (2, 4)] {
                assert!(machine.send(0, NetHeader::default(), &datagram(0, to, &[byte; 100]), &[]));
            }
            machine.poll(0);
            assert_eq!(machine.nic.counters(1).unwrap().faults, 1, "packed {packed}, {buffer:?}");
            assert_eq!(machine.received(2).len(), 1, "other VFs receive");
            machine.restart(1, 0);
            machine.post(1, &[&[1500]]);
            assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[5; 100]), &[]));
            machine.poll(0);
            assert_eq!(machine.received(1).len(), 1, "the ring starts anew");
        }
    }
}

#[test]
fn receive_buffers_inside_a_ring_disturb_no_other_vf() {
    for packed in [false, true] {
        for part in PARTS {
            let mut machine = TestMachine::new(&[(packed, MODERN), (packed, MODERN), (packed, MODERN)]);
            machine.post(2, &[&[1500][..]; 40]);
            for _ in 0..40 {
                machine.make_available(1, 0, &[(part, 1500, true)]);
                // The transmit ring of the same guest too.
                machine.make_available(1, 0, &[(RING + part, 1500, true)]);
            }
            for n in 0..40 {
                assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[n; 700]), &[]));
                assert!(machine.send(0, NetHeader::default(), &datagram(0, 2, &[n; 700]), &[]));
            }
            machine.bus.accesses = 0;
            machine.poll(0);
            machine.nic.kick(1, 1);
            machine.poll(0);
            assert!(machine.bus.accesses < 10_000, "{} accesses", machine.bus.accesses);
            assert_eq!(machine.received(2).len(), 40);
        }
    }
}

#[test]
fn receive_ring_in_unmapped_memory_stops_and_counts_a_fault() {
    for packed in [false, true] {
        for part in PARTS {
            for after in (0..60).step_by(7) {
                let mut machine = TestMachine::new(&[(packed, MODERN), (packed, MODERN), (packed, MODERN)]);
                machine.post(1, &[&[1500][..]; 100]);
                machine.post(2, &[&[1500][..]; 100]);
                for n in 0..40 {
                    assert!(machine.send(0, NetHeader::default(), &datagram(0, 1 + n % 2, &[n; 700]), &[]));
                }
                machine.bus.holes = vec![(1, part..part + 0x1000)];
                (machine.bus.accesses, machine.bus.holes_after) = (0, after);
                machine.poll(0);
                assert_eq!(machine.received(2).len(), 20, "packed {packed}, {part:#x}, {after}");
                // The card touches all parts at first, and a used ring or the descriptors for every burst.
                let needed = after == 0 || part == PARTS[if packed { 0 } else { 2 }];
                let faults = machine.nic.counters(1).unwrap().faults;
                assert!(faults == 1 || !needed, "packed {packed}, {part:#x}, {after}: {faults} faults");
            }
        }
    }
}

#[test]
fn fetched_receive_buffers_obey_later_negotiated_features() {
    for packed in [false, true] {
        // Headers have ten bytes at first, and twelve later.
        let mut machine = TestMachine::new(&[(packed, MODERN), (packed, VirtioFeatures::NONE)]);
        machine.post(1, &[&[100][..]; 8]);
        assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[1; 18]), &[]));
        machine.poll(0);
        assert_eq!(machine.received(1).len(), 1);
        machine.nic.set_features(1, MODERN);
        machine.guests[1].features = MODERN;
        let frame = datagram(0, 1, &[2; 48]);
        assert!(machine.send(0, NetHeader::default(), &frame, &[]));
        machine.poll(0);
        let received = machine.received(1);
        assert_eq!((received.len(), &received[0].1, received[0].2), (1, &frame, 2), "packed {packed}");
    }
}

#[test]
fn frame_is_not_counted_if_its_virtio_header_cannot_be_written() {
    for careful in [false, true] {
        let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN)]);
        if careful {
            machine.nic.take_no_shortcuts();
        }
        machine.bus.holes = vec![(1, 0xa_0000..0xa_1000)];
        // The header would be in the hole, the frame behind it.
        (0..8).for_each(|_| assert!(machine.make_available(1, 0, &[(0xa_1000 - 12, 1500, true)])));
        (0..8).for_each(|n| assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &[n; 100]), &[])));
        machine.poll(0);
        let counters = machine.plane.ledger.total(PortIndex::of_field(1));
        assert_eq!(counters.rx_packets, 0, "careful {careful}");
    }
}

/// Returns a machine whose VF 1 has posted chains of 16 pieces of a byte, and VF 2 buffers of one piece. VF 0 sends.
fn machine_with_pieces(packed: bool) -> TestMachine {
    let features = MODERN.with(VirtioFeatures::INDIRECT_DESC);
    let mut machine = TestMachine::new(&[(packed, MODERN), (packed, features), (packed, MODERN)]);
    machine.post(1, &[&[1; 16][..]; 100]);
    machine.post(2, &[&[1500][..]; 100]);
    machine
}

#[test]
fn receiver_pays_for_pieces_that_its_frames_do_not_need() {
    for packed in [false, true] {
        let mut machine = machine_with_pieces(packed);
        for to in [1, 2].repeat(20) {
            assert!(machine.send(0, NetHeader::default(), &datagram(0, to, &[7; 18]), &[]));
        }
        assert!(machine.send(1, NetHeader::default(), &datagram(1, 2, &[1; 18]), &[]));
        machine.poll_once(0, 64);
        // A frame with its header has 72 bytes, so it costs 68 units, and a unit for the 80 pieces of its chains. A round's
        // credit is 128.
        assert_eq!([1, 2].map(|vf| machine.received(vf).len()), [1, 20], "packed {packed}");
        assert_eq!([1, 2].map(|vf| no_buffer(&mut machine, vf)), [19, 0], "packed {packed}");
        // The receiver's own frame has waited until the next round, which pays the debt.
        machine.poll_once(0, 64);
        assert_eq!(machine.received(2).len(), 1, "packed {packed}");
    }
}

#[test]
fn receiver_pays_for_pieces_of_frames_from_the_uplink() {
    for packed in [false, true] {
        let mut machine = machine_with_pieces(packed);
        let rounds = |machine: &mut TestMachine, to: u8, count: usize| {
            let mut most = 0;
            for _ in 0..count {
                machine.wire.arriving.extend(vec![datagram(9, to, &[7; 18]); 20]);
                machine.poll_once(0, 64);
                most = most.max(machine.received(to).len());
            }
            most
        };
        assert_eq!([rounds(&mut machine, 1, 4), rounds(&mut machine, 2, 4)], [1, 20], "packed {packed}");
    }
}

#[test]
fn long_chains_of_honest_drivers_cost_nothing() {
    // Without merged buffers Linux posts 19 pieces for packets of 64 KB, and FreeBSD 34: a header, and pages or clusters.
    for (pieces, frames) in [(vec![500; 16], 40), ([vec![12], vec![290; 33]].concat(), 3)] {
        let features = MODERN.with(VirtioFeatures::INDIRECT_DESC);
        let mut machine = TestMachine::new(&[(false, MODERN), (false, features), (false, MODERN)]);
        machine.post(1, &vec![&pieces[..]; frames]);
        machine.post(2, &[&[1500]]);
        for length in [18, 1_400].into_iter().cycle().take(frames) {
            assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, &vec![7; length]), &[]));
        }
        assert!(machine.send(1, NetHeader::default(), &datagram(1, 2, &[1; 18]), &[]));
        // VF 1 has credit for a unit in the round, so it sends its frame only if the pieces cost nothing.
        let (shares, port) = (&mut machine.plane.shares, PortIndex::of_field(1));
        while shares.have_credit(port) {
            shares.charge(port, WorkCost(1));
        }
        shares.charge(port, WorkCost(FRAME_QUANTUM.0 - 1));
        machine.poll_once(0, 64);
        assert_eq!([1, 2].map(|vf| machine.received(vf).len()), [frames, 1], "{} pieces", pieces.len());
    }
}
