//! A guest that writes what it likes: rings that are none, descriptors that lie, memory that is not there.
//! Whatever it does, the card neither panics nor works for it without bound, and its neighbours' frames go on.

use crate::common::{BASE, Bench, SIZE, TX_RING, buffer, data, mac, packet, plain};
use i82576::bits::{ctrl, dctl, v2p};
use i82576::descriptor::tx::{Context, Data, L4};
use i82576::register::{rx, tx, vf};
use pcie::Function::Vf;

const END: u64 = BASE + SIZE as u64;
/// Memory requests that one poll may make for one queue: the budget's frames, at most 16 descriptors each, and
/// rings on top.
const REQUESTS_A_POLL: usize = 256 * (16 + 4) + 256;

/// VF 0 is hostile, VFs 1 and 2 are not.
fn bench() -> Bench {
    let mut bench = Bench::new(3);
    for vf in 0..3 {
        bench.vf(vf).start();
    }
    bench
}

fn rx_at(register: u32) -> u32 {
    vf::RX_BLOCK + register
}

fn tx_at(register: u32) -> u32 {
    vf::TX_BLOCK + register
}

/// Frames go to and fro between VFs 1 and 2, and every memory request was the right one's.
#[track_caller]
fn expect_neighbours_well(bench: &mut Bench) {
    for (from, to) in [(1, 2), (2, 1)] {
        let frame = plain(mac(to), mac(from), 300);
        bench.vf(from).send(&frame);
        let received = bench.vf(to).received();
        assert_eq!(received.last().map(|last| &last.bytes), Some(&frame), "from {from} to {to}");
        let taken = received.iter().map(|received| received.parts.len() as u32).sum();
        bench.vf(to).post(taken);
    }
    for vf in [1, 2] {
        let stray = bench.world.bus.log.iter().find(|access| access.function == Vf(vf) && access.fault);
        assert_eq!(stray, None);
    }
    bench.world.bus.log.clear();
}

/// Polls until the card is idle; no poll makes more requests than it may.
#[track_caller]
fn poll_bounded(bench: &mut Bench) {
    for _ in 0..10_000 {
        bench.world.bus.log.clear();
        let more = bench.poll_once().more;
        assert!(bench.world.bus.log.len() <= REQUESTS_A_POLL, "{} requests", bench.world.bus.log.len());
        if !more {
            return;
        }
    }
    panic!("the card is never idle");
}

#[test]
fn head_or_tail_beyond_the_ring() {
    let mut bench = bench();
    for value in [64, 65, 0x7fff, 0xffff, u32::MAX] {
        for register in [tx::TDH, tx::TDT] {
            bench.vf(0).write(tx_at(tx::TDH), 0);
            bench.vf(0).write(tx_at(tx::TDT), 0);
            bench.vf(0).write(tx_at(register), value);
            bench.expect_nothing();
        }
        for register in [rx::RDH, rx::RDT] {
            bench.vf(0).write(rx_at(rx::RDH), 0);
            bench.vf(0).write(rx_at(rx::RDT), 0);
            bench.vf(0).write(rx_at(register), value);
            bench.world.wire.incoming.push_back(plain(mac(0), mac(9), 60));
            bench.expect_nothing();
        }
        expect_neighbours_well(&mut bench);
    }
}

#[test]
fn heads_and_tails_moved_at_will_between_polls() {
    let mut bench = Bench::new(3);
    for vf in 0..3 {
        bench.vf(vf).start_sized(8, 8);
    }
    let address = bench.vf(0).place(&plain(mac(1), mac(0), 60));
    let descriptor = packet(address, 74).emit();
    for _ in 0..8 {
        bench.vf(0).put(descriptor);
    }
    for step in 0..5000u32 {
        bench.vf(0).write(rx_at(rx::RDT), step * 5 % 8);
        bench.vf(0).write(tx_at(tx::TDT), step * 3 % 8);
        for _ in 0..step % 10 {
            bench.world.wire.incoming.push_back(plain(mac(0), mac(9), 60 + step as usize % 5000));
        }
        bench.poll();
        assert!(bench.vf(0).read(rx_at(rx::RDH)) < 8 && bench.vf(0).read(tx_at(tx::TDH)) < 8);
        let stray = bench.world.bus.log.iter().find(|access| {
            let ring = access.function == Vf(0) && (BASE..BASE + 0x2000).contains(&access.iova);
            ring && access.iova + access.length as u64 > access.iova / 0x1000 * 0x1000 + 128
        });
        assert_eq!(stray, None, "beyond a ring of 8");
        bench.world.bus.log.clear();
        bench.vf(1).received();
        bench.vf(1).post(7);
        bench.vf(1).write(rx_at(rx::RDT), 7);
    }
}

#[test]
fn rings_of_no_length_and_of_the_greatest() {
    let mut bench = bench();
    for length in [0, 1, 127, 128, 0x000f_ff80, u32::MAX] {
        for tail in [0, 1, 7, 0xffff] {
            for (register, value) in [(tx::TDLEN, length), (tx::TDH, 0), (tx::TDT, tail)] {
                bench.vf(0).write(tx_at(register), value);
            }
            for (register, value) in [(rx::RDLEN, length), (rx::RDH, 0), (rx::RDT, tail)] {
                bench.vf(0).write(rx_at(register), value);
            }
            bench.world.wire.incoming.push_back(plain(mac(0), mac(9), 60));
            poll_bounded(&mut bench);
            expect_neighbours_well(&mut bench);
        }
    }
}

#[test]
fn a_ring_shrunk_under_the_cards_feet() {
    let mut bench = bench();
    bench.vf(0).transmit(&[data(buffer(0), 10).emit(); 40]);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    bench.vf(0).write(tx_at(tx::TDLEN), 128);
    bench.vf(0).write(rx_at(rx::RDLEN), 128);
    bench.vf(0).write(tx_at(tx::TDT), 3);
    bench.vf(0).write(rx_at(rx::RDT), 3);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    poll_bounded(&mut bench);
    expect_neighbours_well(&mut bench);
}

#[test]
fn rings_where_no_memory_is() {
    let mut bench = bench();
    let places = [0, BASE - 128, END, END - 128, 0xffff_ffff_ffff_ff80, 0x8000_0000_0000_0000];
    for base in places {
        for (register, value) in [
            (tx::TDBAL, base as u32),
            (tx::TDBAH, (base >> 32) as u32),
            (tx::TDLEN, 1024),
            (tx::TDH, 0),
            (tx::TDT, 60),
        ] {
            bench.vf(0).write(tx_at(register), value);
            bench.vf(0).write(rx_at(register.min(tx::TDT)), value);
        }
        bench.vf(0).write(rx_at(rx::RDH), 0);
        bench.world.wire.incoming.push_back(plain(mac(0), mac(9), 60));
        poll_bounded(&mut bench);
        bench.world.bus.log.clear();
        bench.world.wire.incoming.push_back(plain(mac(0), mac(9), 60));
        bench.expect_nothing();
        expect_neighbours_well(&mut bench);
    }
    assert_ne!(bench.nic.counters()[0].dma_faults, 0);
}

#[test]
fn a_ring_that_faulted_works_again_once_it_is_set_up() {
    let mut bench = bench();
    bench.vf(0).write(tx_at(tx::TDBAL), 0);
    bench.vf(0).write(rx_at(rx::RDBAL), 0);
    bench.vf(0).write(tx_at(tx::TDT), 1);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    bench.expect_nothing();
    bench.vf(0).start();
    bench.vf(0).send(&plain(mac(1), mac(0), 60));
    bench.vf(1).send(&plain(mac(0), mac(1), 60));
    assert_eq!((bench.vf(1).received().len(), bench.vf(0).received().len()), (1, 1));
}

#[test]
fn a_packet_without_an_end() {
    let mut bench = Bench::new(3);
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
        assert_eq!(bench.vf(0).read(tx_at(tx::TDH)), bench.vf(0).read(tx_at(tx::TDT)), "nothing hangs");
        expect_neighbours_well(&mut bench);
    }
    assert_ne!(bench.nic.counters()[0].tx_invalid, 0);
    bench.vf(0).transmit(&[packet(piece, 64).emit()]);
    bench.vf(1).expect_no_frame();
    bench.vf(0).transmit(&[packet(piece, 64).emit()]);
    assert_eq!(bench.vf(1).received().len(), 1, "what follows the end is a packet again");
}

#[test]
fn a_packet_that_fills_its_ring_does_not_hang_it() {
    let mut bench = Bench::new(3);
    bench.vf(0).start_sized(8, 8);
    let frame = bench.vf(0).place(&plain(mac(9), mac(0), 50));
    bench.vf(0).transmit(&[data(frame, 64).emit(); 7]);
    assert_eq!(bench.vf(0).read(tx_at(tx::TDH)), 7);
    bench.vf(0).transmit(&[packet(frame, 64).emit(), packet(frame, 64).emit()]);
    assert_eq!(bench.wire_got().len(), 1);
}

#[test]
fn empty_buffers_for_ever() {
    let mut bench = Bench::new(3);
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
fn contexts_and_nonsense_for_ever() {
    let mut bench = Bench::new(3);
    bench.vf(0).start_sized(8, 4096);
    bench.vf(1).start();
    bench.vf(2).start();
    for raw in [Context::default().emit(), [0; 16], [0xff; 16]] {
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
fn packets_of_256_kilobytes() {
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
fn a_poll_gathers_no_more_bytes_than_its_frames_are_worth() {
    let mut bench = bench();
    for _ in 0..63 {
        bench.vf(0).put(packet(BASE, 65_535).emit());
    }
    bench.vf(0).ring();
    bench.budget.frames = 64;
    bench.world.bus.log.clear();
    assert!(bench.poll_once().more);
    let read: usize = bench.world.bus.log.iter().map(|access| access.length).sum();
    assert!(read < 64 * 2048 + 65_536 + 4096, "{read} bytes");
}

#[test]
fn buffers_across_the_end_of_memory_and_of_addresses() {
    let mut bench = bench();
    for address in [END - 1, END, BASE - 1, u64::MAX, u64::MAX - 50, 1 << 63, 0] {
        bench.vf(0).transmit(&[packet(address, 100).emit()]);
        bench.vf(0).transmit(&[data(BASE, 50).emit(), packet(address, 100).emit()]);
        assert!(bench.wire_got().is_empty());
        expect_neighbours_well(&mut bench);
    }
    assert_eq!(bench.nic.counters()[0].dma_faults, 14);
    bench.vf(0).send(&plain(mac(9), mac(0), 60));
    assert_eq!(bench.wire_got().len(), 1, "the ring itself is fine");
}

#[test]
fn receive_buffers_that_are_not_there() {
    let mut bench = bench();
    let ring = |i: usize| BASE + 16 * i as u64;
    for (i, address) in [0, END - 10, u64::MAX, 1 << 63].into_iter().enumerate() {
        let posted = i82576::descriptor::rx::Posted { packet: address, header: address };
        bench.vf(0).poke(ring(i), &posted.emit());
    }
    for i in 0..4 {
        bench.wire_sends(&plain(mac(0), mac(9), 60));
        let status = bench.vf(0).peek(ring(i) + 8, 4);
        assert_eq!(status[3] & 0x80, 0x80, "the descriptor says that data is missing");
        bench.vf(0).rings().rx_next += 1;
        expect_neighbours_well(&mut bench);
    }
    assert_eq!(bench.nic.counters()[0].dma_faults, 4);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    assert_eq!(bench.vf(0).received().len(), 1, "the next one is");
}

#[test]
fn write_back_over_the_ring_the_frame_and_itself() {
    let mut bench = bench();
    for address in [TX_RING, TX_RING + 0x10, BASE, END - 4, END - 3, u64::MAX - 3] {
        bench.vf(0).start();
        bench.vf(0).write(tx_at(tx::TDWBAL), address as u32 | 1);
        bench.vf(0).write(tx_at(tx::TDWBAH), (address >> 32) as u32);
        bench.vf(0).transmit(&[packet(TX_RING, 200).emit(), packet(BASE, 300).emit()]);
        poll_bounded(&mut bench);
        expect_neighbours_well(&mut bench);
    }
}

#[test]
fn frames_received_into_the_ring_that_describes_them() {
    let mut bench = bench();
    for i in 0..63u64 {
        let posted = i82576::descriptor::rx::Posted { packet: BASE + i * 8, header: BASE + i * 16 };
        bench.vf(0).poke(BASE + 16 * i, &posted.emit());
    }
    for length in 0..200 {
        let ones = vec![0xff; 60 + length * 20];
        bench.world.wire.incoming.push_back([&mac(0).0, &ones[..]].concat());
        bench.world.wire.incoming.push_back(plain(mac(0), mac(9), length * 30));
    }
    poll_bounded(&mut bench);
    expect_neighbours_well(&mut bench);
}

#[test]
fn segmentation_that_makes_no_sense() {
    let mut bench = bench();
    let frame = crate::common::tcp(mac(9), mac(0), &[1; 1000]);
    let address = bench.vf(0).place(&frame);
    let good = Context {
        mac_length: 14,
        ip_length: 20,
        l4_length: 20,
        ipv4: true,
        l4: L4::Tcp,
        mss: 500,
        ..Context::default()
    };
    let nonsense = [
        Context { mss: 0, ..good },
        Context { mac_length: 0, ..good },
        Context { ip_length: 0, ..good },
        Context { l4_length: 0, ..good },
        Context { mac_length: 127, ip_length: 511, l4_length: 255, ..good },
        Context { mss: 65_535, l4: L4::Sctp, ..good },
        Context { l4: L4::Reserved, ..good },
        Context::default(),
    ];
    let lengths = [0, 1, 13, 53, 54];
    for context in nonsense {
        for length in lengths {
            let segment = Data {
                segment: true,
                insert_ip_checksum: true,
                insert_l4_checksum: true,
                ..packet(address, length)
            };
            bench.vf(0).transmit(&[context.emit(), segment.emit()]);
            let whole = Data { segment: false, ..segment };
            bench.vf(0).transmit(&[context.emit(), whole.emit()]);
        }
        let segment = Data { segment: true, ..packet(address, frame.len() as u16) };
        bench.wire_got();
        bench.vf(0).transmit(&[context.emit(), segment.emit()]);
        // Headers of 893 bytes are odd, but the card believes the context.
        assert!(bench.wire_got().is_empty() || context.mac_length == 127);
        expect_neighbours_well(&mut bench);
    }
    let segment = Data { segment: true, ..packet(address, frame.len() as u16) };
    bench.vf(0).transmit(&[good.emit(), segment.emit()]);
    assert_eq!(bench.wire_got().len(), 2);
}

#[test]
fn one_byte_segments_are_bounded() {
    let mut bench = bench();
    let context = Context {
        mac_length: 14,
        ip_length: 20,
        l4_length: 20,
        ipv4: true,
        l4: L4::Tcp,
        mss: 1,
        index: 0,
        ..Context::default()
    };
    let frame = crate::common::tcp(mac(9), mac(0), &[1; 9000]);
    let address = bench.vf(0).place(&frame);
    let segment = |length| Data { segment: true, ..packet(address, length) }.emit();
    bench.vf(0).transmit(&[context.emit(), segment(9054)]);
    assert!(bench.wire_got().is_empty(), "nobody needs 9000 segments of one byte");
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
fn a_million_doorbells() {
    let mut bench = bench();
    for i in 0..1_000_000u32 {
        bench.vf(0).write(tx_at(tx::TDT), i);
        bench.vf(0).write(rx_at(rx::RDT), i);
    }
    poll_bounded(&mut bench);
    expect_neighbours_well(&mut bench);
    bench.vf(0).write(tx_at(tx::TDT), 0);
    for _ in 0..1000 {
        bench.vf(0).write(tx_at(tx::TDT), 0);
        bench.expect_nothing();
    }
}

#[test]
fn resets_and_mailbox_storms() {
    let mut bench = bench();
    for round in 0..2000 {
        bench.vf(0).write(vf::CTRL, ctrl::RST);
        bench.vf(0).write(vf::V2PMAILBOX, v2p::REQ | v2p::ACK | v2p::VFU);
        bench.vf(0).write(vf::VTEICS, 7);
        bench.vf(0).write(tx_at(tx::TXDCTL), dctl::ENABLE);
        bench.poll_once();
        if round % 100 == 0 {
            expect_neighbours_well(&mut bench);
        }
    }
}

#[test]
fn a_broadcast_storm_is_no_more_than_its_frames() {
    let mut bench = bench();
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
