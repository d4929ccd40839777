//! Tests quotas of filters: guaranteed shares, first-come entries, limits, and filters that become free.

use super::{StoredRegisters, vf, with_mac};
use crate::conduct::QuarantineCause;
use crate::hal::Hal;
use crate::pf::{MailboxRefusal, Pf};
use i82576::MacAddress;
use i82576::mailbox::{id, mac_filter};
use i82576::register as r;
use policy::{FilterKind, FilterQuota, FilterUse, PolicyError, PortVlan, VfPolicy};
use std::vec::Vec;

fn pf(vfs: u8) -> (StoredRegisters, Pf) {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, vfs).unwrap();
    (hal, pf)
}

fn add_mac(hal: &mut StoredRegisters, pf: &mut Pf, n: u8, mac: u8) -> Result<(), MailboxRefusal> {
    let (low, high) = MacAddress([2, 7, 7, 7, n, mac]).to_words();
    let message = [id::SET_MAC_ADDR | mac_filter::ADD << 16, low, high];
    let mut words = [0; 16];
    words[..3].copy_from_slice(&message);
    pf.decide(hal, vf(n), &words).outcome
}

fn join(hal: &mut StoredRegisters, pf: &mut Pf, n: u8, vlan: u16) -> Result<(), MailboxRefusal> {
    pf.set_vlan(hal, vf(n), true, vlan)
}

/// Requests VLANs for a VF from `first` on until one is refused. Returns the number of granted ones.
fn fill(hal: &mut StoredRegisters, pf: &mut Pf, n: u8, first: u16) -> u16 {
    (first..first + 100).take_while(|vlan| join(hal, pf, n, *vlan).is_ok()).count() as u16
}

fn quota(vlan: FilterQuota) -> VfPolicy {
    let mut policy = VfPolicy::default();
    policy.quotas.vlan = vlan;
    policy
}

fn vlans(pf: &Pf, n: u8) -> Vec<u16> {
    let mut vlans: Vec<_> = pf.vf_vlans(vf(n)).filter(|vlan| *vlan != 0).collect();
    vlans.sort_unstable();
    vlans
}

#[test]
fn greedy_vf_leaves_each_other_vf_its_guaranteed_filters() {
    let (mut hal, mut pf) = pf(7);
    assert_eq!((0..100).take_while(|mac| add_mac(&mut hal, &mut pf, 0, *mac).is_ok()).count(), 13 - 6);
    assert_eq!(fill(&mut hal, &mut pf, 0, 1), 31 - 6 * 2);
    for n in 1..7 {
        assert_eq!(add_mac(&mut hal, &mut pf, n, 0), Ok(()));
        assert_eq!(add_mac(&mut hal, &mut pf, n, 1), Err(MailboxRefusal::NoFilter));
        assert_eq!(fill(&mut hal, &mut pf, n, 1_000 + u16::from(n) * 100), 2);
    }
    let free = |kind| pf.filter_use(vf(0), kind);
    assert_eq!(free(FilterKind::Mac), FilterUse { used: 7, guaranteed: 1, most: 13 });
    assert_eq!(free(FilterKind::Vlan), FilterUse { used: 19, guaranteed: 2, most: 31 });
}

#[test]
fn vf_below_its_guarantee_may_replace_a_shared_vlan() {
    let (mut hal, mut pf) = pf(2);
    assert_eq!(fill(&mut hal, &mut pf, 0, 1), 29);
    // VF 1 spends its share on VLANs of VF 0. Both filters that are left stay its own.
    assert_eq!([1, 2].map(|vlan| join(&mut hal, &mut pf, 1, vlan)), [Ok(()), Ok(())]);
    assert_eq!(join(&mut hal, &mut pf, 0, 100), Err(MailboxRefusal::NoVlanFilter));
    for (old, new) in [(1, 500), (2, 501)] {
        pf.set_vlan(&mut hal, vf(1), false, old).unwrap();
        assert_eq!(join(&mut hal, &mut pf, 1, new), Ok(()));
    }
    assert_eq!(join(&mut hal, &mut pf, 1, 3), Ok(()), "a VLAN that has a filter costs none");
}

#[test]
fn filters_freed_by_a_reset_go_to_vfs_that_requested_them() {
    let (mut hal, mut pf) = pf(2);
    assert_eq!(fill(&mut hal, &mut pf, 0, 1), 29);
    assert_eq!(fill(&mut hal, &mut pf, 1, 101), 2);
    assert_eq!(vlans(&pf, 1), [101, 102], "103 is withheld");
    assert_eq!(add_mac(&mut hal, &mut pf, 0, 1), Ok(()));
    hal.write(r::VFLRE, 1);
    pf.visit(&mut hal);
    assert_eq!((vlans(&pf, 0), pf.filter_use(vf(0), FilterKind::Mac).used), (Vec::new(), 0));
    assert_eq!(vlans(&pf, 1), [101, 102, 103], "the filter that became free");
    assert_eq!(pf.counters(vf(1)).refused(MailboxRefusal::NoVlanFilter), 0, "a retry is no request");
}

#[test]
fn withheld_vlan_is_joined_when_another_vf_leaves_one() {
    let (mut hal, mut pf) = pf(2);
    assert_eq!(fill(&mut hal, &mut pf, 0, 1), 29);
    assert_eq!(fill(&mut hal, &mut pf, 1, 101), 2);
    pf.visit(&mut hal);
    assert_eq!(vlans(&pf, 1), [101, 102]);
    pf.set_vlan(&mut hal, vf(0), false, 5).unwrap();
    pf.visit(&mut hal);
    assert_eq!(vlans(&pf, 1), [101, 102, 103]);
    pf.set_vlan(&mut hal, vf(1), false, 103).unwrap();
    pf.set_vlan(&mut hal, vf(0), false, 6).unwrap();
    pf.visit(&mut hal);
    assert!(vlans(&pf, 0).contains(&30), "VF 0's own withheld VLAN");
    assert_eq!(vlans(&pf, 1), [101, 102], "a VLAN that the VF has left");
}

#[test]
fn limit_of_a_vf_holds_while_filters_are_free() {
    let (mut hal, mut pf) = pf(2);
    pf.set_policies(&mut hal, &[quota(FilterQuota { min: 0, max: 3 })]).unwrap();
    assert_eq!(fill(&mut hal, &mut pf, 0, 1), 3);
    assert_eq!(join(&mut hal, &mut pf, 1, 9), Ok(()));
    assert_eq!(join(&mut hal, &mut pf, 0, 9), Err(MailboxRefusal::NoVlanFilter), "also for a VLAN of others");
    pf.set_policies(&mut hal, &[quota(FilterQuota { min: 0, max: 5 })]).unwrap();
    assert_eq!(vlans(&pf, 0), [1, 2, 3, 4, 9], "those that were withheld");
}

#[test]
fn guarantees_beyond_the_tables_are_refused_and_change_nothing() {
    let (mut hal, mut pf) = pf(2);
    let most = quota(FilterQuota { min: 29, max: 0 });
    assert_eq!(pf.set_policies(&mut hal, &[most]), Ok(()));
    let more = quota(FilterQuota { min: 30, max: 0 });
    let why = PolicyError::Guarantees(FilterKind::Vlan, 32, 31, vf(0).into());
    assert_eq!(pf.set_policies(&mut hal, &[more]), Err((vf(0).into(), why)));
    assert_eq!(pf.set_policy(&mut hal, vf(0), more), Err(why));
    assert_eq!(*pf.policy(vf(0)), most);
    assert_eq!(
        pf.set_policies(&mut hal, &[VfPolicy { vlan: Some(PortVlan { id: 7, qos: 0 }), ..more }]),
        Ok(())
    );
}

/// A change of the configuration changes the number of VFs first when it adds some, and last when it removes some.
#[test]
fn number_of_vfs_changes_with_guarantees_that_fit_afterwards() {
    let (mut hal, mut pf) = pf(2);
    let min = |min| quota(FilterQuota { min, max: 0 });
    pf.set_policies(&mut hal, &[min(29), min(2)]).unwrap();
    pf.resize(&mut hal, 3).unwrap();
    let why = PolicyError::Guarantees(FilterKind::Vlan, 33, 31, vf(0).into());
    assert_eq!(pf.set_policies(&mut hal, &[min(29), min(2), min(2)]), Err((vf(0).into(), why)));
    assert_eq!(pf.set_policies(&mut hal, &[min(29), min(2), min(0)]), Ok(()));
    let not_offered = VfPolicy { enabled: false, ..VfPolicy::default() };
    assert_eq!(pf.set_policies(&mut hal, &[min(29), min(2), not_offered]), Ok(()));
    pf.resize(&mut hal, 2).unwrap();
}

#[test]
fn fixed_address_leaves_its_guaranteed_filter_to_others() {
    let (mut hal, mut pf) = pf(7);
    let fixed = |n| VfPolicy { admin_mac: true, ..with_mac(n) };
    let policies: Vec<_> = (1..=7).map(|n| if n == 1 { with_mac(1) } else { fixed(n) }).collect();
    pf.set_policies(&mut hal, &policies).unwrap();
    assert_eq!((0..100).take_while(|mac| add_mac(&mut hal, &mut pf, 0, *mac).is_ok()).count(), 13);
}

#[test]
fn quarantined_vf_takes_no_freed_filter_until_its_release() {
    let (mut hal, mut pf) = pf(2);
    assert_eq!(fill(&mut hal, &mut pf, 0, 1), 29);
    assert_eq!(fill(&mut hal, &mut pf, 1, 101), 2);
    pf.quarantine(&mut hal, vf(1), QuarantineCause::Administrator);
    pf.set_vlan(&mut hal, vf(0), false, 5).unwrap();
    pf.state_mut(vf(0)).withheld.clear();
    pf.visit(&mut hal);
    assert_eq!(vlans(&pf, 1), [101, 102], "103 stays withheld");
    pf.release(&mut hal, vf(1));
    assert_eq!(vlans(&pf, 1), [101, 102, 103]);
}

#[test]
fn withheld_vlans_follow_policies_once_all_are_in_force() {
    let (mut hal, mut pf) = pf(2);
    let none = quota(FilterQuota { min: 0, max: 0 });
    pf.set_policies(&mut hal, &[none, none]).unwrap();
    assert_eq!(fill(&mut hal, &mut pf, 0, 1), 31);
    let fixed = VfPolicy { vlan: Some(PortVlan { id: 7, qos: 0 }), ..none };
    pf.set_policies(&mut hal, &[fixed, none]).unwrap();
    let ten = quota(FilterQuota { min: 10, max: 0 });
    pf.set_policies(&mut hal, &[none, ten]).unwrap();
    assert_eq!(vlans(&pf, 0).len(), 21);
    assert_eq!(fill(&mut hal, &mut pf, 1, 101), 10);
}

#[test]
fn retry_of_withheld_vlans_costs_one_look_up_for_each_vf() {
    let (mut hal, mut pf) = pf(8);
    assert_eq!(fill(&mut hal, &mut pf, 0, 1), 31 - 7 * 2);
    for n in 0..8 {
        let first = 1_000 + u16::from(n) * 100;
        (first..first + 40).for_each(|vlan| _ = join(&mut hal, &mut pf, n, vlan));
        assert_eq!(pf.state(vf(n)).withheld.len(), 32);
    }
    assert_eq!(pf.retry_withheld(&mut hal), 8);
    let one = quota(FilterQuota { min: 0, max: 1 });
    pf.set_policies(&mut hal, &[one; 8]).unwrap();
    assert_eq!(pf.retry_withheld(&mut hal), 0, "each VF has reached its limit");
}
