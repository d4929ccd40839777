//! Tests hostile packets: without end or beginning, with false lengths and offload requests, and in floods.

use super::{END, bench, expect_neighbours_well, poll_bounded, tx_at};
use crate::common::{BASE, CardFixture, buffer, data, mac, packet, plain};
use i82576::MacAddress;
use i82576::PoolIndex;
use i82576::bits::vmolr;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::register::{self as r, tx, vf};
use pcie::Function::Vf;
use units::WorkCost;

#[test]
fn descriptors_of_a_packet_without_eop_are_consumed_and_dropped() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start_sized(8, 2048);
    bench.vf(1).start();
    bench.vf(2).start();
    let piece = bench.vf(0).place(&plain(mac(1), mac(0), 50));
    for _ in 0..20 {
        for _ in 0..2000 {
            bench.vf(0).put(data(piece, 64).emit());
        }
        bench.vf(0).ring();
        poll_bounded(&mut bench);
        assert_eq!(
            bench.vf(0).read(tx_at(tx::TDH)),
            bench.vf(0).read(tx_at(tx::TDT)),
            "the head reaches the tail"
        );
        expect_neighbours_well(&mut bench);
    }
    assert_ne!(bench.nic.counters()[0].tx_invalid, 0);
    bench.vf(0).transmit(&[packet(piece, 64).emit()]);
    bench.vf(1).expect_no_frame();
    bench.vf(0).transmit(&[packet(piece, 64).emit()]);
    assert_eq!(bench.vf(1).received().len(), 1, "the descriptor behind EOP begins a packet");
}

#[test]
fn packet_without_eop_that_fills_its_ring_is_dropped() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start_sized(8, 8);
    let frame = bench.vf(0).place(&plain(mac(9), mac(0), 50));
    bench.vf(0).transmit(&[data(frame, 64).emit(); 7]);
    assert_eq!(bench.vf(0).read(tx_at(tx::TDH)), 7);
    bench.vf(0).transmit(&[packet(frame, 64).emit(), packet(frame, 64).emit()]);
    assert_eq!(bench.wire_got().len(), 1);
}

#[test]
fn poll_work_for_endless_empty_buffers_is_bounded() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start_sized(8, 4096);
    bench.vf(1).start();
    bench.vf(2).start();
    for descriptor in [data(0, 0), packet(0, 0), packet(u64::MAX, 0)] {
        for _ in 0..4000 {
            bench.vf(0).put(descriptor.emit());
        }
        bench.vf(0).ring();
        poll_bounded(&mut bench);
        expect_neighbours_well(&mut bench);
    }
    assert_eq!(bench.nic.counters()[0].tx_packets, 0);
}

#[test]
fn poll_work_for_endless_invalid_descriptors_is_bounded() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start_sized(8, 4096);
    bench.vf(1).start();
    bench.vf(2).start();
    for raw in [AdvancedContextDescriptor::default().emit(), [0; 16], [0xff; 16]] {
        for _ in 0..4000 {
            bench.vf(0).put(raw);
        }
        bench.vf(0).ring();
        poll_bounded(&mut bench);
        assert_eq!(bench.vf(0).read(tx_at(tx::TDH)), bench.vf(0).read(tx_at(tx::TDT)));
        expect_neighbours_well(&mut bench);
    }
}

#[test]
fn frames_shorter_than_an_ethernet_header_are_not_sent() {
    let mut bench = bench();
    let frame = plain(mac(1), mac(0), 0);
    for length in 1..14 {
        bench.vf(0).send(&frame[..length]);
    }
    assert!(bench.wire_got().is_empty());
    bench.vf(1).expect_no_frame();
    assert_eq!(bench.nic.counters()[0].tx_invalid, 13);
    bench.vf(0).send(&frame);
    assert_eq!(bench.vf(1).received().len(), 1);
}

#[test]
fn packets_of_256_kb_are_dropped_with_bounded_poll_work() {
    let mut bench = bench();
    for (length, count) in [(65_535u16, 4), (65_535, 5), (65_535, 60), (9725, 1)] {
        let mut descriptors = vec![data(buffer(0), length).emit(); count];
        *descriptors.last_mut().unwrap() = packet(buffer(0), length).emit();
        for raw in &descriptors {
            bench.vf(0).put(*raw);
        }
        bench.vf(0).ring();
        poll_bounded(&mut bench);
        expect_neighbours_well(&mut bench);
    }
    assert!(bench.wire_got().is_empty());
    assert_eq!(bench.nic.counters()[0].tx_invalid, 4);
}

#[test]
fn poll_gathers_a_bounded_number_of_bytes() {
    let mut bench = bench();
    for _ in 0..63 {
        bench.vf(0).put(packet(BASE, 65_535).emit());
    }
    bench.vf(0).ring();
    bench.budget.frames = 64;
    bench.world.bus.log.clear();
    assert!(bench.poll_once().more);
    let read: usize = bench.world.bus.log.iter().map(|access| access.length).sum();
    assert!((2 * 65_535..64 * 2048 + 65_536 + 4096).contains(&read), "{read} bytes");
}

#[test]
fn poll_reads_a_bounded_number_of_descriptors() {
    let mut bench = bench();
    bench.vf(0).start_sized(8, 256);
    let frame = plain(mac(9), mac(0), 98);
    let address = bench.vf(0).place(&frame);
    for i in (0..112).chain(0..112) {
        let last = i == 111;
        let byte =
            AdvancedDataDescriptor { end_of_packet: last, payload_length: 112, ..data(address + i, 1) };
        bench.vf(0).put(byte.emit());
    }
    bench.vf(0).ring();
    bench.budget.frames = 4;
    assert!(bench.poll_once().more);
    assert_eq!(bench.wire_got(), [&frame[..]], "112 descriptors exceed the bound of four frames");
    bench.poll();
    assert_eq!(bench.wire_got(), [&frame[..]]);
}

#[test]
fn buffer_outside_memory_or_address_space_is_a_dma_fault() {
    let mut bench = bench();
    for address in [END - 1, END, BASE - 1, u64::MAX, u64::MAX - 50, 1 << 63, 0] {
        bench.vf(0).transmit(&[packet(address, 100).emit()]);
        bench.vf(0).transmit(&[data(BASE, 50).emit(), packet(address, 100).emit()]);
        assert!(bench.wire_got().is_empty());
        expect_neighbours_well(&mut bench);
    }
    assert_eq!(bench.nic.counters()[0].dma_faults, 14);
    bench.vf(0).send(&plain(mac(9), mac(0), 60));
    assert_eq!(bench.wire_got().len(), 1, "the ring itself is valid");
}

#[test]
fn invalid_segmentation_sends_nothing() {
    let mut bench = bench();
    let frame = crate::common::tcp(mac(9), mac(0), &[1; 1000]);
    let address = bench.vf(0).place(&frame);
    let good = AdvancedContextDescriptor {
        mac_length: 14,
        ip_length: 20,
        l4_length: 20,
        ipv4: true,
        l4: L4PacketType::Tcp,
        mss: 500,
        ..AdvancedContextDescriptor::default()
    };
    let nonsense = [
        AdvancedContextDescriptor { mss: 0, ..good },
        AdvancedContextDescriptor { mac_length: 0, ..good },
        AdvancedContextDescriptor { ip_length: 0, ..good },
        AdvancedContextDescriptor { l4_length: 0, ..good },
        AdvancedContextDescriptor { mac_length: 127, ip_length: 511, l4_length: 255, ..good },
        AdvancedContextDescriptor { mss: 65_535, l4: L4PacketType::Sctp, ..good },
        AdvancedContextDescriptor { l4: L4PacketType::Reserved, ..good },
        AdvancedContextDescriptor::default(),
    ];
    let lengths = [0, 1, 13, 53, 54];
    for context in nonsense {
        for length in lengths {
            let segment = AdvancedDataDescriptor {
                segment: true,
                insert_ip_checksum: true,
                insert_l4_checksum: true,
                ..packet(address, length)
            };
            bench.vf(0).transmit(&[context.emit(), segment.emit()]);
            let whole = AdvancedDataDescriptor { segment: false, ..segment };
            bench.vf(0).transmit(&[context.emit(), whole.emit()]);
        }
        let segment = AdvancedDataDescriptor { segment: true, ..packet(address, frame.len() as u16) };
        bench.wire_got();
        bench.vf(0).transmit(&[context.emit(), segment.emit()]);
        // Headers of 893 bytes are unusual, but the card follows the context.
        assert!(bench.wire_got().is_empty() || context.mac_length == 127);
        expect_neighbours_well(&mut bench);
    }
    let segment = AdvancedDataDescriptor { segment: true, ..packet(address, frame.len() as u16) };
    bench.vf(0).transmit(&[good.emit(), segment.emit()]);
    assert_eq!(bench.wire_got().len(), 2);
}

#[test]
fn poll_work_for_segments_of_one_byte_is_bounded() {
    let mut bench = bench();
    let context = AdvancedContextDescriptor {
        mac_length: 14,
        ip_length: 20,
        l4_length: 20,
        ipv4: true,
        l4: L4PacketType::Tcp,
        mss: 1,
        index: 0,
        ..AdvancedContextDescriptor::default()
    };
    let frame = crate::common::tcp(mac(9), mac(0), &[1; 9000]);
    let address = bench.vf(0).place(&frame);
    let segment = |length| AdvancedDataDescriptor { segment: true, ..packet(address, length) }.emit();
    bench.vf(0).transmit(&[context.emit(), segment(9054)]);
    assert!(bench.wire_got().is_empty(), "9000 segments of one byte are refused");
    for _ in 0..20 {
        bench.vf(0).put(segment(1054));
    }
    bench.vf(0).ring();
    bench.budget.frames = 64;
    while bench.poll_once().more {
        assert!(bench.wire_got().len() <= 64 + 2048);
    }
    expect_neighbours_well(&mut bench);
}

#[test]
fn poll_sends_at_most_its_frame_budget_of_a_broadcast_storm() {
    let mut bench = bench();
    bench.nic.set_frame_quantum(WorkCost(u32::MAX));
    bench.budget.frames = 16;
    let frame = plain(i82576::MacAddress::BROADCAST, mac(0), 60);
    let address = bench.vf(0).place(&frame);
    for _ in 0..63 {
        bench.vf(0).put(packet(address, 74).emit());
    }
    bench.vf(0).ring();
    while bench.poll_once().more {
        assert_eq!(bench.wire_got().len(), 16);
        assert_eq!((bench.vf(1).received().len(), bench.vf(2).received().len()), (16, 16));
        bench.vf(1).post(16);
        bench.vf(2).post(16);
    }
}

#[test]
fn frame_to_the_senders_own_address_is_not_delivered() {
    let mut bench = bench();
    for length in 14..64 {
        bench.vf(0).send(&plain(mac(0), mac(0), length - 14));
    }
    bench.vf(0).expect_no_frame();
    assert!(bench.wire_got().is_empty());
    expect_neighbours_well(&mut bench);
}

#[test]
fn frame_longer_than_the_receivers_length_limit_is_dropped() {
    let mut bench = bench();
    bench
        .pf()
        .write(r::vmolr(PoolIndex::EVERY[1]), crate::common::POOL & !(vmolr::LPE | vmolr::RLPML_MASK) | 1522);
    bench.vf(0).send(&plain(mac(1), mac(0), 1501));
    bench.vf(0).send(&plain(MacAddress::BROADCAST, mac(0), 9000));
    bench.vf(1).expect_no_frame();
    assert_eq!(bench.vf(2).received().len(), 1);
    bench.vf(2).post(5);
    bench.vf(0).send(&plain(mac(1), mac(0), 1500));
    assert_eq!(bench.vf(1).received().len(), 1);
    bench.vf(1).post(1);
    expect_neighbours_well(&mut bench);
}

#[test]
fn flood_of_causes_in_a_poll_sends_one_message_per_vector() {
    let mut bench = bench();
    for _ in 0..60 {
        let address = bench.vf(0).place(&plain(mac(9), mac(0), 60));
        bench.vf(0).put(packet(address, 74).emit());
    }
    bench.vf(0).ring();
    for _ in 0..10_000 {
        bench.vf(0).write(vf::VTEICS, 7);
    }
    bench.poll_once();
    assert_eq!(bench.msix(), [(Vf(0), 0), (Vf(0), 1), (Vf(0), 2)]);
}
