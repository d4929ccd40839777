//! Tests a PF that writes any value to the filter registers, and a wire that sends any bytes. The card does not panic,
//! and no frame leaves the pool that the switch has selected.

use crate::common::{CardFixture, mac, tcp};
use i82576::register::{self as r, rx, rx_block};
use i82576::{QueueIndex, VfIndex};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;

/// Returns the offsets of the registers of receive filters and time stamps, with all elements of arrays.
fn registers() -> Vec<u32> {
    let arrays: [fn(u32) -> u32; 7] = [r::etqf, r::ftqf, r::saqf, r::daqf, r::spqf, r::imir, r::imirext];
    let elements = arrays.into_iter().flat_map(|register| (0..8).map(register));
    let single = [r::SYNQF, r::IMIRVP, r::RFCTL, r::VET, r::GPIE, r::TCPTIMER, r::RXCSUM];
    let timed = [r::TSYNCRXCTL, r::TSYNCRXCFG, r::TSYNCTXCTL, r::TIMINCA];
    elements.chain(single).chain(timed).chain(i82576::PoolIndex::EVERY.map(r::psrtype)).collect()
}

/// Draws a register value: zero, all ones, or any. Filters match more often with all or none of their bits.
fn value() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(u32::MAX), any::<u32>(), (0u32..32).prop_map(|bit| !0 << bit)]
}

proptest! {
    #![proptest_config(Config { cases: 200, ..Config::default() })]

    #[test]
    fn frame_stays_in_its_pool_under_any_filters(
        writes in proptest::collection::vec((any::<proptest::sample::Index>(), value()), 0..120),
        frames in proptest::collection::vec(proptest::collection::vec(0u8.., 0..200), 1..6),
        control in 0u32..16,
    ) {
        let mut bench = CardFixture::new(3);
        for vf in 0..3 {
            bench.vf(vf).start();
            let (first, kind) = (bench.vf(vf).rx(rx::SRRCTL), control % 8);
            bench.vf(vf).write(first, 2 | 2 << 8 | kind << 25 | 1 << 31);
        }
        let registers = registers();
        for (register, value) in writes {
            bench.pf().write(*register.get(&registers), value);
        }
        for bytes in frames {
            // Both go to VF 1: plain bytes, and a segment that these bytes overwrite in part.
            let mut frame = tcp(mac(1), mac(9), &bytes);
            bench.wire_sends(&[&frame[..12], &bytes].concat());
            let length = frame.len();
            bytes.iter().for_each(|byte| frame[12 + usize::from(*byte) % (length - 12)] ^= byte);
            bench.wire_sends(&frame);
        }
        let own = VfIndex::new(1).unwrap();
        for queue in QueueIndex::all().filter(|queue| queue.pool() != own.pool()) {
            assert_eq!(bench.pf().read(rx_block(queue) + rx::RDH), 0, "queue {}", queue.get());
        }
        bench.wait_us(1_000_000);
        bench.poll();
    }
}
