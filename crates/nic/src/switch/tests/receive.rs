//! Tests the choice of the pools that receive a frame from the wire.

use super::{A, A_BIT, B, B_BIT, BROADCAST, C, C_BIT, GROUP, PEER, copies, dropped, frame, port, to};
use i82576::PoolIndex;
use i82576::bits::{rah, rctl, vmolr, vt_ctl};
use i82576::register as r;
use plane::switch::{FrameMetadata, FrameOrigin, SwitchDecision, SwitchDropReason};

#[test]
fn broadcast_goes_only_to_pools_that_accept_broadcasts() {
    assert_eq!(
        port().clear(r::vmolr(PoolIndex::EVERY[1]), vmolr::BAM).wire(BROADCAST),
        copies(A_BIT | C_BIT)
    );
}

#[test]
fn frame_goes_to_every_pool_of_its_exact_address() {
    assert_eq!(port().wire(B), to(B_BIT));
    assert_eq!(port().mac(2, B).wire(B), to(B_BIT | C_BIT));
}

#[test]
fn receive_address_without_its_valid_bit_matches_no_frame() {
    assert_eq!(port().clear(r::rah(1), rah::AV).pool(7, vmolr::AUPE).wire(B), to(0x80));
}

#[test]
fn receive_address_registers_16_to_23_match_frames() {
    let mut port = port();
    port.addresses = 23;
    assert_eq!(port.mac(2, PEER).wire(PEER), to(C_BIT));
}

#[test]
fn unicast_hash_table_hit_goes_to_pools_that_accept_hits() {
    // MO = 0: address bits 47:36 of 02:00:00:00:00:99 are 0x990.
    let port = port().pool(1, vmolr::ROPE).set(r::uta(0x990 >> 5), 1 << (0x990 & 31));
    assert_eq!(port.wire(PEER), to(B_BIT));
    assert_eq!(port.wire(C), to(C_BIT), "an exact match excludes the table");
}

#[test]
fn multicast_hash_table_hit_goes_to_pools_that_accept_hits() {
    // MO = 0: address bits 47:36 of 01:00:5e:00:00:fb are 0xfb0.
    let port = port().pool(1, vmolr::ROMPE).set(r::mta(0xfb0 >> 5), 1 << (0xfb0 & 31));
    assert_eq!(port.wire(GROUP), copies(B_BIT));
    assert_eq!(port.wire("01:00:5e:00:00:fa").dropped, Some(SwitchDropReason::Unwanted));
}

#[test]
fn multicast_offset_selects_the_address_bits_that_are_hashed() {
    // Bits 47:32 of the address are 0xc35a.
    for (mo, hash) in [(0, 0xc35), (1, 0x86b), (2, 0x0d6), (3, 0x35a)] {
        let port = port().pool(1, vmolr::ROMPE).set(r::RCTL, mo << rctl::MO_SHIFT);
        let port = port.set(r::mta(hash >> 5), 1 << (hash & 31));
        assert_eq!(port.wire("01:00:5e:00:5a:c3"), copies(B_BIT), "MO = {mo}");
    }
}

#[test]
fn multicast_promiscuous_pool_receives_all_multicast() {
    let port = port().pool(1, vmolr::MPME).mac(2, GROUP);
    assert_eq!(port.wire(GROUP), copies(B_BIT | C_BIT));
    assert_eq!(port.wire("33:33:00:00:00:01"), copies(B_BIT));
}

#[test]
fn unmatched_unicast_from_the_wire_goes_to_the_default_pool() {
    assert_eq!(port().pool(7, vmolr::AUPE).wire(PEER), to(0x80));
    assert_eq!(port().set(r::VT_CTL, vt_ctl::DIS_DEF_PL).wire(PEER), dropped(SwitchDropReason::Unwanted));
}

#[test]
fn unmatched_multicast_is_dropped() {
    assert_eq!(port().pool(7, vmolr::AUPE).wire(GROUP).dropped, Some(SwitchDropReason::Unwanted));
}

#[test]
fn ignore_mac_selects_pools_only_by_vlan() {
    let port = port().set(r::VT_CTL, vt_ctl::IGNORE_MAC).vlan(5, B_BIT | C_BIT, 0);
    let tagged = FrameMetadata { vlan: Some(5), ..frame(FrameOrigin::Uplink, PEER, A) };
    assert_eq!(port.decide(tagged), to(B_BIT | C_BIT));
}

#[test]
fn tagged_frame_needs_its_vlan_in_the_table_and_a_member_pool() {
    let tagged = |tag| FrameMetadata { vlan: Some(tag), ..frame(FrameOrigin::Uplink, PEER, B) };
    let port = port().vlan(5, B_BIT, 0).vlan(6, A_BIT, 0);
    assert_eq!(port.decide(tagged(5)), to(B_BIT));
    assert_eq!(port.decide(tagged(0xe005)), to(B_BIT), "priority is not part of the id");
    assert_eq!(port.decide(tagged(6)), dropped(SwitchDropReason::Unwanted));
    assert_eq!(port.clear(r::vfta(0), 1 << 5).decide(tagged(5)), dropped(SwitchDropReason::Unwanted));
}

#[test]
fn untagged_frames_go_to_pools_that_accept_untagged_frames() {
    let port = port().vlan(5, B_BIT, 0).clear(r::vmolr(PoolIndex::EVERY[1]), vmolr::AUPE);
    assert_eq!(port.wire(B), dropped(SwitchDropReason::Unwanted));
    assert_eq!(port.clear(r::RCTL, rctl::VFE).wire(B), to(B_BIT));
}

#[test]
fn default_pool_needs_vlan_membership() {
    let tagged = |tag| FrameMetadata { vlan: Some(tag), ..frame(FrameOrigin::Uplink, PEER, PEER) };
    let port = port().vlan(5, 0x80, 0).vlan(6, A_BIT, 0);
    assert_eq!(port.decide(tagged(5)), to(0x80));
    assert_eq!(port.decide(tagged(6)), dropped(SwitchDropReason::Unwanted));
}

#[test]
fn vfre_bit_enables_reception_of_each_pool() {
    let port = port().clear(r::VFRE, 2);
    assert_eq!(port.wire(B), dropped(SwitchDropReason::Disabled));
    assert_eq!(port.wire(BROADCAST), copies(A_BIT | C_BIT));
}

#[test]
fn rctl_en_enables_reception_of_the_port() {
    assert_eq!(port().clear(r::RCTL, rctl::EN).wire(B), dropped(SwitchDropReason::Disabled));
}

#[test]
fn pool_without_lpe_accepts_1518_bytes_plus_a_vlan_tag() {
    let long = |length, vlan| FrameMetadata { length, vlan, ..frame(FrameOrigin::Uplink, PEER, B) };
    let port = port();
    assert_eq!(port.decide(long(1514, None)), to(B_BIT));
    assert_eq!(port.decide(long(1515, None)), dropped(SwitchDropReason::TooLong));
    assert_eq!(port.decide(long(1518, Some(1))), to(B_BIT));
    assert_eq!(port.decide(long(1519, Some(1))), dropped(SwitchDropReason::TooLong));
}

#[test]
fn rlpml_limits_frame_length_of_each_pool_separately() {
    let port = port().clear(r::vmolr(PoolIndex::EVERY[1]), vmolr::RLPML_MASK).pool(1, vmolr::LPE | 9018);
    let long = |length| FrameMetadata { length, ..frame(FrameOrigin::Uplink, PEER, BROADCAST) };
    assert_eq!(port.decide(long(9014)), copies(B_BIT));
    assert_eq!(port.decide(long(9015)).dropped, Some(SwitchDropReason::TooLong));
    assert_eq!(port.clear(r::RCTL, rctl::LPE).decide(long(9014)).dropped, Some(SwitchDropReason::TooLong));
}

#[test]
fn multicast_goes_to_the_default_pool_without_replication() {
    let port = port().clear(r::VT_CTL, vt_ctl::REPL_EN).pool(7, vmolr::AUPE).pool(1, vmolr::MPME);
    assert_eq!(port.wire(BROADCAST), to(0x80));
    assert_eq!(port.wire(GROUP), to(0x80));
    let port = port.set(r::VT_CTL, vt_ctl::DIS_DEF_PL);
    assert_eq!(port.wire(BROADCAST), dropped(SwitchDropReason::Unwanted));
}

#[test]
fn lowest_matching_pool_receives_without_replication() {
    let port = port().clear(r::VT_CTL, vt_ctl::REPL_EN).mac(2, B).mac(1, GROUP).mac(2, GROUP);
    assert_eq!(port.wire(B), to(B_BIT));
    assert_eq!(port.wire(GROUP), to(B_BIT));
}

#[test]
fn sent_broadcast_goes_to_default_pool_without_replication() {
    let port = port().clear(r::VT_CTL, vt_ctl::REPL_EN).pool(7, vmolr::AUPE);
    assert_eq!(port.a_sends(BROADCAST), SwitchDecision { uplink: true, ..to(0x80) });
}

#[test]
fn frames_of_a_vlan_go_to_the_pools_of_all_its_filters() {
    let port = port().vlan(5, A_BIT, 0).vlan(6, B_BIT, 0).vlan(5, C_BIT, 0);
    let tagged = |dst| FrameMetadata { vlan: Some(5), ..frame(FrameOrigin::Uplink, PEER, dst) };
    assert_eq!(port.decide(tagged(BROADCAST)), copies(A_BIT | C_BIT));
    assert_eq!(port.decide(tagged(B)), dropped(SwitchDropReason::Unwanted));
}

#[test]
fn cfien_accepts_only_vlan_tags_with_the_chosen_cfi_bit() {
    let canonical = FrameMetadata { vlan: Some(0x0005), ..frame(FrameOrigin::Uplink, PEER, B) };
    let other = FrameMetadata { vlan: Some(0x1005), ..canonical };
    let port = port().vlan(5, B_BIT, 0);
    assert_eq!((port.decide(canonical), port.decide(other)), (to(B_BIT), to(B_BIT)));
    let port = port.set(r::RCTL, rctl::CFIEN);
    assert_eq!(
        (port.decide(canonical), port.decide(other)),
        (to(B_BIT), dropped(SwitchDropReason::Unwanted))
    );
    let port = port.set(r::RCTL, rctl::CFI);
    assert_eq!(
        (port.decide(canonical), port.decide(other)),
        (dropped(SwitchDropReason::Unwanted), to(B_BIT))
    );
    assert_eq!(port.wire(B), to(B_BIT), "an untagged frame has no indicator");
    let port = port.clear(r::RCTL, rctl::VFE);
    assert_eq!((port.decide(canonical), port.decide(other)), (to(B_BIT), to(B_BIT)));
}

#[test]
fn hash_table_or_promiscuous_match_marks_a_frame_inexact() {
    let port = port().pool(1, vmolr::MPME | vmolr::ROMPE | vmolr::ROPE).mac(2, "01:00:5e:00:00:01");
    assert_eq!([A, BROADCAST, "01:00:5e:00:00:01"].map(|dst| port.is_inexact(dst)), [false; 3]);
    assert_eq!([PEER, GROUP].map(|dst| port.is_inexact(dst)), [true; 2]);
    assert!(port.set(r::VT_CTL, vt_ctl::IGNORE_MAC).is_inexact(A), "IGNORE_MAC compares no address");
}
