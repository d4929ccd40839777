//! Bug 16 of another 82576 model: with two tags the outer one was stripped and filtered. The card strips, inserts and
//! filters the inner tag; the outer one stays in the frame.

use crate::common::{CardFixture, POOL, mac, packet, plain, tagged, tcp};
use i82576::PoolIndex;
use i82576::bits::{ctrl_ext, rctl, vlvf, vmolr, vmvir};
use i82576::descriptor::rx::{packet_type, status};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor};
use i82576::register as r;

/// Returns a card that expects outer tags of type 0x88a8, and whose VF 0 has running rings.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(2);
    bench.vf(0).start();
    bench.pf().write(r::VET, 0x88a8_8100);
    bench.pf().set(r::CTRL_EXT, ctrl_ext::EXT_VLAN);
    bench
}

/// Returns the frame with an outer tag of type 0x88a8.
fn outer(tag: u16, frame: &[u8]) -> Vec<u8> {
    let mut both = tagged(tag, frame);
    both[12..14].copy_from_slice(&[0x88, 0xa8]);
    both
}

fn frame() -> Vec<u8> {
    tcp(mac(0), mac(9), &[7; 100])
}

#[test]
fn inner_vlan_tag_is_stripped_and_outer_tag_sets_vext() {
    let mut bench = bench();
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL | vmolr::STRVLAN);
    bench.wire_sends(&outer(5, &tagged(0x6064, &frame())));
    let received = bench.vf(0).expect_frame();
    assert_eq!(received.bytes, outer(5, &frame()));
    let last = received.last();
    assert_eq!(last.vlan_tag, 0x6064);
    let sums = status::IPCS | status::L4CS;
    assert_eq!(last.status & (status::VP | status::VEXT | sums), status::VP | status::VEXT | sums);
    assert_eq!(last.packet_type, packet_type::IPV4 | packet_type::TCP);
}

#[test]
fn single_tag_in_double_vlan_mode_is_outer_and_not_stripped() {
    let mut bench = bench();
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL | vmolr::STRVLAN);
    bench.wire_sends(&outer(5, &frame()));
    let received = bench.vf(0).expect_frame();
    assert_eq!(received.bytes, outer(5, &frame()));
    assert_eq!(received.last().status & (status::VP | status::VEXT), status::VEXT);
}

#[test]
fn vlan_filters_compare_the_inner_of_two_vlan_tags() {
    let mut bench = bench();
    bench.pf().set(r::RCTL, rctl::VFE);
    bench.pf().write(r::vfta(0), 1 << 20);
    bench.pf().write(r::vlvf(0), vlvf::VLANID_EN | 1 << vlvf::POOLSEL_SHIFT | 20);
    bench.wire_sends(&outer(20, &tagged(21, &frame())));
    bench.vf(0).expect_no_frame();
    bench.wire_sends(&outer(21, &tagged(20, &frame())));
    bench.vf(0).expect_frame();
    bench.wire_sends(&outer(21, &frame()));
    bench.vf(0).expect_frame();
}

#[test]
fn frame_without_outer_tag_in_double_vlan_mode_has_no_offloads() {
    let mut bench = bench();
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL | vmolr::STRVLAN);
    for bare in [frame(), tagged(5, &frame())] {
        bench.wire_sends(&bare);
        let received = bench.vf(0).expect_frame();
        assert_eq!(received.bytes, bare);
        assert_eq!((received.last().packet_type, received.last().status), (0, 1 | status::EOP));
    }
}

#[test]
fn inserted_vlan_tag_goes_behind_the_outer_tag() {
    let mut bench = bench();
    let whole = outer(5, &plain(mac(9), mac(0), 100));
    let both = |tag| outer(5, &tagged(tag, &plain(mac(9), mac(0), 100)));
    let address = bench.vf(0).place(&whole);
    let ask = AdvancedDataDescriptor { insert_vlan: true, ..packet(address, whole.len() as u16) };
    bench.vf(0).transmit(&[
        AdvancedContextDescriptor { vlan_tag: 7, ..AdvancedContextDescriptor::default() }.emit(),
        ask.emit(),
    ]);
    assert_eq!(bench.wire_got(), [both(7)]);
    bench.pf().write(r::vmvir(PoolIndex::FIRST), vmvir::DEFAULT | 8);
    bench.vf(0).send(&whole);
    bench.vf(0).send(&both(7));
    assert_eq!(bench.wire_got(), [both(8), both(8)]);
}

#[test]
fn frame_without_outer_vlan_tag_gets_no_inserted_tag() {
    let mut bench = bench();
    let bare = plain(mac(9), mac(0), 100);
    bench.vf(0).send(&bare);
    assert_eq!(bench.wire_got(), std::slice::from_ref(&bare));
    bench.pf().write(r::vmvir(PoolIndex::FIRST), vmvir::DEFAULT | 8);
    bench.vf(0).send(&bare);
    assert!(bench.wire_got().is_empty());
    assert_eq!(bench.nic.counters()[0].tx_invalid, 1);
}

#[test]
fn frame_of_1526_bytes_with_two_vlan_tags_needs_no_lpe() {
    let mut bench = bench();
    bench.pf().clear(r::RCTL, rctl::LPE);
    let longest = outer(5, &tagged(6, &plain(mac(0), mac(9), 1500)));
    bench.wire_sends(&longest);
    assert_eq!(bench.vf(0).expect_frame().bytes.len() + 4, 1526);
    bench.wire_sends(&outer(5, &tagged(6, &plain(mac(0), mac(9), 1501))));
    bench.vf(0).expect_no_frame();
    assert_eq!(bench.pf().read(r::ROC), 1);
}

#[test]
fn lower_half_of_vet_is_the_inner_tags_ether_type() {
    let mut bench = CardFixture::new(2);
    bench.vf(0).start();
    bench.pf().write(r::VET, 0x9100);
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL | vmolr::STRVLAN);
    let mut other = tagged(0x6064, &frame());
    other[12..14].copy_from_slice(&[0x91, 0x00]);
    bench.wire_sends(&other);
    let received = bench.vf(0).expect_frame();
    assert_eq!((received.bytes, received.parts[0].vlan_tag), (frame(), 0x6064));
    bench.wire_sends(&tagged(5, &frame()));
    let received = bench.vf(0).expect_frame();
    assert_eq!(
        (received.bytes, received.parts[0].vlan_tag),
        (tagged(5, &frame()), 0),
        "type 0x8100 is payload now"
    );
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL);
    bench.wire_sends(&other);
    assert_eq!(bench.vf(0).expect_frame().bytes, other);
    bench.pf().write(r::vmvir(PoolIndex::FIRST), vmvir::DEFAULT | 7);
    bench.vf(0).send(&plain(mac(9), mac(0), 60));
    assert_eq!(bench.wire_got()[0][12..16], [0x91, 0x00, 0, 7], "the card inserts tags of VET's type");
}
