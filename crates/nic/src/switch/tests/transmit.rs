//! Tests the receivers of frames that pools send, and the frames that the switch drops.

use super::{
    A, A_BIT, B, B_BIT, BROADCAST, C, C_BIT, GROUP, PEER, VFS, copies, dropped, frame, out, port, ports,
    sender, to,
};
use crate::switch::{self, load};
use i82576::PoolIndex;
use i82576::bits::{dtxswc, vlvf, vmolr, vmvir};
use i82576::register as r;
use plane::switch::{FrameMetadata, SwitchDecision, SwitchDropReason};

#[test]
fn sent_unicast_to_a_local_pool_stays_off_the_wire() {
    assert_eq!(port().a_sends(B), to(B_BIT));
}

#[test]
fn sent_unknown_unicast_goes_to_the_wire_only() {
    assert_eq!(port().a_sends(PEER), out());
}

#[test]
fn sent_unicast_hash_table_hit_goes_to_pool_and_wire() {
    let port = port().pool(1, vmolr::ROPE).set(r::uta(0x990 >> 5), 1 << (0x990 & 31));
    assert_eq!(port.a_sends(PEER), SwitchDecision { uplink: true, ..to(B_BIT) });
}

#[test]
fn sent_multicast_goes_to_other_pools_and_the_wire() {
    let port = port().pool(1, vmolr::MPME).pool(0, vmolr::MPME);
    assert_eq!(port.a_sends(BROADCAST), SwitchDecision { uplink: true, ..copies(B_BIT | C_BIT) });
    assert_eq!(port.a_sends(GROUP), SwitchDecision { uplink: true, ..copies(B_BIT) });
}

#[test]
fn pool_receives_its_own_frames_only_if_its_lle_bit_is_set() {
    assert_eq!(port().a_sends(A), dropped(SwitchDropReason::OnlySender));
    let port = port().set(r::DTXSWC, 1 << dtxswc::LLE_SHIFT);
    assert_eq!(port.a_sends(A), to(A_BIT));
    assert_eq!(port.a_sends(BROADCAST).ports, ports(A_BIT | B_BIT | C_BIT));
}

#[test]
fn sent_frames_all_go_to_the_wire_without_loopback() {
    let port = port().clear(r::DTXSWC, dtxswc::LOOPBACK_EN);
    assert_eq!(port.a_sends(B), out());
    assert_eq!(port.a_sends(BROADCAST), SwitchDecision { uplink: true, ..copies(0) });
}

#[test]
fn sent_frame_to_a_pool_in_another_vlan_goes_to_the_wire() {
    let port = port().vlan(5, A_BIT | B_BIT, 0).vlan(6, A_BIT, 0);
    let tagged = |tag| FrameMetadata { vlan: Some(tag), ..frame(sender(0), A, B) };
    assert_eq!(port.decide(tagged(5)), to(B_BIT));
    assert_eq!(port.decide(tagged(6)), out());
}

#[test]
fn frame_of_a_local_vlan_stays_off_the_wire() {
    let port = port().vlan(5, A_BIT | B_BIT, vlvf::LVLAN);
    let tagged = |dst| FrameMetadata { vlan: Some(5), ..frame(sender(0), A, dst) };
    assert_eq!(port.decide(tagged(BROADCAST)), copies(B_BIT));
    assert_eq!(port.decide(tagged(PEER)), dropped(SwitchDropReason::Unwanted));
}

#[test]
fn local_frame_is_dropped_if_too_long_or_receiver_is_disabled() {
    assert_eq!(port().clear(r::VFRE, 2).a_sends(B), dropped(SwitchDropReason::Disabled));
    let long = FrameMetadata { length: 4000, ..frame(sender(0), A, B) };
    assert_eq!(port().decide(long), dropped(SwitchDropReason::TooLong));
}

#[test]
fn mac_anti_spoof_requires_a_receive_address_of_the_sender() {
    let spoofed = frame(sender(0), B, C);
    assert_eq!(port().decide(spoofed), to(C_BIT));
    let port = port().set(r::DTXSWC, 1 << dtxswc::MAC_SPOOF_SHIFT);
    assert_eq!(port.decide(spoofed), dropped(SwitchDropReason::SourceSpoofed));
    assert_eq!(port.a_sends(C), to(C_BIT));
    assert_eq!(port.decide(frame(sender(1), A, C)), to(C_BIT), "pool 1 is not checked");
}

#[test]
fn vlan_anti_spoof_requires_membership_of_the_sender() {
    let port = port().vlan(5, A_BIT, 0).vlan(6, B_BIT, 0).set(r::DTXSWC, 1 << dtxswc::VLAN_SPOOF_SHIFT);
    let tagged = |vlan| FrameMetadata { vlan, ..frame(sender(0), A, PEER) };
    assert_eq!(port.decide(tagged(Some(5))), out());
    assert_eq!(port.decide(tagged(Some(6))), dropped(SwitchDropReason::VlanSpoofed));
    assert_eq!(port.decide(tagged(Some(7))), dropped(SwitchDropReason::VlanSpoofed));
    assert_eq!(port.decide(tagged(None)), out());
}

#[test]
fn link_control_frames_of_a_vf_are_dropped() {
    let port = port().pool(1, vmolr::MPME);
    for control in ["01:80:c2:00:00:00", "01:80:c2:00:00:01", "01:80:c2:00:00:0e", "01:80:c2:00:00:0f"] {
        assert_eq!(port.a_sends(control), dropped(SwitchDropReason::LinkControl), "{control}");
        assert_eq!(port.wire(control), copies(B_BIT), "{control}");
    }
    assert!(port.a_sends("01:80:c2:00:00:10").uplink);
    let pf = frame(sender(7), C, "01:80:c2:00:00:02");
    assert!(port.decide(pf).uplink, "the PF may send LACP");
}

#[test]
fn vmvir_inserts_a_vlan_tag_or_forbids_tagged_frames() {
    let port = port()
        .set(r::vmvir(PoolIndex::FIRST), vmvir::DEFAULT | 0x6005)
        .set(r::vmvir(PoolIndex::EVERY[1]), vmvir::NEVER | 7);
    let tables = load(&port.file, VFS).0;
    let tags =
        |pool| [None, Some(9)].map(|tag| tables.transmit_tag(switch::port(PoolIndex::of_field(pool)), tag));
    assert_eq!([0, 1, 2].map(tags), [[Some(0x6005), Some(0x6005)], [None, None], [None, Some(9)]]);
}
