//! Tests the switch without VMDq, when the port is a single pool.

use super::{A, B, BROADCAST, GROUP, PEER, dropped, frame, out, sender, single, to};
use i82576::bits::rctl;
use i82576::register as r;
use plane::switch::{FrameMetadata, FrameOrigin, SwitchDropReason};

#[test]
fn port_without_pools_needs_an_exact_address_or_promiscuity() {
    assert_eq!(single().wire(A), to(1));
    assert_eq!(single().wire(PEER), dropped(SwitchDropReason::Unwanted));
    assert_eq!(single().set(r::RCTL, rctl::UPE).wire(PEER), to(1));
}

#[test]
fn multicast_without_pools_needs_its_hash_bit_or_promiscuity() {
    assert_eq!(single().wire(GROUP), dropped(SwitchDropReason::Unwanted));
    assert_eq!(single().set(r::mta(0xfb0 >> 5), 1 << (0xfb0 & 31)).wire(GROUP), to(1));
    assert_eq!(single().set(r::RCTL, rctl::MPE).wire(GROUP), to(1));
}

#[test]
fn broadcast_without_pools_needs_broadcast_accept_mode() {
    assert_eq!(single().wire(BROADCAST), dropped(SwitchDropReason::Unwanted));
    assert_eq!(single().set(r::RCTL, rctl::BAM).wire(BROADCAST), to(1));
}

#[test]
fn vlans_without_pools_are_filtered_only_by_the_vlan_table() {
    let tagged = FrameMetadata { vlan: Some(5), ..frame(FrameOrigin::Uplink, PEER, A) };
    assert_eq!(single().set(r::RCTL, rctl::VFE).decide(tagged), dropped(SwitchDropReason::Unwanted));
    assert_eq!(single().set(r::RCTL, rctl::VFE).set(r::vfta(0), 1 << 5).decide(tagged), to(1));
    assert_eq!(single().set(r::RCTL, rctl::VFE).wire(A), to(1));
}

#[test]
fn long_packets_without_pools_need_lpe_and_obey_rlpml() {
    let long = FrameMetadata { length: 9000, ..frame(FrameOrigin::Uplink, PEER, A) };
    assert_eq!(single().decide(long), dropped(SwitchDropReason::TooLong));
    assert_eq!(single().set(r::RCTL, rctl::LPE).decide(long), to(1));
    let port = single().set(r::RCTL, rctl::LPE).clear(r::RLPML, !0).set(r::RLPML, 9003);
    assert_eq!(port.decide(long), dropped(SwitchDropReason::TooLong));
}

#[test]
fn sent_frames_of_a_port_without_pools_all_go_to_the_wire() {
    let port = single().set(r::DTXSWC, !0);
    assert_eq!(port.decide(frame(sender(3), B, A)), out());
    assert_eq!(port.decide(frame(sender(0), A, "01:80:c2:00:00:0e")), out());
}
