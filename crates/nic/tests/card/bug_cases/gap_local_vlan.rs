//! Gap in another 82576 model: VLVF.LVLAN is ignored, so a local VLAN leaks to the wire.

use crate::common::{CardFixture, mac, plain, tagged};
use i82576::MacAddress;
use i82576::bits::{rctl, vlvf};
use i82576::register as r;

#[test]
fn frame_of_a_vlan_marked_local_stays_off_the_wire() {
    let mut bench = CardFixture::new(2);
    for vf in 0..2 {
        bench.vf(vf).start();
    }
    bench.pf().set(r::RCTL, rctl::VFE);
    bench.pf().write(r::vfta(0), 1 << 5);
    let members = vlvf::VLANID_EN | 5 | 0b11 << vlvf::POOLSEL_SHIFT;
    for (flags, leaks) in [(vlvf::LVLAN, 0), (0, 2)] {
        bench.pf().write(r::vlvf(0), members | flags);
        bench.vf(0).send(&tagged(5, &plain(MacAddress::BROADCAST, mac(0), 60)));
        bench.vf(0).send(&tagged(5, &plain(mac(9), mac(0), 60)));
        assert_eq!((bench.vf(1).received().len(), bench.wire_got().len()), (1, leaks));
    }
}
