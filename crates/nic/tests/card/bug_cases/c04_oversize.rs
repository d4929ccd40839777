//! Bug 4 of another 82576 model: the length limit applied to the port and not to each pool, and a jumbo frame
//! had to fit one buffer.

use crate::common::{CardFixture, POOL, mac, plain};
use i82576::MacAddress;
use i82576::PoolIndex;
use i82576::bits::vmolr;
use i82576::register as r;

#[test]
fn pool_rlpml_limits_length_and_long_frames_use_more_buffers() {
    let mut bench = CardFixture::new(3);
    let limits = [1522, 4000, 9728];
    for (n, limit) in (0..).zip(limits) {
        bench.vf(n).start();
        bench.pf().write(r::vmolr(PoolIndex::EVERY[usize::from(n)]), POOL & !vmolr::RLPML_MASK | limit);
    }
    for (length, expected) in [(1518, [1, 1, 1]), (1519, [0, 1, 1]), (3996, [0, 2, 2]), (3997, [0, 0, 2])] {
        bench.wire_sends(&plain(MacAddress::BROADCAST, mac(9), length - 14));
        let buffers: [usize; 3] =
            [0, 1, 2].map(|n| bench.vf(n).received().iter().map(|frame| frame.parts.len()).sum());
        assert_eq!(buffers, expected, "{length} bytes");
    }
    assert_eq!(bench.pf().read(r::ROC), 0, "a pool accepted each frame");
    bench.wire_sends(&plain(mac(1), mac(9), 5000));
    assert_eq!(bench.pf().read(r::ROC), 1);
    bench.wire_sends(&plain(mac(2), mac(9), 9710));
    let frame = bench.vf(2).expect_frame();
    assert_eq!((frame.bytes.len(), frame.parts.len()), (9724, 5));
}
