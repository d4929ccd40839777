//! Gap in another 82576 model: RQDPC, the counter of dropped packets, counts on queue 0 only.

use crate::common::{CardFixture, index, mac, plain};
use i82576::register::{self as r, rx, rx_block, vf};

#[test]
fn drop_counter_rqdpc_of_each_queue_clears_on_read() {
    let mut bench = CardFixture::new(7);
    for n in 0..7 {
        bench.vf(n).start();
        bench.vf(n).write(vf::RX_BLOCK + rx::RDT, 0);
        bench.wire_sends(&plain(mac(n), mac(9), 60));
        bench.wire_sends(&plain(mac(n), mac(9), 60));
        assert_eq!(bench.vf(n).read(vf::RX_BLOCK + rx::RQDPC), 2);
        assert_eq!(
            bench.pf().read(rx_block(index(n).queue(0)) + rx::RQDPC),
            0,
            "PF and VF read the same counter"
        );
    }
    assert_eq!(bench.pf().read(r::MPC), 0);
}
