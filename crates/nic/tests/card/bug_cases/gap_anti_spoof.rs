//! Gap in another 82576 model: there is no anti-spoofing, and WVBR stays empty.

use crate::common::{CardFixture, mac, plain, tagged};
use i82576::bits::{dtxswc, icr, rctl, vlvf};
use i82576::register as r;

/// Sends `frame` from VF 1, a member of VLAN 5, under the anti-spoofing bits `check` of DTXSWC. Returns the number of
/// frames on the wire, and WVBR.
fn sent(check: u32, frame: &[u8]) -> (usize, u32) {
    let mut bench = CardFixture::new(2);
    bench.pf().write(r::DTXSWC, dtxswc::LOOPBACK_EN | check);
    bench.pf().set(r::RCTL, rctl::VFE);
    bench.pf().write(r::vfta(0), 1 << 5 | 1 << 6);
    bench.pf().write(r::vlvf(0), vlvf::VLANID_EN | 5 | 0b10 << vlvf::POOLSEL_SHIFT);
    bench.pf().write(r::vlvf(1), vlvf::VLANID_EN | 6 | 0b01 << vlvf::POOLSEL_SHIFT);
    bench.vf(1).start();
    bench.vf(1).send(frame);
    let interrupted = bench.pf().read(r::ICR) & icr::DOUTSYNC != 0;
    let behaviour = bench.pf().read(r::WVBR);
    assert_eq!(interrupted, behaviour != 0);
    (bench.wire_got().len(), behaviour)
}

const MAC_OF_1: u32 = 2 << dtxswc::MAC_SPOOF_SHIFT;
const VLAN_OF_1: u32 = 2 << dtxswc::VLAN_SPOOF_SHIFT;

#[test]
fn sent_frame_with_a_foreign_source_mac_is_dropped() {
    assert_eq!(sent(MAC_OF_1, &plain(mac(9), mac(1), 60)), (1, 0));
    assert_eq!(sent(MAC_OF_1, &plain(mac(9), mac(0), 60)), (0, 2), "a neighbour's address");
    assert_eq!(sent(MAC_OF_1, &plain(mac(9), mac(8), 60)), (0, 2), "an unknown address");
    assert_eq!(sent(MAC_OF_1 << 1, &plain(mac(9), mac(8), 60)), (1, 0), "no check of VF 1");
}

#[test]
fn sent_frame_with_a_foreign_vlan_is_dropped() {
    let frame = |tag| tagged(tag, &plain(mac(9), mac(1), 60));
    assert_eq!(sent(VLAN_OF_1, &frame(5)), (1, 0));
    assert_eq!(sent(VLAN_OF_1, &frame(6)), (0, 2));
    assert_eq!(sent(VLAN_OF_1, &frame(7)), (0, 2));
    assert_eq!(sent(0, &frame(6)), (1, 0), "no check of VF 1");
}
