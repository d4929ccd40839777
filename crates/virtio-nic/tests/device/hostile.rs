//! Tests guests that send malformed packets. A test with a CVE number repeats a flaw that stopped, slowed or
//! compromised another implementation. The card must not panic or loop, its cost is bounded, and other VFs continue.

use crate::conversation::malformed;
use crate::driver::{PARTS, store};
use crate::exchange::datagram;
use crate::machine::{MODERN, POSTED, RING, TestMachine};
use crate::offloads::{TSO, large_packet};
use plane::PortIndex;
use virtio::VirtioFeatures;
use virtio::descriptor::{PackedDescriptor, SplitDescriptor, flag};
use virtio::net::{self, NetHeader};
use virtio_nic::RingStartParameters;

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

/// CVE-2022-2132: a header in three buffers and more, and chains that are shorter than a header.
#[test]
fn virtio_net_header_may_span_any_number_of_buffers() {
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
            assert_eq!(lost, 1, "packed {packed}, {kind}");
        }
    }
}

/// CVE-2024-11614: a checksum that begins or lies beyond the packet.
#[test]
fn frame_with_a_checksum_field_beyond_its_end_is_dropped() {
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

/// 1,024 buffers of a byte each, CVE-2016-6490 (buffers without a byte), and lists without an end.
#[test]
fn endless_or_long_indirect_tables_are_dropped_at_bounded_cost() {
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

/// CVE-2017-17381: rings of size zero, and others that no device can have.
#[test]
fn ring_with_invalid_size_position_or_address_does_not_start() {
    let mut machine = machine(false);
    let addresses = machine.guests[0].rings[1].addresses();
    let good = RingStartParameters {
        ring: 1,
        size: 128,
        packed: false,
        enabled: true,
        position: None,
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

/// CVE-2018-1059: only the first byte of a buffer is in memory.
#[test]
fn buffer_beyond_guest_memory_is_a_dma_fault_of_its_sender() {
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

/// CVE-2019-3900: a flood of short frames keeps the thread from all other work.
#[test]
fn poll_sends_at_most_its_frame_budget_of_each_vf() {
    for packed in [false, true] {
        let mut machine = machine(packed);
        (0..120).for_each(|_| assert!(machine.send(0, NetHeader::default(), &datagram(0, 2, &[]), &[])));
        assert!(machine.send(1, NetHeader::default(), &datagram(1, 2, &[]), &[]));
        assert!(machine.poll_once(0, 16));
        assert_eq!((machine.finished(0), machine.finished(1)), (16, 1));
    }
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
