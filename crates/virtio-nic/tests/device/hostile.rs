//! Tests guests that send malformed packets. A test named after a CVE repeats a flaw that stopped, slowed or
//! compromised another implementation. The card must not panic or loop, its cost is bounded, and other VFs continue.

use crate::address;
use crate::conversation::malformed;
use crate::driver::{PARTS, store};
use crate::exchange::datagram;
use crate::machine::{GuestDriverConfig, MODERN, POSTED, RING, SENT, TestMachine};
use crate::offloads::{TSO, large_packet};
use plane::PortIndex;
use virtio::VirtioFeatures;
use virtio::descriptor::{PackedDescriptor, SplitDescriptor, flag};
use virtio::net::{self, NetHeader};
use virtio_nic::{RingStartParameters, VfRules};

/// Returns a card with three guests of a ring format: the first is hostile, the third has receive buffers.
pub(crate) fn machine(packed: bool) -> TestMachine {
    let hostile = MODERN | VirtioFeatures::INDIRECT_DESC;
    let mut machine = TestMachine::new(&[(packed, hostile), (packed, MODERN), (packed, MODERN)]);
    machine.post(2, &[&[1600][..]; 120]);
    machine
}

/// Polls the card while a second VF sends a frame behind the hostile VF's packets, and asserts that the frame arrives.
/// Returns the number of frames that the third VF received from the hostile one.
fn others_go_on(machine: &mut TestMachine, bound: usize) -> usize {
    assert!(machine.send(1, NetHeader::default(), &datagram(1, 2, &[9; 100]), &[]));
    machine.bus.accesses = 0;
    machine.poll(0);
    assert!(machine.bus.accesses <= bound, "{} accesses, {bound} are allowed", machine.bus.accesses);
    let received = machine.received(2);
    assert_eq!((received.iter().filter(|(_, bytes, _)| bytes[11] == 1).count(), machine.finished(1)), (1, 1));
    received.len() - 1
}

/// The header is in three buffers and more, or the chain is shorter than a header.
#[test]
fn cve_2022_2132_header_may_span_any_number_of_buffers() {
    for packed in [false, true] {
        let mut machine = machine(packed);
        let frame = datagram(0, 2, &[3; 50]);
        for pieces in [&[4, 4, 4][..], &[1; 12], &[1; 60], &[11, 1, 1], &[12, 1, 1], &[3, 90]] {
            assert!(machine.send(0, NetHeader::default(), &frame, pieces));
            assert_eq!(others_go_on(&mut machine, 200), 1, "packed {packed}, {pieces:?}");
        }
        for length in [1, 5, 11, 12, 13, 25] {
            assert!(machine.make_available(0, 1, &[(POSTED, length, false)]));
            assert_eq!(others_go_on(&mut machine, 200), 0, "packed {packed}, {length} bytes");
        }
        assert_eq!((machine.finished(0), machine.nic.counters(0).unwrap().malformed), (12, 6));
    }
}

#[test]
fn malformed_descriptor_chains_are_returned_and_counted() {
    for packed in [false, true] {
        for kind in 0..8 {
            let mut machine = machine(packed);
            assert!(machine.make_available(0, 1, &malformed(kind)));
            assert!(machine.send(0, NetHeader::default(), &datagram(0, 2, &[1; 100]), &[]));
            assert_eq!(others_go_on(&mut machine, 200), 1, "packed {packed}, {kind}");
            assert_eq!(machine.finished(0), 2);
            let lost = machine.nic.counters(0).unwrap().malformed
                + machine.plane.ledger.of(PortIndex::of_field(0)).dma_faults;
            // Kind 3 is in an indirect table, whose write flags a packed transmit ring ignores: a frame.
            let expected = u64::from(!(packed && kind == 3));
            assert_eq!(lost, expected, "packed {packed}, {kind}");
        }
    }
}

/// The checksum begins or lies beyond the packet.
#[test]
fn cve_2024_11614_frame_with_a_checksum_beyond_it_is_dropped() {
    for packed in [false, true] {
        let mut machine = machine(packed);
        let frame = datagram(0, 2, &[3; 20]);
        for start in (0..70).chain([0x7fff, 0xfffe, 0xffff]) {
            for offset in [0, 6, 16, 17, 0xfff0, 0xffff] {
                let header = NetHeader {
                    flags: net::flag::NEEDS_CSUM,
                    checksum_start: start,
                    checksum_offset: offset,
                    ..NetHeader::default()
                };
                assert!(machine.send(0, header, &frame, &[]));
                // A checksum in the destination sends the frame elsewhere, as its sender could have done itself.
                let field = usize::from(start) + usize::from(offset);
                let expected = usize::from((6..frame.len() - 1).contains(&field));
                assert_eq!(others_go_on(&mut machine, 100), expected, "{start} and {offset}");
                machine.finished(0);
                machine.post(2, &[&[1600][..]; 1][..expected]);
                machine.post(2, &[&[1600]]);
            }
        }
    }
}

#[test]
fn tso_packet_of_more_than_2048_segments_is_dropped() {
    for packed in [false, true] {
        for (gso_size, segments) in [(0, 0), (1, 0), (29, 0), (30, 2_000)] {
            let mut machine = machine(packed);
            let header = NetHeader { gso_size, ..TSO };
            assert!(machine.send(0, header, &large_packet(0, 9, &[7; 60_000]), &[]));
            assert_eq!(others_go_on(&mut machine, 200), 0);
            assert_eq!((machine.wire.sent.len(), machine.finished(0)), (segments, 1));
        }
    }
}

/// The table has 1,024 buffers of a byte each, or (as in the CVE) of no byte, or has no end.
#[test]
fn cve_2016_6490_endless_indirect_table_has_a_bounded_cost() {
    let (table, count) = (POSTED, 1_024);
    for packed in [false, true] {
        // Length of each buffer, and the factor and the distance to the following descriptor.
        for (length, factor, distance) in [(1, 1, 1), (0, 1, 1), (1, 0, 0), (1, 1, 1_023), (1, 1, 17)] {
            let mut machine = machine(packed);
            for at in 0..count {
                let address = POSTED + 0x8000;
                let raw = if packed {
                    PackedDescriptor { address, length, id: 0, flags: 0 }.emit()
                } else {
                    SplitDescriptor {
                        address,
                        length,
                        flags: flag::NEXT,
                        next: (at * factor + distance) % count,
                    }
                    .emit()
                };
                store(&mut machine.bus.memories[0], table + 16 * u64::from(at), &raw);
            }
            for _ in 0..100 {
                machine.guests[0].rings[1].add_table(&mut machine.bus.memories[0], table, count.into());
            }
            machine.nic.kick(0, 1);
            machine.bus.accesses = 0;
            machine.poll_once(0, 16);
            assert!(machine.bus.accesses < 300, "{} accesses", machine.bus.accesses);
            assert_eq!(others_go_on(&mut machine, 16_000), 0, "packed {packed}");
            assert_eq!(machine.finished(0), 100);
            assert_eq!(machine.nic.counters(0).unwrap().malformed, 100);
        }
    }
}

#[test]
fn endless_descriptor_list_disturbs_no_other_vf() {
    for packed in [false, true] {
        let mut machine = machine(packed);
        let memory = &mut machine.bus.memories[0];
        for at in 0..128 {
            let (address, flags) = (POSTED, flag::NEXT);
            let raw = if packed {
                PackedDescriptor { address, length: 1, id: 0, flags: flags | flag::AVAIL }.emit()
            } else {
                SplitDescriptor { address, length: 1, flags, next: (at as u16 + 1) % 128 }.emit()
            };
            store(memory, RING + 16 * at, &raw);
        }
        if !packed {
            store(memory, RING + PARTS[1] + 2, &100_u16.to_le_bytes());
        }
        machine.nic.kick(0, 1);
        assert_eq!(others_go_on(&mut machine, 7_000), 0);
        let counters = machine.nic.counters(0).unwrap();
        // A packed ring cannot go on behind a list without an end; a split one has the next head.
        assert_eq!((counters.faults, counters.malformed), if packed { (1, 0) } else { (0, 100) });
    }
}

#[test]
fn available_index_or_head_outside_the_ring_stops_the_ring() {
    for (offset, value) in [(2, 129_u16), (2, 0xffff), (4, 128), (4, 0xffff)] {
        let mut machine = machine(false);
        assert!(machine.send(0, NetHeader::default(), &datagram(0, 2, &[1; 100]), &[]));
        store(&mut machine.bus.memories[0], RING + PARTS[1] + offset, &value.to_le_bytes());
        assert_eq!(others_go_on(&mut machine, 100), 0);
        assert_eq!(machine.nic.counters(0).unwrap().faults, 1);
        machine.bus.accesses = 0;
        (0..50).for_each(|_| machine.nic.kick(0, 1));
        machine.poll(0);
        assert_eq!(machine.bus.accesses, 0, "a stopped ring is not touched");
        machine.restart(0, 1);
        assert!(machine.send(0, NetHeader::default(), &datagram(0, 2, &[1; 100]), &[]));
        assert_eq!(others_go_on(&mut machine, 100), 1);
    }
}

/// The ring has size zero, or another size, position or address that no device can have.
#[test]
fn cve_2017_17381_ring_of_an_invalid_size_does_not_start() {
    let mut machine = machine(false);
    let addresses = machine.guests[0].rings[1].addresses();
    let good = RingStartParameters {
        ring: 1,
        size: 128,
        packed: false,
        enabled: true,
        position: None,
        has_run_elsewhere: false,
        addresses,
        memory: 0,
    };
    let huge = virtio::layout::RingAddresses { descriptors: u64::MAX - 15, ..addresses };
    for bad in [
        RingStartParameters { size: 0, ..good },
        RingStartParameters { size: 127, ..good },
        RingStartParameters { size: 1 << 16, ..good },
        RingStartParameters { size: 0, packed: true, ..good },
        RingStartParameters { packed: true, position: Some(0x8080_8080), ..good },
        RingStartParameters { ring: 32, ..good },
        RingStartParameters { ring: u32::MAX, ..good },
        RingStartParameters { addresses: huge, ..good },
    ] {
        assert!(machine.nic.start_ring(0, &bad, &mut machine.bus).is_err(), "{bad:?}");
        machine.nic.kick(0, bad.ring);
        machine.nic.enable_ring(0, bad.ring, true);
        machine.nic.stop_ring(0, bad.ring);
        assert_eq!(others_go_on(&mut machine, 100), 0);
    }
    assert_eq!(machine.nic.start_ring(0, &good, &mut machine.bus), Ok(()));
    assert!(machine.nic.start_ring(64, &good, &mut machine.bus).is_err());
}

/// Only the first bytes of a buffer are in memory.
#[test]
fn cve_2018_1059_buffer_beyond_guest_memory_is_a_dma_fault() {
    for packed in [false, true] {
        let mut machine = machine(packed);
        machine.bus.holes = vec![(0, 0x50_0000..0x50_1000)];
        for buffers in [&[(0x4f_fff4, 100, false)][..], &[(POSTED, 12, false), (0x4f_ffff, 100, false)]] {
            assert!(machine.make_available(0, 1, buffers));
            assert_eq!(others_go_on(&mut machine, 100), 0);
        }
        assert_eq!((machine.finished(0), machine.nic.counters(0).unwrap().faults), (2, 0));
        assert_eq!(machine.plane.ledger.of(PortIndex::of_field(0)).dma_faults, 2);
    }
}

/// A flood of short frames would keep the thread from all other work.
#[test]
fn cve_2019_3900_poll_sends_at_most_its_budget_of_each_vf() {
    for packed in [false, true] {
        let mut machine = machine(packed);
        (0..120).for_each(|_| assert!(machine.send(0, NetHeader::default(), &datagram(0, 2, &[]), &[])));
        assert!(machine.send(1, NetHeader::default(), &datagram(1, 2, &[]), &[]));
        assert!(machine.poll_once(0, 16));
        assert_eq!((machine.finished(0), machine.finished(1)), (16, 1));
    }
}

/// Bytes behind the IP packet, of which the length had a counter of 8 bits. The padding is no part of the flow, which
/// chooses the receive queue, and stays in the frame.
#[test]
fn cve_2020_35498_padding_of_any_length_changes_no_flow() {
    for packed in [false, true] {
        let guests = [1, 4].map(|pairs| GuestDriverConfig::of(packed, MODERN, pairs));
        for to in 1..4 {
            let mut machine = TestMachine::with(&guests);
            for pair in 0..4 {
                (0..12).for_each(|_| assert!(machine.post_one(1, 2 * pair, &[1600])));
            }
            let frames = [0, 1, 46, 255, 256, 257, 512, 1_400].map(|padding| {
                let mut frame = datagram(0, 1, &[to; 20]);
                frame.resize(frame.len() + padding, 0xee);
                frame
            });
            frames.iter().for_each(|frame| assert!(machine.send(0, NetHeader::default(), frame, &[])));
            machine.poll(0);
            let queues = (0..4).map(|pair| machine.received_by(1, 2 * pair));
            let used: Vec<_> = queues.filter(|received| !received.is_empty()).collect();
            assert_eq!(used.len(), 1, "all frames are of one flow");
            assert!(used[0].iter().map(|(_, bytes, _)| bytes).eq(&frames), "packed {packed}");
        }
    }
}

/// A driver cannot have a header of 20 bytes, even if the transport accepted `VIRTIO_NET_F_HASH_REPORT`: the card copies
/// at most the 12 bytes that it has room for.
#[test]
fn cve_2023_6693_hash_report_makes_no_longer_header() {
    use VirtioFeatures as F;
    assert!(!virtio_nic::FEATURES.intersects(F::HASH_REPORT.with(F::RSS)));
    for features in [F::HASH_REPORT, MODERN.with(F::HASH_REPORT), F::from_bits(u64::MAX)] {
        assert!(net::NetHeaderFormat::of(features).size() <= NetHeader::SIZE);
    }
    for packed in [false, true] {
        let mut machine = machine(packed);
        machine.nic.set_features(0, MODERN.with(F::HASH_REPORT));
        let frame = datagram(0, 2, &[3; 50]);
        assert!(machine.send(0, NetHeader::default(), &frame, &[]));
        machine.poll(0);
        let received = machine.received(2);
        assert_eq!((received.len(), &received[0].1), (1, &frame));
    }
}

/// Checks that a delivered frame has the bytes that the card judged, while its sender changes the source address
/// between the card's reads: by any bits, or between its own address and a foreign one.
#[test]
fn frame_that_changes_keeps_the_address_that_was_judged() {
    let (mut delivered, mut spoofed) = (0, 0);
    for seed in 1..80_u32 {
        let mut machine = machine(seed.is_multiple_of(2));
        let own = machine.nic.rules(0).unwrap().clone();
        machine.nic.set_rules(0, VfRules { spoof_check: true, ..own });
        if seed.is_multiple_of(5) {
            machine.nic.take_no_shortcuts();
        }
        // One frame at a time, so that each of the card's reads changes the source address of that frame.
        for n in 0..12_u8 {
            let (large, to) = (n % 3 == 0, if n % 2 == 0 { 2 } else { 9 });
            let header = if large { TSO } else { NetHeader::default() };
            let frame = if large { large_packet(0, to, &[n; 600]) } else { datagram(0, to, &[n; 600]) };
            let at = SENT + 0x1000 * u64::from(n);
            let whole = [&header.emit()[..], &frame].concat();
            store(&mut machine.bus.memories[0], at, &whole);
            // Pieces that begin before, in and behind the address.
            let first = [12, 14, 20, 60, whole.len() as u32][seed as usize / 2 % 5];
            let rest = (at + u64::from(first), whole.len() as u32 - first, false);
            let chain = [(at, first, false), rest];
            let chain = if rest.1 == 0 { &chain[..1] } else { &chain[..] };
            // Receivers find the frame by its destination, which stays.
            if seed.is_multiple_of(3) {
                machine.bus.turmoil = Some((0, at + 18..at + 24, seed * 31 + u32::from(n)));
            } else {
                machine.bus.toggled = Some((0, at + 23, 5));
            }
            assert!(machine.make_available(0, 1, chain));
            machine.poll(0);
        }
        let frames = machine.received(2).into_iter().map(|(_, bytes, _)| bytes);
        for frame in frames.chain(std::mem::take(&mut machine.wire.sent)) {
            assert_eq!(frame[6..12], address(0), "seed {seed}: a foreign address was delivered");
            delivered += 1;
        }
        spoofed += machine.plane.ledger.of(PortIndex::of_field(0)).tx_spoofed;
    }
    assert!(delivered > 50 && spoofed > 50, "{delivered} frames were delivered, {spoofed} dropped");
}

/// Checks that bytes that change while the card reads them are treated as they were read.
#[test]
fn memory_changed_during_a_poll_disturbs_only_its_own_guest() {
    for seed in 1..60_u32 {
        let mut machine = machine(seed.is_multiple_of(2));
        let rings = 0..2 * RING;
        let place = if seed.is_multiple_of(3) { rings } else { 0x44_0000..0x44_0000 + 0x8000 };
        for n in 0..30_u8 {
            let header = if n % 3 == 0 { TSO } else { NetHeader::default() };
            let frame = if n % 3 == 0 { large_packet(0, 2, &[n; 600]) } else { datagram(0, 2, &[n; 600]) };
            assert!(machine.send(0, header, &frame, if n % 4 == 0 { &[12, 60] } else { &[] }));
        }
        machine.post(0, &[&[1500][..]; 40]);
        machine.bus.turmoil = Some((0, place, seed));
        (0..20).for_each(|n| assert!(machine.send(1, NetHeader::default(), &datagram(1, 0, &[n; 90]), &[])));
        machine.bus.accesses = 0;
        machine.poll(0);
        assert!(machine.bus.accesses < 3_000, "seed {seed}: {} accesses", machine.bus.accesses);
        machine.received(2);
        machine.post(2, &[&[1600][..]; 8]);
        machine.finished(1);
        let from_second = |machine: &mut TestMachine| {
            machine.received(2).iter().filter(|(_, bytes, _)| bytes[11] == 1).count()
        };
        machine.bus.turmoil = None;
        assert!(machine.send(1, NetHeader::default(), &datagram(1, 2, &[9; 100]), &[]));
        machine.poll(0);
        assert_eq!(from_second(&mut machine), 1, "seed {seed}");
        assert_eq!(machine.stray_byte(2), None, "seed {seed}");
    }
}
