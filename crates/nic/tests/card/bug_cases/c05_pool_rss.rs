//! Bug 5 of another 82576 model: RSS within a pool (VMOLR.RSSE under MRQC mode 5) did not use the pool's two
//! queues.

use crate::common::{CardFixture, POOL, mac, tcp};
use i82576::PoolIndex;
use i82576::bits::{mrqc, vmolr};
use i82576::register::{self as r, rx, vf};

/// Returns a card whose VF 2 runs both of its queues.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    bench.vf(2).start();
    bench.vf(2).start_second_receive();
    bench.pf().write(r::MRQC, mrqc::VMDQ_RSS | 1 << mrqc::HASH_TYPES_SHIFT);
    bench.pf().write(r::vmolr(PoolIndex::EVERY[2]), POOL | vmolr::RSSE);
    bench
}

/// Returns the number of receive descriptors that the card has filled in each of VF 2's queues.
fn heads(bench: &mut CardFixture) -> [u32; 2] {
    [0, vf::QUEUE_STRIDE].map(|queue| bench.vf(2).read(vf::RX_BLOCK + queue + rx::RDH))
}

#[test]
fn low_rss_table_bit_selects_the_pools_first_or_second_queue() {
    let mut bench = bench();
    for (entry, expected) in [(0, [1, 0]), (1, [1, 1]), (0xfe, [2, 1]), (0xff, [2, 2])] {
        (0..32).for_each(|word| bench.pf().write(r::reta(word), entry * 0x0101_0101));
        bench.wire_sends(&tcp(mac(2), mac(9), &[7; 100]));
        assert_eq!(heads(&mut bench), expected, "entry {entry:#x}");
    }
}

#[test]
fn pool_without_rss_receives_in_its_first_queue() {
    let mut bench = bench();
    (0..32).for_each(|word| bench.pf().write(r::reta(word), 0x0101_0101));
    bench.pf().write(r::vmolr(PoolIndex::EVERY[2]), POOL);
    bench.wire_sends(&tcp(mac(2), mac(9), &[7; 100]));
    bench.pf().write(r::vmolr(PoolIndex::EVERY[2]), POOL | vmolr::RSSE);
    bench.pf().write(r::MRQC, mrqc::VMDQ | 1 << mrqc::HASH_TYPES_SHIFT);
    bench.wire_sends(&tcp(mac(2), mac(9), &[7; 100]));
    assert_eq!(heads(&mut bench), [2, 0]);
}
