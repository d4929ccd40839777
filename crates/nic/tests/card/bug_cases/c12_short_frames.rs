//! Bug 12 of another 82576 model: a frame shorter than its headers was read beyond its end, and short frames
//! were not padded.

use crate::common::{CardFixture, data, mac, packet, plain};
use i82576::bits::rfctl;
use i82576::register as r;

#[test]
fn frame_shorter_than_an_ethernet_header_is_not_sent() {
    let mut bench = CardFixture::new(2);
    bench.vf(0).start();
    let address = bench.vf(0).place(&plain(mac(9), mac(0), 0));
    for length in 0..14 {
        bench.vf(0).transmit(&[packet(address, length).emit()]);
        bench
            .vf(0)
            .transmit(&[data(address, length / 2).emit(), packet(address, length - length / 2).emit()]);
    }
    assert!(bench.wire_got().is_empty());
    assert_eq!(bench.nic.counters()[0].tx_invalid, 28);
}

#[test]
fn short_frame_is_padded_with_zeros_for_vf_and_wire() {
    let mut bench = CardFixture::new(2);
    bench.vf(0).start();
    bench.vf(1).start();
    // The counting bytes behind a tag are a length field with a wrong length, which LEF accepts.
    bench.pf().write(r::RFCTL, rfctl::LEF);
    for kind in [[8, 0], [0x86, 0xdd], [0x81, 0], [0x88, 0xa8]] {
        for length in 14..60 {
            let mut frame = plain(mac(1), mac(0), length - 14);
            frame[12..14].copy_from_slice(&kind);
            bench.vf(0).send(&frame);
            let mut padded = frame.clone();
            padded.resize(60, 0);
            assert_eq!(bench.vf(1).expect_frame().bytes, padded);
            bench.vf(1).post(1);
            bench.wire_sends(&frame);
            assert_eq!(bench.vf(1).expect_frame().bytes, padded, "from the wire");
            bench.vf(1).post(1);
        }
    }
}

#[test]
fn received_frame_below_14_bytes_is_dropped_and_counted() {
    let mut bench = CardFixture::new(1);
    bench.vf(0).start();
    for length in 0..14 {
        bench.wire_sends(&plain(mac(0), mac(9), 0)[..length]);
    }
    bench.vf(0).expect_no_frame();
    assert_eq!(bench.pf().read(r::RUC), 14);
}
