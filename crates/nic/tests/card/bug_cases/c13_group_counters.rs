//! Bug 13 of another 82576 model: broadcast and multicast frames were not counted, or in each other's
//! counter.

use crate::common::{CardFixture, POOL, mac, plain};
use i82576::MacAddress;
use i82576::PoolIndex;
use i82576::bits::vmolr;
use i82576::register::{self as r, vf};

const GROUP: MacAddress = MacAddress([0x01, 0, 0x5e, 0, 0, 1]);

#[test]
fn broadcasts_and_multicasts_have_separate_counters() {
    let mut bench = CardFixture::new(1);
    bench.vf(0).start();
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL | vmolr::MPME);
    for (to, count) in [(MacAddress::BROADCAST, 3), (GROUP, 2), (mac(0), 1)] {
        (0..count).for_each(|_| bench.wire_sends(&plain(to, mac(9), 60)));
    }
    for (to, count) in [(MacAddress::BROADCAST, 4), (GROUP, 5), (mac(9), 6)] {
        (0..count).for_each(|_| bench.vf(0).send(&plain(to, mac(0), 60)));
    }
    assert_eq!([r::BPRC, r::MPRC, r::GPRC].map(|at| bench.pf().read(at)), [3, 2, 6]);
    assert_eq!([r::BPTC, r::MPTC, r::GPTC].map(|at| bench.pf().read(at)), [4, 5, 15]);
    assert_eq!(bench.vf(0).read(vf::VFMPRC), 2);
}
