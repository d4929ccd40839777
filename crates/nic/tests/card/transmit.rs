//! Tests transmit descriptors: packets, write-back, and the enable bits of a queue. Segmentation and checksums have
//! tests beside their code (`offload`).

mod large;
mod legacy;
mod offload;
mod rules;

use crate::common::{CardFixture, TX_RING, data, head_address, mac, packet, plain};
use i82576::bits::{ctrl, dctl, tctl};
use i82576::descriptor::tx::AdvancedDataDescriptor;
use i82576::register::{self as r, tx, vf};
use pcie::Function::Vf;
use pcie::{ConfigAccess, config::offset};

const WIRE: i82576::MacAddress = mac(9);

fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start();
    bench
}

/// Returns the offset of a register of VF 0's first transmit queue.
fn at(register: u32) -> u32 {
    vf::TX_BLOCK + register
}

/// Puts a frame for the wire into memory, and returns it with its descriptor.
fn placed(bench: &mut CardFixture, payload: usize) -> (Vec<u8>, AdvancedDataDescriptor) {
    let frame = plain(WIRE, mac(0), payload);
    let address = bench.vf(0).place(&frame);
    let descriptor = packet(address, frame.len() as u16);
    (frame, descriptor)
}

#[test]
fn sent_packet_may_use_one_descriptor() {
    let mut bench = bench();
    let (frame, descriptor) = placed(&mut bench, 100);
    bench.vf(0).transmit(&[descriptor.emit()]);
    assert_eq!(bench.wire_got(), [frame]);
    assert!(bench.vf(0).is_done(0));
    assert_eq!(bench.vf(0).read(at(tx::TDH)), 1);
    bench.expect_msix(Vf(0), 0);
}

#[test]
fn sent_packet_may_use_many_descriptors_and_empty_ones() {
    let mut bench = bench();
    let (frame, whole) = placed(&mut bench, 286);
    let base = whole.address;
    let pieces = [(0, 0), (0, 14), (14, 0), (14, 1), (15, 200), (215, 0), (215, 85)];
    let mut descriptors: Vec<_> = pieces.map(|(at, length)| data(base + at, length)).to_vec();
    // The card does not read an empty buffer, so its address may be invalid.
    descriptors[2].address = 0;
    descriptors[5].address = u64::MAX;
    let last = descriptors.last_mut().unwrap();
    (last.end_of_packet, last.report_status) = (true, true);
    bench.vf(0).transmit(&descriptors.iter().map(AdvancedDataDescriptor::emit).collect::<Vec<_>>());
    assert_eq!(bench.wire_got(), [frame]);
    assert!((0..6).all(|i| !bench.vf(0).is_done(i)));
    assert!(bench.vf(0).is_done(6));
    assert_eq!(bench.nic.counters()[0].dma_faults, 0);
}

#[test]
fn packet_without_its_last_descriptor_waits_for_more() {
    let mut bench = bench();
    let (frame, whole) = placed(&mut bench, 86);
    let first = data(whole.address, 60);
    bench.vf(0).transmit(&[first.emit()]);
    assert!(bench.wire_got().is_empty());
    assert_eq!(bench.vf(0).read(at(tx::TDH)), 0, "the head waits for the whole packet");
    bench.vf(0).transmit(&[packet(whole.address + 60, 40).emit()]);
    assert_eq!(bench.wire_got(), [frame]);
    assert_eq!(bench.vf(0).read(at(tx::TDH)), 2);
}

#[test]
fn incomplete_packet_survives_a_wrap_of_the_ring() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start_sized(8, 8);
    for round in 0..100u64 {
        let (frame, whole) = placed(&mut bench, 46 + (round as usize % 7));
        let third = frame.len() as u16 / 3;
        bench.vf(0).transmit(&[data(whole.address, third).emit()]);
        bench.vf(0).transmit(&[data(whole.address + u64::from(third), third).emit()]);
        assert!(bench.wire_got().is_empty());
        let rest = frame.len() as u16 - 2 * third;
        bench.vf(0).transmit(&[packet(whole.address + 2 * u64::from(third), rest).emit()]);
        assert_eq!(bench.wire_got(), [frame], "round {round}");
    }
}

#[test]
fn full_transmit_ring_is_sent_completely_in_sequence() {
    for count in [8, 24, 64] {
        let mut bench = CardFixture::new(3);
        bench.vf(0).start_sized(8, count);
        for _ in 0..5 {
            let mut expected = Vec::new();
            let mut descriptors = Vec::new();
            for i in 0..count as usize - 1 {
                let (frame, descriptor) = placed(&mut bench, 50 + i);
                expected.push(frame);
                descriptors.push(descriptor.emit());
            }
            bench.vf(0).transmit(&descriptors);
            assert_eq!(bench.wire_got(), expected);
        }
    }
}

#[test]
fn transmit_descriptors_are_read_and_written_in_bursts() {
    let mut bench = bench();
    let (_, descriptor) = placed(&mut bench, 50);
    bench.world.bus.log.clear();
    bench.vf(0).transmit(&[descriptor.emit(); 63]);
    let ring = |write| {
        let log = &bench.world.bus.log;
        log.iter().filter(|a| a.write == write && a.iova < TX_RING + 0x400).count()
    };
    assert_eq!((ring(false), ring(true)), (2, 2), "63 descriptors, 32 at a time");
}

#[test]
fn only_descriptors_that_request_a_report_are_written_back() {
    let mut bench = bench();
    let (frame, descriptor) = placed(&mut bench, 100);
    let silent = AdvancedDataDescriptor { report_status: false, ..descriptor };
    bench.world.bus.log.clear();
    bench.vf(0).transmit(&[silent.emit(), silent.emit()]);
    assert_eq!(bench.wire_got(), [frame.clone(), frame.clone()]);
    assert!(bench.world.bus.log.iter().all(|access| !access.write));
    assert_eq!(bench.vf(0).read(at(tx::TDH)), 2);
    bench.expect_no_msix();
    bench.vf(0).transmit(&[silent.emit(), descriptor.emit(), silent.emit()]);
    assert_eq!([2, 3, 4].map(|i| bench.vf(0).is_done(i)), [false, true, false]);
    bench.expect_msix(Vf(0), 0);
}

#[test]
fn head_write_back_replaces_descriptor_write_back() {
    let mut bench = bench();
    bench.vf(0).write(at(tx::TDWBAL), head_address() as u32 | 1);
    bench.vf(0).write(at(tx::TDWBAH), 0);
    let (_, descriptor) = placed(&mut bench, 100);
    bench.vf(0).transmit(&[descriptor.emit(), descriptor.emit(), descriptor.emit()]);
    assert_eq!(bench.vf(0).peek(head_address(), 4), [3, 0, 0, 0]);
    assert!((0..3).all(|i| !bench.vf(0).is_done(i)));
    bench.expect_msix(Vf(0), 0);
    let silent = AdvancedDataDescriptor { report_status: false, ..descriptor };
    bench.world.bus.log.clear();
    bench.vf(0).transmit(&[silent.emit()]);
    assert!(bench.world.bus.log.iter().all(|access| !access.write), "no descriptor has RS");
    assert_eq!(bench.vf(0).peek(head_address(), 4), [3, 0, 0, 0]);
}

#[test]
fn head_write_back_address_has_64_bits() {
    let mut bench = bench();
    bench.vf(0).write(at(tx::TDWBAL), head_address() as u32 | 1);
    bench.vf(0).write(at(tx::TDWBAH), 0x12);
    let (_, descriptor) = placed(&mut bench, 100);
    bench.vf(0).transmit(&[descriptor.emit()]);
    let asked = bench.world.bus.log.iter().find(|access| access.write).map(|access| access.iova);
    assert_eq!(asked, Some(0x12 << 32 | head_address()));
}

#[test]
fn faulting_head_write_back_affects_only_its_vf() {
    let mut bench = bench();
    bench.vf(1).start();
    bench.vf(0).write(at(tx::TDWBAL), 1);
    let (_, descriptor) = placed(&mut bench, 100);
    bench.vf(0).transmit(&[descriptor.emit()]);
    assert_eq!(bench.msix(), [], "a failed write-back sends no message");
    bench.vf(1).send(&plain(WIRE, mac(1), 70));
    assert_eq!(bench.wire_got().len(), 2);
}

#[test]
fn sent_frames_are_padded_to_60_bytes() {
    let mut bench = bench();
    bench.vf(0).send(&plain(WIRE, mac(0), 1000));
    bench.wire_got();
    let short = plain(WIRE, mac(0), 6);
    bench.vf(0).send(&short);
    let sent = bench.wire_got().remove(0);
    assert_eq!((sent.len(), &sent[..20]), (60, &short[..]));
    assert!(sent[20..].iter().all(|byte| *byte == 0), "the padding has no bytes of earlier frames");
}

#[test]
fn doorbell_before_transmission_is_enabled_is_not_lost() {
    type Gate = (fn(&mut CardFixture), fn(&mut CardFixture));
    let gates: [Gate; 5] = [
        (|b| b.pf().clear(r::TCTL, tctl::EN), |b| b.pf().set(r::TCTL, tctl::EN)),
        (|b| b.pf().write(r::VFTE, 0xfe), |b| b.pf().write(r::VFTE, 0xff)),
        (|b| b.vf(0).write(at(tx::TXDCTL), 0), |b| b.vf(0).write(at(tx::TXDCTL), dctl::ENABLE)),
        (
            |b| b.nic.config_write(Vf(0), offset::COMMAND, 2, 0),
            |b| b.nic.config_write(Vf(0), offset::COMMAND, 2, u32::from(offset::COMMAND_BUS_MASTER)),
        ),
        (
            |b| b.pf().set(r::CTRL, ctrl::GIO_MASTER_DISABLE),
            |b| b.pf().clear(r::CTRL, ctrl::GIO_MASTER_DISABLE),
        ),
    ];
    for (close, open) in gates {
        let mut bench = bench();
        let (frame, descriptor) = placed(&mut bench, 60);
        close(&mut bench);
        bench.vf(0).put(descriptor.emit());
        bench.vf(0).ring();
        bench.expect_nothing();
        open(&mut bench);
        bench.poll();
        assert_eq!(bench.wire_got(), [frame]);
    }
}

#[test]
fn vfte_bit_enables_transmission_of_each_vf() {
    let mut bench = bench();
    bench.vf(1).start();
    bench.pf().write(r::VFTE, 0b01);
    bench.vf(1).send(&plain(WIRE, mac(1), 60));
    bench.vf(0).send(&plain(WIRE, mac(0), 61));
    assert_eq!(bench.wire_got().len(), 1);
}

#[test]
fn disabled_queue_writes_back_sent_descriptors() {
    let mut bench = bench();
    let (frame, descriptor) = placed(&mut bench, 60);
    bench.vf(0).transmit(&[descriptor.emit(); 3]);
    assert_eq!(bench.wire_got().len(), 3);
    bench.vf(0).write(at(tx::TXDCTL), 0);
    assert_eq!(bench.vf(0).read(at(tx::TXDCTL)), 0, "TXDCTL reads disabled at once");
    bench.vf(0).write(at(tx::TXDCTL), dctl::ENABLE);
    bench.expect_nothing();
    bench.vf(0).transmit(&[descriptor.emit()]);
    assert_eq!(bench.wire_got(), [frame]);
}

#[test]
fn second_transmit_queue_of_a_vf_sends_frames() {
    let mut bench = bench();
    let second = at(vf::QUEUE_STRIDE);
    let (frame, descriptor) = placed(&mut bench, 60);
    let ring = TX_RING + 0x800;
    bench.vf(0).poke(ring, &descriptor.emit());
    for (register, value) in
        [(tx::TDBAL, ring as u32), (tx::TDLEN, 128), (tx::TXDCTL, dctl::ENABLE), (tx::TDT, 1)]
    {
        bench.vf(0).write(second + register, value);
    }
    bench.vf(0).write(vf::VTIVAR, 0x8200_0000);
    bench.poll();
    assert_eq!(bench.wire_got(), [frame]);
    bench.expect_msix(Vf(0), 2);
}

#[test]
fn consecutive_polls_begin_sending_at_different_queues() {
    let mut bench = bench();
    bench.vf(1).start();
    let frames = [0, 1].map(|vf| plain(WIRE, mac(vf), 60));
    let mut first = [0; 2];
    for _ in 0..20 {
        for vf in 0..2u8 {
            let address = bench.vf(vf).place(&frames[usize::from(vf)]);
            bench.vf(vf).put(packet(address, 74).emit());
            bench.vf(vf).ring();
        }
        bench.poll();
        let sent = bench.wire_got();
        first[usize::from(sent[0] == frames[1])] += 1;
    }
    assert_eq!(first, [10, 10]);
}

#[test]
fn poll_sends_its_frame_budget_from_each_queue() {
    let mut bench = bench();
    bench.vf(1).start();
    bench.budget.frames = 4;
    for vf in 0..2 {
        let frame = plain(WIRE, mac(vf), 60);
        let address = bench.vf(vf).place(&frame);
        for _ in 0..6 {
            bench.vf(vf).put(packet(address, 74).emit());
        }
        bench.vf(vf).ring();
    }
    assert!(bench.poll_once().more);
    assert_eq!(bench.wire_got().len(), 8);
    assert!(!bench.poll_once().more);
    assert_eq!(bench.wire_got().len(), 4);
}

/// Tests a queue without a link: the head must move, since igb and FreeBSD treat a head that stands still as a hung
/// card.
#[test]
fn frames_sent_without_a_link_are_completed_and_dropped() {
    let mut bench = bench();
    bench.nic.set_link(false);
    let (_, descriptor) = placed(&mut bench, 60);
    bench.vf(0).transmit(&[descriptor.emit(); 5]);
    assert!(bench.wire_got().is_empty());
    assert_eq!(bench.vf(0).read(at(tx::TDH)), 5);
    assert!((0..5).all(|i| bench.vf(0).is_done(i)));
    assert_eq!(bench.pf().read(r::GPTC), 0);
}
