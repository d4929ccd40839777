//! Tests the rules of a transmit queue beside its descriptors: the lifetime of contexts, PAYLEN, WTHRESH and SWFLSH,
//! and packets that are too long.

use super::offload::{context, tag};
use super::{WIRE, at, bench, placed};
use crate::common::{CardFixture, PORT, data, mac, packet, plain, tcp};
use i82576::bits::{ctrl, dctl};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor};
use i82576::ids::MAX_FRAME;
use i82576::register::{self as r, tx, vf};

/// Sends a frame that requests the VLAN tag of context 0, and returns the frame's tag on the wire.
fn inserted(bench: &mut CardFixture) -> Option<u16> {
    let (_, descriptor) = placed(bench, 100);
    bench.vf(0).transmit(&[AdvancedDataDescriptor { insert_vlan: true, ..descriptor }.emit()]);
    tag(&bench.wire_got().remove(0))
}

#[test]
fn offload_context_survives_a_new_ring_but_not_a_reset() {
    let mut bench = bench();
    bench.vf(0).transmit(&[AdvancedContextDescriptor { vlan_tag: 10, ..context(0, 0) }.emit()]);
    bench.vf(0).write(at(tx::TXDCTL), 0);
    bench.vf(0).write(at(tx::TXDCTL), dctl::ENABLE);
    assert_eq!(inserted(&mut bench), Some(10));
    bench.vf(0).start();
    assert_eq!(inserted(&mut bench), Some(10));
    bench.vf(0).write(vf::CTRL, ctrl::RST);
    bench.pf().write(r::VFTE, 0xff);
    bench.vf(0).start();
    assert_eq!(inserted(&mut bench), Some(0), "the next owner has an empty context");
}

#[test]
fn sent_length_comes_from_buffers_and_not_from_paylen() {
    let mut bench = bench();
    let frame = tcp(WIRE, mac(0), &[7; 2500]);
    let address = bench.vf(0).place(&frame);
    for payload_length in [0, 1, 2500, 0x3ffff] {
        let whole = AdvancedDataDescriptor { payload_length, ..packet(address, 1000) };
        let cut =
            AdvancedDataDescriptor { payload_length, segment: true, ..packet(address, frame.len() as u16) };
        bench.vf(0).transmit(&[whole.emit(), context(0, 1000).emit(), cut.emit()]);
        let lengths: Vec<_> = bench.wire_got().iter().map(Vec::len).collect();
        assert_eq!(lengths, [1000, 1054, 1054, 554], "PAYLEN {payload_length}");
    }
}

#[test]
fn poll_writes_back_fewer_descriptors_than_wthresh() {
    let mut bench = bench();
    bench.vf(0).write(at(tx::TXDCTL), dctl::ENABLE | 31 << dctl::WTHRESH_SHIFT);
    let (_, descriptor) = placed(&mut bench, 100);
    bench.vf(0).transmit(&[descriptor.emit()]);
    assert!(bench.vf(0).is_done(0));
}

#[test]
fn txdctl_flush_bit_reads_zero_and_keeps_the_enable_bit() {
    let mut bench = bench();
    let (frame, descriptor) = placed(&mut bench, 100);
    bench.vf(0).transmit(&[descriptor.emit()]);
    bench.vf(0).write(at(tx::TXDCTL), dctl::ENABLE | dctl::SWFLSH);
    assert_eq!(bench.vf(0).read(at(tx::TXDCTL)), dctl::ENABLE);
    bench.vf(0).transmit(&[descriptor.emit()]);
    assert_eq!(bench.wire_got(), [frame.clone(), frame]);
    bench.vf(0).write(at(tx::TXDCTL), dctl::SWFLSH);
    assert_eq!(bench.vf(0).read(at(tx::TXDCTL)), 0, "DPDK stops a queue by writing SWFLSH alone");
}

#[test]
fn oversized_sent_packet_is_dropped_and_counted() {
    let mut bench = bench();
    let longest = MAX_FRAME as u16 - 4;
    let frame = plain(WIRE, mac(0), usize::from(longest) + 100);
    let address = bench.vf(0).place(&frame);
    bench.vf(0).transmit(&[packet(address, longest).emit(), packet(address, longest + 1).emit()]);
    let pieces = [data(address, 6000).emit(), packet(address, 6000).emit()];
    bench.vf(0).transmit(&pieces);
    assert_eq!(bench.wire_got(), [frame[..longest.into()].to_vec()]);
    assert_eq!([0, 1, 3].map(|i| bench.vf(0).is_done(i)), [true; 3]);
    assert_eq!(bench.nic.counters()[0].tx_invalid, 2);
    assert_eq!(inserted(&mut bench), Some(0), "the queue continues");
}

#[test]
fn all_16_queues_of_a_pf_send() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::TCTL, i82576::bits::tctl::EN);
    bench.pf().start();
    let frame = plain(WIRE, PORT, 60);
    let address = bench.pf().place(&frame);
    for queue in i82576::QueueIndex::all() {
        let ring = crate::common::TX_RING + 0x4_0000 + 0x100 * u64::from(queue.get());
        bench.pf().poke(ring, &packet(address, frame.len() as u16).emit());
        for (at, value) in
            [(tx::TDBAL, ring as u32), (tx::TDLEN, 128), (tx::TXDCTL, dctl::ENABLE), (tx::TDT, 1)]
        {
            bench.pf().write(r::tx_block(queue) + at, value);
        }
        bench.poll();
        assert_eq!(bench.wire_got(), std::slice::from_ref(&frame), "queue {}", queue.get());
        assert_eq!(bench.pf().read(r::tx_block(queue) + tx::TDH), 1);
    }
}
