//! Tests a VF's main address: which VF keeps it, loses it, or gets it back, and how an older driver changes it.

use super::withheld::{add_of, extra, primary, restart};
use super::{FourVfPort, VSI, mac};
use crate::avf::pf::OFFERED;
use ::avf::virtchnl::{EncodedMessageList, EtherAddress, EtherAddressType, VirtchnlRequest, VirtchnlStatus};
use i82576::MacAddress;
use policy::VfPolicy;
use std::vec::Vec;

const GROUP: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
/// VF that uses the address of VF [`OWNER`].
const USER: u8 = 0;
const OWNER: u8 = 1;

/// Creates a port whose VFs 0 and 1 are active. The host proposes the addresses 1 and 2 for them.
fn user_and_owner() -> FourVfPort {
    let mut world = FourVfPort::new();
    for vf in [USER, OWNER] {
        set_of(&mut world, vf, |policy| policy.mac = Some(MacAddress(mac(1 + vf))));
        world.introduce(vf, OFFERED);
    }
    world
}

fn set_of(world: &mut FourVfPort, vf: u8, change: impl FnOnce(&mut VfPolicy)) {
    let mut policy = *world.pf.policy(vf).unwrap();
    change(&mut policy);
    world.pf.set_policy(&mut world.card, vf, policy).unwrap();
}

/// Returns a VF's main address, and the addresses that the card receives by for the VF.
fn addresses(world: &FourVfPort, vf: u8) -> (Option<u8>, Vec<[u8; 6]>) {
    (world.pf.vf_mac(vf).map(|mac| mac.0[5]), world.card.told[&vf].addresses.iter().copied().collect())
}

/// Has the user, which is trusted, take an address of the owner as its main one.
fn take_by_trust(world: &mut FourVfPort, n: u8) {
    set_of(world, USER, |policy| policy.trust = true);
    world.introduce(USER, OFFERED);
    assert_eq!(add_of(world, USER, &[primary(n)]), VirtchnlStatus::Success);
}

/// Has a guest delete an address with a driver that leaves the type 0, such as FreeBSD's.
fn delete_legacy(world: &mut FourVfPort, deleted: &[u8]) {
    let list: Vec<_> =
        deleted.iter().map(|n| EtherAddress { mac: mac(*n), usage: EtherAddressType::Legacy }).collect();
    world.granted(VirtchnlRequest::Addresses(false, VSI, EncodedMessageList::new(&list).list()));
}

fn legacy(n: u8) -> ([u8; 6], EtherAddressType) {
    (mac(n), EtherAddressType::Legacy)
}

#[test]
fn vf_without_trust_returns_the_main_address_of_another_vf() {
    let mut world = user_and_owner();
    take_by_trust(&mut world, 2);
    set_of(&mut world, USER, |policy| policy.trust = false);
    assert_eq!(addresses(&world, USER), (Some(1), [mac(1)].into()));
    assert_eq!(world.introduce(USER, OFFERED).mac, mac(1));
    assert_eq!(add_of(&mut world, USER, &[primary(2)]), VirtchnlStatus::Param);
    assert_eq!(addresses(&world, OWNER), (Some(2), [mac(2)].into()));
}

#[test]
fn vf_without_trust_keeps_a_main_address_that_only_it_uses() {
    let mut world = user_and_owner();
    take_by_trust(&mut world, 9);
    set_of(&mut world, USER, |policy| policy.trust = false);
    assert_eq!(addresses(&world, USER), (Some(9), [mac(9)].into()));
}

/// Tests an address that a station beyond the uplink uses, or a VF that the card of another family serves.
#[test]
fn vf_without_trust_or_share_mac_returns_a_stations_address() {
    for (trust, share_mac) in [(true, false), (false, true)] {
        let mut world = user_and_owner();
        set_of(&mut world, USER, |policy| (policy.trust, policy.share_mac) = (trust, share_mac));
        world.introduce(USER, OFFERED);
        assert_eq!(add_of(&mut world, USER, &[primary(9)]), VirtchnlStatus::Success);
        world.card.used_by_others.insert(mac(9));
        set_of(&mut world, USER, |policy| (policy.trust, policy.share_mac) = (false, false));
        assert_eq!(addresses(&world, USER), (Some(1), [mac(1)].into()));
        assert!(!world.pf.vf_is_active(USER));
    }
}

#[test]
fn reset_keeps_a_chosen_address_that_a_trusted_vf_uses_too() {
    let mut world = user_and_owner();
    assert_eq!(add_of(&mut world, OWNER, &[primary(9)]), VirtchnlStatus::Success);
    take_by_trust(&mut world, 9);
    restart(&mut world, OWNER);
    assert_eq!(addresses(&world, OWNER), (Some(9), [mac(9)].into()));
}

/// Tests lists with an own address that a trusted VF uses too. iavf never repeats a refused list.
#[test]
fn vf_may_request_its_own_address_while_a_trusted_vf_uses_it() {
    for admin_mac in [false, true] {
        let mut world = user_and_owner();
        set_of(&mut world, OWNER, |policy| policy.admin_mac = admin_mac);
        take_by_trust(&mut world, 2);
        restart(&mut world, OWNER);
        let list = [primary(2), extra(GROUP)];
        assert_eq!(add_of(&mut world, OWNER, &list), VirtchnlStatus::Success);
        assert_eq!(addresses(&world, OWNER), (Some(2), [mac(2), GROUP].into()));
    }
}

#[test]
fn vf_may_request_the_proposed_address_after_a_chosen_one() {
    let mut world = user_and_owner();
    assert_eq!(add_of(&mut world, OWNER, &[primary(9)]), VirtchnlStatus::Success);
    take_by_trust(&mut world, 2);
    assert_eq!(add_of(&mut world, OWNER, &[primary(2), extra(GROUP)]), VirtchnlStatus::Success);
    assert_eq!(addresses(&world, OWNER).0, Some(2));
}

#[test]
fn vf_without_share_mac_gives_up_the_address_of_another_vf() {
    for shares_no_more in [USER, OWNER] {
        let mut world = user_and_owner();
        for vf in [USER, OWNER] {
            set_of(&mut world, vf, |policy| policy.share_mac = true);
        }
        assert_eq!(add_of(&mut world, USER, &[primary(2), extra(GROUP)]), VirtchnlStatus::Success);
        set_of(&mut world, shares_no_more, |policy| policy.share_mac = false);
        assert_eq!(addresses(&world, USER), (Some(1), [mac(1)].into()), "{shares_no_more}");
        assert_eq!(addresses(&world, OWNER), (Some(2), [mac(2)].into()));
        assert_eq!([USER, OWNER].map(|vf| world.pf.vf_is_active(vf)), [false, true], "the user is reset");
    }
}

#[test]
fn end_of_trust_resets_no_vf_that_shares_the_address() {
    let mut world = user_and_owner();
    set_of(&mut world, OWNER, |policy| (policy.trust, policy.share_mac) = (true, true));
    set_of(&mut world, USER, |policy| policy.share_mac = true);
    for vf in [USER, OWNER] {
        world.introduce(vf, OFFERED);
    }
    assert_eq!(add_of(&mut world, USER, &[primary(2)]), VirtchnlStatus::Success);
    set_of(&mut world, 2, |policy| policy.trust = true);
    world.introduce(2, OFFERED);
    assert_eq!(add_of(&mut world, 2, &[extra(mac(2))]), VirtchnlStatus::Success);
    set_of(&mut world, OWNER, |policy| policy.trust = false);
    assert!(world.pf.vf_is_active(USER));
    assert_eq!(addresses(&world, USER).0, Some(2));
}

/// Tests a port of two families: a virtio VF has got the address while the guest's link was down.
#[test]
fn deleted_main_address_may_be_reserved_for_another_family() {
    let mut world = user_and_owner();
    assert_eq!(add_of(&mut world, USER, &[primary(9)]), VirtchnlStatus::Success);
    delete_legacy(&mut world, &[9]);
    world.pf.reserve_address(3, Some(MacAddress(mac(9))));
    assert_eq!(add_of(&mut world, USER, &[primary(9)]), VirtchnlStatus::Param);
}

#[test]
fn vf_without_share_mac_keeps_its_own_addresses_without_reset() {
    let mut world = user_and_owner();
    set_of(&mut world, USER, |policy| policy.share_mac = true);
    assert_eq!(add_of(&mut world, USER, &[primary(9), extra(mac(8))]), VirtchnlStatus::Success);
    set_of(&mut world, USER, |policy| policy.share_mac = false);
    assert!(world.pf.vf_is_active(USER));
    assert_eq!(addresses(&world, USER), (Some(9), [mac(1), mac(8), mac(9)].into()));
}

#[test]
fn older_driver_may_replace_its_address_in_either_order() {
    for deletes_first in [false, true] {
        let mut world = FourVfPort::active();
        world.introduce(OWNER, OFFERED);
        assert_eq!(add_of(&mut world, USER, &[extra(GROUP), legacy(1)]), VirtchnlStatus::Success);
        assert_eq!(world.pf.vf_mac(USER), Some(MacAddress(mac(1))));
        if deletes_first {
            delete_legacy(&mut world, &[1]);
        }
        assert_eq!(add_of(&mut world, USER, &[legacy(9)]), VirtchnlStatus::Success);
        if !deletes_first {
            delete_legacy(&mut world, &[1]);
        }
        assert_eq!(addresses(&world, USER), (Some(9), [mac(9), GROUP].into()), "{deletes_first}");
        restart(&mut world, USER);
        assert_eq!(addresses(&world, USER), (Some(9), [mac(9)].into()));
        assert_eq!(add_of(&mut world, OWNER, &[primary(1)]), VirtchnlStatus::Success, "address 1 is free");
    }
}

/// Tests an older Linux with a further address (macvlan): it deletes all of its addresses at `ip link set down`.
#[test]
fn older_driver_keeps_its_main_address_over_a_link_down() {
    let mut world = user_and_owner();
    assert_eq!(add_of(&mut world, USER, &[legacy(8), legacy(1)]), VirtchnlStatus::Success);
    delete_legacy(&mut world, &[1, 8]);
    assert_eq!(addresses(&world, USER), (Some(1), [].into()));
    assert_eq!(add_of(&mut world, USER, &[legacy(8), legacy(1)]), VirtchnlStatus::Success);
    assert_eq!(addresses(&world, USER), (Some(1), [mac(1), mac(8)].into()));
}

#[test]
fn deleted_primary_address_stays_the_main_address() {
    let mut world = user_and_owner();
    assert_eq!(add_of(&mut world, USER, &[primary(1), extra(mac(8))]), VirtchnlStatus::Success);
    let deleted = [EtherAddress { mac: mac(1), usage: EtherAddressType::Primary }];
    world.granted(VirtchnlRequest::Addresses(false, VSI, EncodedMessageList::new(&deleted).list()));
    assert_eq!(addresses(&world, USER), (Some(1), [mac(8)].into()));
}

#[test]
fn older_driver_cannot_replace_an_address_set_by_policy() {
    let mut world = user_and_owner();
    world.set(|policy| policy.admin_mac = true);
    world.introduce(USER, OFFERED);
    delete_legacy(&mut world, &[1]);
    assert_eq!(add_of(&mut world, USER, &[legacy(9)]), VirtchnlStatus::Param);
    assert_eq!(addresses(&world, USER), (Some(1), [mac(1)].into()));
}
