//! Gap in another 82576 model: VT_CTL.IGNORE_MAC, which selects pools by VLAN alone, has no effect.

use crate::common::{CardFixture, mac, plain, tagged};
use i82576::bits::{rctl, vlvf, vt_ctl};
use i82576::register as r;

#[test]
fn ignore_mac_setting_selects_pools_only_by_vlan() {
    let mut bench = CardFixture::new(3);
    for vf in 0..3 {
        bench.vf(vf).start();
    }
    bench.pf().set(r::RCTL, rctl::VFE);
    bench.pf().write(r::vfta(0), 1 << 5);
    bench.pf().write(r::vlvf(0), vlvf::VLANID_EN | 5 | 0b110 << vlvf::POOLSEL_SHIFT);
    bench.pf().set(r::VT_CTL, vt_ctl::IGNORE_MAC);
    bench.wire_sends(&tagged(5, &plain(mac(0), mac(9), 60)));
    let got = [0, 1, 2].map(|vf| bench.vf(vf).received().len());
    assert_eq!(got, [0, 1, 1], "the frame has VF 0's address, and VF 1's and 2's VLAN");
}
