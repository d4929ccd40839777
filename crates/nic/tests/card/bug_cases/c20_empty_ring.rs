//! Bug 20 of another 82576 model: a ring without descriptors, or with its tail beyond its end, made the model
//! loop for ever.

use crate::common::{CardFixture, mac, packet, plain};
use i82576::register::{tx, vf};

#[test]
fn ring_of_any_length_and_tail_causes_bounded_memory_requests() {
    for length in [0, 128, 1024] {
        for tail in [0, 7, 8, 63, 64, 0xffff] {
            let mut bench = CardFixture::new(1);
            bench.vf(0).start();
            bench.vf(0).write(vf::TX_BLOCK + tx::TDLEN, length);
            bench.vf(0).write(vf::TX_BLOCK + tx::TDT, tail);
            bench.world.bus.log.clear();
            bench.poll();
            let fits = tail < length / 16;
            assert!(bench.world.bus.log.len() <= if fits { 64 } else { 0 }, "{length} bytes, tail {tail}");
        }
    }
}

#[test]
fn queue_works_after_an_invalid_ring_is_corrected() {
    let mut bench = CardFixture::new(1);
    bench.vf(0).start();
    let frame = plain(mac(9), mac(0), 60);
    let address = bench.vf(0).place(&frame);
    bench.vf(0).write(vf::TX_BLOCK + tx::TDLEN, 0);
    bench.vf(0).put(packet(address, 74).emit());
    bench.vf(0).ring();
    bench.expect_nothing();
    bench.vf(0).write(vf::TX_BLOCK + tx::TDLEN, 1024);
    bench.poll();
    assert_eq!(bench.wire_got(), [frame]);
}
