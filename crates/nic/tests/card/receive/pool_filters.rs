//! Tests filters on a port with pools: the switch chooses the pool, and a filter chooses between its two queues.
//! `queue_filters` tests the fields that a filter compares.

use crate::common::{CardFixture, mac, tcp};
use i82576::bits::{etqf, ftqf, imir, imirext, synqf};
use i82576::register::{self as r, rx, vf};

const ANY: u32 = 0xf000_0000 | ftqf::QUEUE_ENABLE;

/// Returns a card whose VFs 1 and 2 run both of their receive queues.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    for n in [1, 2] {
        bench.vf(n).start();
        bench.vf(n).start_second_receive();
    }
    bench.pf().write(r::imir(0), imir::ANY_PORT);
    bench.pf().write(r::imirext(0), imirext::ANY_SIZE | imirext::ANY_FLAGS);
    bench
}

/// Sends a segment to VF `n`, and returns the number of descriptors that its first and second queue have filled.
fn filled(bench: &mut CardFixture, n: u8) -> [u32; 2] {
    let heads = |bench: &mut CardFixture| {
        [0, vf::QUEUE_STRIDE].map(|queue| bench.vf(n).read(vf::RX_BLOCK + queue + rx::RDH))
    };
    let before = heads(bench);
    bench.wire_sends(&tcp(mac(n), mac(9), &[7; 100]));
    let after = heads(bench);
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn queue_filter_selects_the_second_queue_of_its_pool() {
    let mut bench = bench();
    assert_eq!(filled(&mut bench, 2), [1, 0]);
    bench.pf().write(r::ftqf(0), ANY | ftqf::ANY_POOL | 10 << ftqf::QUEUE_SHIFT);
    assert_eq!(filled(&mut bench, 2), [0, 1]);
    bench.pf().write(r::ftqf(0), 0);
    bench.pf().write(r::etqf(0), 0x0800 | 10 << etqf::QUEUE_SHIFT | etqf::ENABLE | etqf::QUEUE_ENABLE);
    assert_eq!(filled(&mut bench, 2), [0, 1]);
}

#[test]
fn queue_filter_keeps_a_frame_in_its_pool() {
    let mut bench = bench();
    bench.pf().write(r::ftqf(0), ANY | ftqf::ANY_POOL | 10 << ftqf::QUEUE_SHIFT);
    bench.pf().write(r::etqf(0), 0x0800 | 10 << etqf::QUEUE_SHIFT | etqf::ENABLE | etqf::QUEUE_ENABLE);
    bench.pf().write(r::SYNQF, synqf::QUEUE_ENABLE | 10 << synqf::QUEUE_SHIFT);
    assert_eq!(filled(&mut bench, 1), [1, 0], "queue 10 is VF 2's");
}

#[test]
fn five_tuple_filter_with_a_pool_applies_only_to_that_pool() {
    let mut bench = bench();
    for (pool, expected) in [(2, [0, 1]), (1, [1, 0])] {
        bench.pf().write(r::ftqf(0), ANY | pool << ftqf::POOL_SHIFT | 10 << ftqf::QUEUE_SHIFT);
        assert_eq!(filled(&mut bench, 2), expected);
    }
}
