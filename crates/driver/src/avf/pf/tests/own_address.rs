//! Tests a VF's main address: which VF keeps it, and which gets it back.

use super::withheld::{add_of, extra, primary, restart};
use super::{FourVfPort, mac};
use crate::avf::pf::OFFERED;
use ::avf::virtchnl::VirtchnlStatus;
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
