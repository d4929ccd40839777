//! Tests policies of several VFs that change together, and changes of the number of VFs.

use super::{StoredRegisters, vf, with_mac};
use crate::hal::Hal;
use crate::pf::{Pf, VfCountError};
use i82576::PoolIndex;
use i82576::ids::VLAN_FILTERS;
use i82576::register as r;
use policy::{AddressOwner, PolicyError, PortVlan, VfPolicy};
use std::vec;
use std::vec::Vec;

fn two_vfs() -> (StoredRegisters, Pf) {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    for n in 0..2 {
        pf.set_policy(&mut hal, vf(n), with_mac(n + 1)).unwrap();
    }
    pf.enable_vfs(&mut hal, 2).unwrap();
    (hal, pf)
}

#[test]
fn two_vfs_addresses_can_be_swapped_at_once() {
    let (mut hal, mut pf) = two_vfs();
    let swapped = [with_mac(2), with_mac(1)];
    assert_eq!(pf.check_policies(&swapped), Ok(()));
    pf.set_policies(&mut hal, &swapped).unwrap();
    assert_eq!((pf.vf_mac(vf(0)), pf.vf_mac(vf(1))), (with_mac(2).mac, with_mac(1).mac));
    let taken = [with_mac(1)];
    let why = PolicyError::MacInUse(with_mac(1).mac.unwrap(), AddressOwner::Vf(vf(1).into()));
    assert_eq!(pf.check_policies(&taken), Err((vf(0).into(), why)));
}

#[test]
fn policies_of_several_82576_vfs_are_set_all_or_none() {
    let (mut hal, mut pf) = two_vfs();
    let one = VfPolicy { vlan: Some(PortVlan { id: 7, qos: 1 }), ..with_mac(2) };
    let twice = [one, with_mac(2)];
    let registers = [r::rah(23), r::rah(22), r::vmvir(PoolIndex::FIRST), r::vlvf(1)];
    let before = registers.map(|register| hal.read(register));
    assert!(matches!(pf.set_policies(&mut hal, &twice), Err((_, PolicyError::MacInUse(..)))));
    assert_eq!((*pf.policy(vf(0)), *pf.policy(vf(1))), (with_mac(1), with_mac(2)));
    let after = registers.map(|register| hal.read(register));
    assert_eq!(after, before);
    let wrong = [one, VfPolicy { max_mtu: Some(1), ..with_mac(1) }];
    assert_eq!(pf.set_policies(&mut hal, &wrong), Err((vf(1).into(), PolicyError::Mtu(1, 68, 9706))));
    assert_eq!(pf.policy(vf(0)).vlan, None);
}

#[test]
fn changing_the_number_of_vfs_keeps_other_vfs_policies() {
    let (mut hal, mut pf) = two_vfs();
    pf.set_policy(&mut hal, vf(2), with_mac(3)).unwrap();
    pf.resize(&mut hal, 3).unwrap();
    assert_eq!((pf.vf_mac(vf(2)), pf.vf_mac(vf(0))), (with_mac(3).mac, with_mac(1).mac));
    assert_ne!(hal.read(r::rah(21)), 0);
    pf.resize(&mut hal, 1).unwrap();
    assert_eq!((pf.vf_mac(vf(1)), *pf.policy(vf(1))), (None, VfPolicy::default()));
    assert_eq!((hal.read(r::rah(21)) >> 31, hal.read(r::rah(22)) >> 31), (0, 0));
    assert_eq!(pf.vf_mac(vf(0)), with_mac(1).mac);
    assert_eq!(pf.resize(&mut hal, 9), Err(VfCountError::TooManyVfs(9)));
}

fn on_vlan(id: u16) -> VfPolicy {
    VfPolicy { vlan: Some(PortVlan { id, qos: 0 }), ..VfPolicy::default() }
}

#[test]
fn policy_set_needing_too_many_vlan_filters_changes_no_vf() {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    let before = [on_vlan(1), VfPolicy::default(), VfPolicy::default(), VfPolicy::default(), on_vlan(2)];
    pf.enable_vfs(&mut hal, 8).unwrap();
    pf.set_policies(&mut hal, &before).unwrap();
    // Filter 0 is untagged, VF 0 and VF 4 have one each, a guest takes all others but one.
    for vlan in 100..100 + VLAN_FILTERS as u16 - 4 {
        pf.vlans.join(&mut hal, vf(7), vlan).unwrap();
    }
    // VF 0 frees a filter, VF 1 and VF 2 would take both free ones, and VF 3 would find none.
    let wanted = [on_vlan(2), on_vlan(3), on_vlan(4), on_vlan(5), on_vlan(2)];
    let refused = Err((vf(3).into(), PolicyError::NoVlanFilter));
    assert_eq!((pf.check_policies(&wanted), pf.set_policies(&mut hal, &wanted)), (refused, refused));
    let vlans = [0, 1, 2, 3, 4].map(|n| pf.policy(vf(n)).vlan.map(|vlan| vlan.id));
    assert_eq!(vlans, [Some(1), None, None, None, Some(2)], "nothing is changed");
}

#[test]
fn two_vfs_port_vlans_are_exchanged_with_no_free_filter() {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 8).unwrap();
    pf.set_policies(&mut hal, &[on_vlan(1), on_vlan(2)]).unwrap();
    for vlan in 100..100 + VLAN_FILTERS as u16 - 3 {
        pf.vlans.join(&mut hal, vf(7), vlan).unwrap();
    }
    pf.set_policies(&mut hal, &[on_vlan(3), on_vlan(1)]).unwrap();
    let vlans = [0, 1].map(|n| pf.vlans.of(vf(n)).collect::<Vec<_>>());
    assert_eq!(vlans, [[3], [1]]);
}

#[test]
fn requested_vlans_are_joined_again_when_a_port_vlan_ends() {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 2).unwrap();
    pf.set_vlan(&mut hal, vf(0), true, 10).unwrap();
    let vlans = |pf: &Pf| pf.vlans.of(vf(0)).collect::<Vec<_>>();
    for (policy, expected) in [(on_vlan(7), vec![7]), (VfPolicy::default(), vec![0, 10])] {
        pf.set_policies(&mut hal, &[policy, VfPolicy::default()]).unwrap();
        assert_eq!(vlans(&pf), expected);
    }
}

#[test]
fn one_new_address_for_two_vfs_is_refused_and_changes_no_vf() {
    let (_, pf) = two_vfs();
    let twins = [with_mac(9), with_mac(9)];
    let why = PolicyError::MacInUse(with_mac(9).mac.unwrap(), AddressOwner::Vf(vf(1).into()));
    assert_eq!(pf.check_policies(&twins), Err((vf(0).into(), why)));
}
