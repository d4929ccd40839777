//! Gap in another 82576 model: RTTBCNRC, a pool's transmit rate, has no effect. `pacing` tests the exactness of rates.

use crate::common::{CardFixture, mac, packet, plain};
use i82576::bits::rttbcnrc::{INTEGER_SHIFT, RS_ENA};
use i82576::register as r;
use std::time::Duration;

/// Sends 20 frames of 1,000 bytes from a VF, with a poll at each deadline of the card. Returns the time that passes,
/// and the number of frames on the wire.
fn time_of_20(bench: &mut CardFixture, from: u8) -> (Duration, usize) {
    let start = bench.now;
    bench.vf(from).start();
    let frame = bench.vf(from).place(&plain(mac(9), mac(from), 986));
    for _ in 0..20 {
        bench.vf(from).put(packet(frame, 1000).emit());
    }
    bench.vf(from).ring();
    while let Some(deadline) = bench.poll().deadline {
        bench.now = deadline;
    }
    (bench.now - start, bench.wire_got().len())
}

#[test]
fn transmit_rate_delays_only_its_own_vf() {
    let mut bench = CardFixture::new(2);
    bench.pf().write(r::RTTDQSEL, 0);
    bench.pf().write(r::RTTBCNRC, RS_ENA | 100 << INTEGER_SHIFT);
    let (time, frames) = time_of_20(&mut bench, 0);
    // 19 frames of 1,004 bytes are paid for at 10 Mb/s before the last one leaves.
    let wanted = Duration::from_nanos(19 * 1004 * 8 * 100);
    assert_eq!(frames, 20);
    assert!(time >= wanted && time <= wanted + wanted / 50, "{time:?} for {wanted:?}");
    assert_eq!(time_of_20(&mut bench, 1), (Duration::ZERO, 20));
    bench.pf().write(r::RTTBCNRC, 0);
    assert_eq!(time_of_20(&mut bench, 0), (Duration::ZERO, 20), "without the limit");
}
