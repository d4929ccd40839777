//! Gap in another 82576 model: DTXSWC.LLE, by which a pool gets its own frames back, has no effect.

use crate::common::{CardFixture, mac, plain};
use i82576::MacAddress;
use i82576::bits::dtxswc;
use i82576::register as r;

#[test]
fn loopback_bit_lle_returns_frames_to_its_own_pool_only() {
    let mut bench = CardFixture::new(2);
    for vf in 0..2 {
        bench.vf(vf).start();
    }
    bench.pf().write(r::DTXSWC, dtxswc::LOOPBACK_EN | 0b10 << dtxswc::LLE_SHIFT);
    for dst in [mac(1), MacAddress::BROADCAST] {
        bench.vf(1).send(&plain(dst, mac(1), 60));
        assert_eq!(bench.vf(1).received().len(), 1);
    }
    bench.vf(0).received();
    bench.vf(0).send(&plain(mac(0), mac(0), 60));
    bench.vf(0).expect_no_frame();
}
