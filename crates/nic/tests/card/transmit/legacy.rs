//! Tests legacy transmit descriptors, which small drivers use. The first descriptor of a packet has its requests (82576
//! datasheet 7.2.2.1).

use super::{WIRE, at, bench, placed};
use crate::common::{CardFixture, data, mac, plain, tagged, tcp};
use i82576::bits::dtxctl;
use i82576::descriptor::legacy::{LegacyChecksumInsertion, LegacyTxDescriptor};
use i82576::register::{self as r, tx};
use pcie::Function::Vf;

/// Returns the legacy descriptor of a whole packet, with RS.
fn packet(address: u64, length: usize) -> LegacyTxDescriptor {
    LegacyTxDescriptor {
        address,
        length: length as u16,
        end_of_packet: true,
        report_status: true,
        ..LegacyTxDescriptor::default()
    }
}

/// Sends a frame from VF 0 in one legacy descriptor with the checksum and tag requests of `ask`. Returns the frame on
/// the wire.
fn sent(bench: &mut CardFixture, frame: &[u8], ask: LegacyTxDescriptor) -> Vec<u8> {
    let address = bench.vf(0).place(frame);
    bench.vf(0).transmit(&[LegacyTxDescriptor {
        checksum: ask.checksum,
        vlan_tag: ask.vlan_tag,
        ..packet(address, frame.len())
    }
    .emit()]);
    bench.wire_got().remove(0)
}

#[test]
fn legacy_packet_may_use_one_descriptor() {
    let mut bench = bench();
    let (frame, whole) = placed(&mut bench, 100);
    bench.vf(0).transmit(&[packet(whole.address, frame.len()).emit()]);
    assert_eq!(bench.wire_got(), [frame]);
    assert!(bench.vf(0).is_done(0));
    assert_eq!(bench.vf(0).read(at(tx::TDH)), 1);
    bench.expect_msix(Vf(0), 0);
}

#[test]
fn legacy_tx_descriptor_is_written_back_only_if_rs_is_set() {
    let mut bench = bench();
    let (frame, whole) = placed(&mut bench, 100);
    let loud = packet(whole.address, frame.len());
    let silent = LegacyTxDescriptor { report_status: false, ..loud };
    bench.vf(0).transmit(&[silent.emit(), loud.emit(), silent.emit()]);
    assert_eq!([0, 1, 2].map(|i| bench.vf(0).is_done(i)), [false, true, false]);
}

#[test]
fn legacy_packet_may_use_several_descriptors() {
    let mut bench = bench();
    let (frame, whole) = placed(&mut bench, 286);
    let first =
        LegacyTxDescriptor { end_of_packet: false, report_status: false, ..packet(whole.address, 100) };
    bench.vf(0).transmit(&[first.emit(), packet(whole.address + 100, 200).emit()]);
    assert_eq!(bench.wire_got(), [frame]);
}

#[test]
fn sent_packet_may_mix_descriptor_formats() {
    let mut bench = bench();
    let (frame, whole) = placed(&mut bench, 286);
    bench.vf(0).transmit(&[data(whole.address, 100).emit(), packet(whole.address + 100, 200).emit()]);
    bench.vf(0).transmit(&[whole.emit(), packet(whole.address, 300).emit()]);
    assert_eq!(bench.wire_got(), [frame.clone(), frame.clone(), frame]);
}

#[test]
fn legacy_vlan_tag_comes_from_the_first_descriptor() {
    let mut bench = bench();
    let frame = plain(WIRE, mac(0), 100);
    let tag = LegacyTxDescriptor { vlan_tag: Some(0x6064), ..LegacyTxDescriptor::default() };
    assert_eq!(sent(&mut bench, &frame, tag), tagged(0x6064, &frame));
    let address = bench.vf(0).place(&frame);
    let first = LegacyTxDescriptor { vlan_tag: Some(5), end_of_packet: false, ..packet(address, 50) };
    let second = LegacyTxDescriptor { vlan_tag: Some(6), ..packet(address + 50, 64) };
    bench.vf(0).transmit(&[first.emit(), second.emit()]);
    bench.vf(0).transmit(&[LegacyTxDescriptor { vlan_tag: None, ..first }.emit(), second.emit()]);
    assert_eq!(bench.wire_got(), [tagged(5, &frame), frame]);
}

#[test]
fn legacy_checksum_covers_its_start_to_the_frames_end() {
    let mut bench = bench();
    let good = tcp(WIRE, mac(0), b"an odd load");
    let mut seeded = good.clone();
    let pseudo = 0x0a00u16 + 1 + 0x0a00 + 2 + 6 + 31;
    seeded[50..52].copy_from_slice(&pseudo.to_be_bytes());
    let ask = LegacyTxDescriptor {
        checksum: Some(LegacyChecksumInsertion { start: 34, field: 50 }),
        ..LegacyTxDescriptor::default()
    };
    assert_eq!(sent(&mut bench, &seeded, ask), good);
}

#[test]
fn legacy_checksum_outside_the_frame_is_not_inserted() {
    let mut bench = bench();
    let frame = plain(WIRE, mac(0), 86);
    for (start, field) in [(100, 50), (255, 50), (34, 99), (34, 100), (34, 255)] {
        let ask = LegacyTxDescriptor {
            checksum: Some(LegacyChecksumInsertion { start, field }),
            ..LegacyTxDescriptor::default()
        };
        assert_eq!(sent(&mut bench, &frame, ask), frame, "CSS {start}, CSO {field}");
    }
    let last = LegacyTxDescriptor {
        checksum: Some(LegacyChecksumInsertion { start: 99, field: 98 }),
        ..LegacyTxDescriptor::default()
    };
    assert_ne!(sent(&mut bench, &frame, last), frame);
}

#[test]
fn legacy_inserted_checksum_of_zero_stays_zero() {
    let mut bench = bench();
    let mut frame = plain(WIRE, mac(0), 46);
    frame[14..].fill(0);
    frame[40..42].fill(0xff);
    let ask = LegacyTxDescriptor {
        checksum: Some(LegacyChecksumInsertion { start: 34, field: 50 }),
        ..LegacyTxDescriptor::default()
    };
    assert_eq!(sent(&mut bench, &frame, ask)[50..52], [0, 0]);
}

#[test]
fn empty_legacy_descriptors_send_nothing() {
    let mut bench = bench();
    let (frame, whole) = placed(&mut bench, 100);
    let empty = packet(0, 0);
    bench.vf(0).transmit(&[empty.emit(), packet(whole.address, frame.len()).emit(), empty.emit()]);
    assert_eq!(bench.wire_got(), [frame]);
    assert!((0..3).all(|i| bench.vf(0).is_done(i)), "the card writes them back");
    assert_eq!((bench.nic.counters()[0].dma_faults, bench.nic.counters()[0].tx_invalid), (0, 0));
}

#[test]
fn empty_legacy_descriptors_count_as_no_malformed_packet() {
    let mut bench = bench();
    bench.pf().set(r::DTXCTL, dtxctl::MDP_EN);
    let (frame, whole) = placed(&mut bench, 100);
    bench.vf(0).transmit(&[packet(0, 0).emit(), packet(whole.address, frame.len()).emit()]);
    assert_eq!(bench.wire_got(), [frame], "the queue is not blocked");
    let mut advanced = crate::common::packet(0, 0);
    advanced.payload_length = 0;
    bench.vf(0).transmit(&[advanced.emit()]);
    assert_eq!(bench.nic.counters()[0].tx_invalid, 1, "an empty packet is invalid in the advanced format");
}
