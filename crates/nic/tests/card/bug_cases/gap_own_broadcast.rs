//! Gap in another 82576 model: a pool gets its own broadcasts and multicasts back.

use crate::common::{CardFixture, POOL, mac, plain};
use i82576::MacAddress;
use i82576::PoolIndex;
use i82576::bits::vmolr;
use i82576::register as r;

#[test]
fn pool_does_not_receive_its_own_multicasts() {
    let mut bench = CardFixture::new(2);
    for vf in 0..2 {
        bench.vf(vf).start();
        bench.pf().write(r::vmolr(PoolIndex::EVERY[usize::from(vf)]), POOL | vmolr::MPME);
    }
    for dst in [MacAddress::BROADCAST, MacAddress([0x33, 0x33, 0, 0, 0, 1])] {
        bench.vf(0).send(&plain(dst, mac(0), 60));
        let got = [0, 1].map(|vf| bench.vf(vf).received().len());
        assert_eq!((got, bench.wire_got().len()), ([0, 1], 1), "{dst}");
    }
}
