//! Tests a VF's requested VLANs while the administrator changes the allowed ones, and its settings of tags.

use super::{FourVfPort, VSI};
use crate::avf::pf::{OFFERED, VirtchnlRefusal};
use ::avf::virtchnl::{
    EncodedMessageList, VirtchnlRequest, VirtchnlStatus, VlanFilter, VlanFilterTag, VlanOffloadKind,
    VlanSetting,
};
use std::vec::Vec;

/// Requests or gives up VLANs for VF 0 as iavf does: all in one request.
fn ask(world: &mut FourVfPort, on: bool, ids: &[u16]) -> VirtchnlStatus {
    let filter = |id: &u16| VlanFilter {
        outer: VlanFilterTag { tci: *id, mask: 0, tpid: 0x8100 },
        inner: VlanFilterTag::default(),
    };
    let list: Vec<_> = ids.iter().map(filter).collect();
    world.ask(0, VirtchnlRequest::VlanFilters(on, VSI, EncodedMessageList::new(&list).list())).0
}

fn allow(world: &mut FourVfPort, ids: Option<&[u16]>) {
    world.set(|policy| policy.vlans = ids.map(|ids| ids.iter().copied().collect()));
}

fn members(world: &FourVfPort) -> Vec<u16> {
    world.told().vlans.iter().copied().collect()
}

/// Tests a request with allowed and denied VLANs: iavf forgets all VLANs of a request that fails.
#[test]
fn partly_allowed_vlan_list_is_applied_in_part() {
    let mut world = FourVfPort::active();
    allow(&mut world, Some(&[20]));
    assert_eq!(ask(&mut world, true, &[0, 10, 20]), VirtchnlStatus::Success);
    assert_eq!(members(&world), [0, 20]);
    assert_eq!(ask(&mut world, true, &[30]), VirtchnlStatus::Success);
    assert_eq!((members(&world), world.refusals(VirtchnlRefusal::VlanNotAllowed)), (Vec::from([0, 20]), 2));
}

#[test]
fn allowed_vlan_list_change_applies_without_a_vf_reset() {
    let mut world = FourVfPort::active();
    ask(&mut world, true, &[10, 20]);
    let resets = world.told().resets;
    for (allowed, expected) in [
        (Some(&[20][..]), &[0, 20][..]),
        (Some(&[][..]), &[0]),
        (Some(&[10, 20][..]), &[0, 10, 20]),
        (Some(&[10, 30][..]), &[0, 10]),
        (None, &[0, 10, 20]),
    ] {
        allow(&mut world, allowed);
        assert_eq!(members(&world), expected, "{allowed:?}");
    }
    assert_eq!((world.told().resets, world.events()), (resets, Vec::new()));
}

#[test]
fn vlan_withheld_by_policy_may_be_requested_after_a_reset() {
    let mut world = FourVfPort::active();
    ask(&mut world, true, &[10, 20]);
    allow(&mut world, Some(&[20]));
    // The driver resets the VF, for another MTU for example, and requests its VLANs again.
    world.card.flr(0);
    world.pf.visit(&mut world.card);
    world.introduce(0, OFFERED);
    assert_eq!(ask(&mut world, true, &[10, 20]), VirtchnlStatus::Success);
    assert_eq!(members(&world), [0, 20]);
    allow(&mut world, Some(&[10, 20]));
    assert_eq!(members(&world), [0, 10, 20]);
}

#[test]
fn vlan_withheld_by_policy_is_forgotten_on_leave_or_vf_reset() {
    for leaves in [true, false] {
        let mut world = FourVfPort::active();
        allow(&mut world, Some(&[20]));
        ask(&mut world, true, &[10, 20]);
        if leaves {
            assert_eq!(ask(&mut world, false, &[10]), VirtchnlStatus::Success);
        } else {
            world.card.flr(0);
            world.pf.visit(&mut world.card);
        }
        allow(&mut world, None);
        assert_eq!(members(&world), if leaves { &[0, 20][..] } else { &[0] });
    }
}

#[test]
fn vlans_withheld_by_policy_count_against_a_vfs_vlan_quota() {
    let mut world = FourVfPort::active();
    allow(&mut world, Some(&[99]));
    assert_eq!(ask(&mut world, true, &(1..=17).collect::<Vec<_>>()), VirtchnlStatus::Success);
    assert_eq!((members(&world), world.refusals(VirtchnlRefusal::TooManyVlans)), (Vec::from([0]), 1));
    allow(&mut world, None);
    assert_eq!(members(&world), (0..=16).collect::<Vec<_>>());
    ask(&mut world, true, &[99]);
    assert_eq!(members(&world).len(), 1 + 16);
}

#[test]
fn smaller_vlan_quota_keeps_vlans_withheld_by_policy() {
    let mut world = FourVfPort::active();
    allow(&mut world, Some(&[1, 2, 3, 4, 5]));
    ask(&mut world, true, &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(members(&world), [0, 1, 2, 3, 4, 5]);
    world.set(|policy| policy.quotas.vlan.max = 4);
    allow(&mut world, None);
    assert_eq!(members(&world), (0..=8).collect::<Vec<_>>());
}

#[test]
fn vlan_guarantee_beyond_the_default_quota_raises_it() {
    let mut world = FourVfPort::active();
    world.set(|policy| policy.quotas.vlan.min = 40);
    ask(&mut world, true, &(1..=41).collect::<Vec<_>>());
    assert_eq!(members(&world).len(), 1 + 40);
}

#[test]
fn reset_takes_as_many_orders_with_4095_vlans_as_with_none() {
    let mut world = FourVfPort::active();
    let orders_of_reset = |world: &mut FourVfPort| {
        let before = world.card.orders;
        world.card.flr(0);
        world.pf.visit(&mut world.card);
        assert_eq!(members(world), [0]);
        world.card.orders - before
    };
    let without = orders_of_reset(&mut world);
    world.set(|policy| policy.trust = true);
    world.introduce(0, OFFERED);
    for ids in [1..=2000, 2001..=4000, 4001..=4095] {
        let ids: Vec<u16> = ids.rev().collect();
        world.granted(VirtchnlRequest::Vlans(true, VSI, EncodedMessageList::new(&ids).list()));
    }
    assert_eq!(members(&world), (0..=4095).collect::<Vec<_>>());
    let before = world.card.orders;
    world.granted(VirtchnlRequest::Vlans(true, VSI, EncodedMessageList::new(&[7; 2000]).list()));
    assert_eq!(world.card.orders - before, 0, "a repeated VLAN takes no order");
    assert_eq!(orders_of_reset(&mut world), without);
}

#[test]
fn vlan_tag_stripping_and_inserting_are_independent() {
    let mut world = FourVfPort::active();
    let one = VlanSetting { outer: 1, inner: 0, vsi: VSI };
    world.granted(VirtchnlRequest::VlanOffload(VlanOffloadKind::Strip, true, one));
    assert!(world.told().tags.strip && world.told().tags.insert, "insertion is on from the start");
    world.granted(VirtchnlRequest::VlanOffload(VlanOffloadKind::Insert, false, one));
    assert!(world.told().tags.strip && !world.told().tags.insert);
    world.granted(VirtchnlRequest::VlanOffload(VlanOffloadKind::Strip, false, one));
    world.granted(VirtchnlRequest::VlanOffload(VlanOffloadKind::Insert, true, one));
    assert!(!world.told().tags.strip && world.told().tags.insert);
    let other = VlanSetting { outer: 2, ..one };
    world.refused(
        VirtchnlRequest::VlanOffload(VlanOffloadKind::Strip, true, other),
        VirtchnlRefusal::VlanInvalid,
    );
    world.refused(VirtchnlRequest::Strip(true), VirtchnlRefusal::NotAgreed);
}
