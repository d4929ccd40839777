//! Tests mirror rules: the frames that they copy, and the pool that gets the copies.

use super::{
    A, A_BIT, B, B_BIT, BROADCAST, C, C_BIT, PEER, PortBuilder, copies, dropped, frame, out, port, sender, to,
};
use i82576::PoolIndex;
use i82576::bits::{dtxswc, vlvf, vmolr, vmrctl, vt_ctl};
use i82576::register as r;
use plane::switch::{FrameMetadata, FrameOrigin, SwitchDecision, SwitchDropReason};

/// Bit of pool 7, which gets the copies and has no other filter.
const WATCHER: u8 = 0x80;
const TO_WATCHER: u32 = 7 << vmrctl::POOL_SHIFT;

/// Returns a port with pools 0, 1 and 2, no default pool, and mirror rule `i`, which copies frames of these
/// kinds to pool 7.
fn watched(i: u32, kinds: u32) -> PortBuilder {
    port().set(r::VT_CTL, vt_ctl::DIS_DEF_PL).set(r::vmrctl(i), kinds | TO_WATCHER)
}

#[test]
fn pool_mirror_copies_frames_that_its_pools_receive() {
    for rule in 0..4 {
        let port = watched(rule, vmrctl::VPME).set(r::vmrvm(rule), B_BIT.into());
        assert_eq!(port.wire(B), to(B_BIT | WATCHER), "from the wire, rule {rule}");
        assert_eq!(port.a_sends(B), to(B_BIT | WATCHER), "from a neighbour");
        assert_eq!(port.wire(C), to(C_BIT));
        assert_eq!(port.wire(BROADCAST), copies(A_BIT | B_BIT | C_BIT | WATCHER));
    }
}

#[test]
fn pool_mirror_ignores_frames_that_its_pools_do_not_get() {
    let port = watched(0, vmrctl::VPME).set(r::vmrvm(0), B_BIT.into()).clear(r::VFRE, B_BIT.into());
    assert_eq!(port.wire(B), dropped(SwitchDropReason::Disabled));
}

#[test]
fn uplink_mirror_copies_all_frames_from_the_wire() {
    let port = watched(0, vmrctl::UPME);
    assert_eq!(port.wire(B), to(B_BIT | WATCHER));
    assert_eq!(port.wire(PEER), to(WATCHER));
    assert_eq!(port.a_sends(B), to(B_BIT));
    assert_eq!(port.a_sends(PEER), out());
}

#[test]
fn downlink_mirror_copies_frames_to_the_wire() {
    let port = watched(0, vmrctl::DPME);
    assert_eq!(port.a_sends(PEER), SwitchDecision { uplink: true, ..to(WATCHER) });
    assert_eq!(port.a_sends(BROADCAST), SwitchDecision { uplink: true, ..copies(B_BIT | C_BIT | WATCHER) });
    assert_eq!(port.a_sends(B), to(B_BIT), "local unicast stays off the wire");
    assert_eq!(port.wire(B), to(B_BIT));
}

#[test]
fn vlan_mirror_copies_the_vlans_of_its_filters() {
    let port = watched(0, vmrctl::VLME).vlan(5, A_BIT | B_BIT, 0).vlan(6, A_BIT | B_BIT, 0);
    let port = port.set(r::vmrvlan(0), 1 << 1);
    let tagged = |tag, source, src| FrameMetadata { vlan: Some(tag), ..frame(source, src, B) };
    assert_eq!(port.decide(tagged(5, FrameOrigin::Uplink, PEER)), to(B_BIT));
    assert_eq!(port.decide(tagged(6, FrameOrigin::Uplink, PEER)), to(B_BIT | WATCHER));
    assert_eq!(port.decide(tagged(6, sender(0), A)), to(B_BIT | WATCHER));
    let port = port.clear(r::vlvf(1), vlvf::VLANID_EN).set(r::RCTL, 0);
    assert_eq!(
        port.decide(tagged(6, FrameOrigin::Uplink, PEER)),
        dropped(SwitchDropReason::Unwanted),
        "an invalid filter"
    );
}

#[test]
fn several_mirror_rules_make_one_copy_per_target_pool() {
    let port = watched(0, vmrctl::UPME | vmrctl::VPME).set(r::vmrvm(0), B_BIT.into());
    let port = port.set(r::vmrctl(3), vmrctl::UPME | TO_WATCHER);
    let port = port.set(r::vmrctl(2), vmrctl::UPME | 2 << vmrctl::POOL_SHIFT);
    assert_eq!(port.wire(B), to(B_BIT | C_BIT | WATCHER));
}

#[test]
fn four_mirror_rules_apply_at_once() {
    let rule = |pool: u32| vmrctl::UPME | pool << vmrctl::POOL_SHIFT;
    let port = watched(0, vmrctl::UPME).set(r::vmrctl(1), rule(6));
    let port = port.set(r::vmrctl(2), rule(5)).set(r::vmrctl(3), rule(4));
    assert_eq!(port.wire(B), to(B_BIT | 0xf0));
}

#[test]
fn mirror_copies_a_frame_to_its_sender_only_if_lle_is_set() {
    let port = port().set(r::vmrctl(0), vmrctl::DPME);
    assert_eq!(port.a_sends(PEER), out());
    let port = port.set(r::DTXSWC, 1 << dtxswc::LLE_SHIFT);
    assert_eq!(port.a_sends(PEER), SwitchDecision { uplink: true, ..to(A_BIT) });
}

#[test]
fn mirrored_copy_obeys_enable_and_length_limit_of_its_pool() {
    let closed = watched(0, vmrctl::UPME).clear(r::VFRE, WATCHER.into());
    assert_eq!(closed.wire(B), to(B_BIT));
    let long = FrameMetadata { length: 4000, ..frame(FrameOrigin::Uplink, PEER, B) };
    let port = watched(0, vmrctl::UPME)
        .clear(r::vmolr(PoolIndex::EVERY[1]), vmolr::RLPML_MASK)
        .pool(1, vmolr::LPE | 9018);
    assert_eq!(port.decide(long), to(B_BIT));
}

#[test]
fn mirror_ignores_frames_dropped_by_anti_spoofing() {
    let port = watched(0, vmrctl::DPME).set(r::DTXSWC, 1 << dtxswc::MAC_SPOOF_SHIFT);
    assert_eq!(port.decide(frame(sender(0), B, PEER)), dropped(SwitchDropReason::SourceSpoofed));
}

#[test]
fn mirror_rules_copy_no_frame_without_replication() {
    let port = watched(0, vmrctl::UPME).clear(r::VT_CTL, vt_ctl::REPL_EN);
    assert_eq!(port.wire(B), to(B_BIT));
}
