//! Gap in another 82576 model: EIAC and VTIVAR only gain bits, and VTIVAR does not serve the second queue
//! pair.

use crate::common::{CardFixture, index, mac, plain};
use i82576::PoolIndex;
use i82576::bits::{dctl, mrqc};
use i82576::register::{self as r, rx, vf};
use pcie::Function::Vf;

#[test]
fn eiac_and_vtivar_read_the_last_written_value() {
    let mut bench = CardFixture::new(1);
    for (eiac, vtivar) in [(7, 0x8382_8180), (2, 0x0000_8000), (0, 0), (5, 0x8080_8080)] {
        bench.vf(0).write(vf::VTEIAC, eiac);
        bench.vf(0).write(vf::VTIVAR, vtivar);
        assert_eq!((bench.vf(0).read(vf::VTEIAC), bench.vf(0).read(vf::VTIVAR)), (eiac, vtivar));
    }
}

#[test]
fn queue_with_a_cleared_vtivar_entry_does_not_interrupt() {
    let mut bench = CardFixture::new(1);
    bench.vf(0).start();
    bench.vf(0).write(vf::VTIVAR, 0x8082);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    bench.expect_msix(Vf(0), 2);
    bench.vf(0).write(vf::VTIVAR, 0x8000);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    bench.expect_no_msix();
}

#[test]
fn vtivar_has_entries_for_the_second_queue_pair() {
    let mut bench = CardFixture::new(1);
    // Two queues for each pool, and every entry of the redirection table selects the second.
    bench.pf().write(r::MRQC, mrqc::VMDQ_RSS | 0x1ff << 16);
    bench.pf().write(r::vmolr(PoolIndex::FIRST), crate::common::POOL | i82576::bits::vmolr::RSSE);
    for word in 0..32 {
        bench.pf().write(r::reta(word), 0x0101_0101);
    }
    bench.vf(0).start();
    let first = r::rx_block(index(0).queue(0));
    let second = vf::RX_BLOCK + vf::QUEUE_STRIDE;
    for at in [rx::RDBAL, rx::RDLEN, rx::SRRCTL, rx::RXDCTL, rx::RDT] {
        let value = bench.pf().read(first + at);
        bench.vf(0).write(second + at, value);
    }
    bench.vf(0).write(vf::RX_BLOCK + rx::RXDCTL, 0);
    assert_ne!(bench.vf(0).read(second + rx::RXDCTL) & dctl::ENABLE, 0);
    for (entries, vector) in [(0x0082_8181, 2), (0x0080_8181, 0)] {
        bench.vf(0).write(vf::VTIVAR, entries);
        bench.wire_sends(&crate::common::udp(mac(0), mac(9), &[0; 100]));
        bench.expect_msix(Vf(0), vector);
    }
}
