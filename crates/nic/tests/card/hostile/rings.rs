//! Tests hostile rings: invalid ones, rings in unmapped memory, and rings that change between polls.

use super::{END, bench, expect_neighbours_well, poll_bounded, rx_at, tx_at};
use crate::common::{BASE, CardFixture, TX_RING, buffer, data, mac, packet, plain};
use i82576::bits::{ctrl, dctl, v2p};
use i82576::register::{rx, tx, vf};
use pcie::Function::Vf;

#[test]
fn head_or_tail_beyond_the_ring_transfers_no_frame() {
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
fn tails_moved_between_polls_cause_no_access_beyond_the_ring() {
    let mut bench = CardFixture::new(3);
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
fn receive_tail_moved_back_fills_at_most_one_ring() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start_sized(8, 8);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    bench.vf(0).write(rx_at(rx::RDT), 6);
    for _ in 0..20 {
        bench.world.wire.incoming.push_back(plain(mac(0), mac(9), 60));
    }
    bench.poll();
    let counters = bench.nic.counters()[0];
    // The eighth descriptor was never written, and its address is not mapped.
    assert_eq!(counters.rx_packets + counters.dma_faults, 1 + 7);
    assert_eq!(bench.vf(0).read(rx_at(rx::RDH)), 0);
}

#[test]
fn rings_of_extreme_length_do_not_disturb_other_vfs() {
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
fn ring_shrunk_between_polls_does_not_disturb_other_vfs() {
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
fn rings_in_unmapped_memory_stop_their_queue() {
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
fn faulted_ring_works_after_the_driver_sets_it_up_again() {
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
fn faulting_write_back_is_counted_and_stops_the_queue() {
    let mut bench = bench();
    bench.vf(0).write(tx_at(tx::TDWBAL), i82576::bits::tdwbal::HEAD_WB_EN);
    for _ in 0..2 {
        bench.vf(0).send(&plain(mac(1), mac(0), 60));
    }
    assert_eq!(bench.nic.counters()[0].dma_faults, 1);
    assert_eq!(bench.vf(1).received().len(), 1, "the second frame is not sent");
    expect_neighbours_well(&mut bench);
}

#[test]
fn unmapped_receive_buffer_reports_a_receive_error() {
    let mut bench = bench();
    let ring = |i: usize| BASE + 16 * i as u64;
    for (i, address) in [0, END - 10, u64::MAX, 1 << 63].into_iter().enumerate() {
        let posted = i82576::descriptor::rx::PostedRxDescriptor { packet: address, header: address };
        bench.vf(0).poke(ring(i), &posted.emit());
    }
    for i in 0..4 {
        bench.wire_sends(&plain(mac(0), mac(9), 60));
        let status = bench.vf(0).peek(ring(i) + 8, 4);
        assert_eq!(status[3] & 0x80, 0x80, "RXE reports missing data");
        bench.vf(0).rings().rx_next += 1;
        expect_neighbours_well(&mut bench);
    }
    assert_eq!(bench.nic.counters()[0].dma_faults, 4);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    assert_eq!(bench.vf(0).received().len(), 1, "the next buffer is valid");
}

#[test]
fn head_write_back_onto_ring_or_frame_disturbs_no_other_vf() {
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
fn received_frame_written_onto_its_ring_disturbs_no_other_vf() {
    let mut bench = bench();
    for i in 0..63u64 {
        let posted =
            i82576::descriptor::rx::PostedRxDescriptor { packet: BASE + i * 8, header: BASE + i * 16 };
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
fn poll_work_after_a_million_doorbell_writes_is_bounded() {
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
fn poll_work_for_resets_and_mailbox_storms_is_bounded() {
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
