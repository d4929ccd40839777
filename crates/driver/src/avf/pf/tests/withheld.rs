//! Tests requests for addresses that the switch withholds: another VF, a station beyond the uplink or the host holds them.

use super::{FourVfPort, VSI, mac};
use crate::avf::pf::{OFFERED, VirtchnlRefusal};
use ::avf::virtchnl::{EncodedMessageList, EtherAddress, EtherAddressType, VirtchnlRequest, VirtchnlStatus};
use i82576::MacAddress;
use policy::VfPolicy;
use std::vec::Vec;

const GROUP: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
/// Address that the owner's guest has chosen.
const CHOSEN: [u8; 6] = [2, 0, 0, 0, 0, 9];
const THIEF: u8 = 0;
const OWNER: u8 = 1;

pub(super) fn primary(n: u8) -> ([u8; 6], EtherAddressType) {
    (mac(n), EtherAddressType::Primary)
}

pub(super) fn extra(mac: [u8; 6]) -> ([u8; 6], EtherAddressType) {
    (mac, EtherAddressType::Extra)
}

pub(super) fn add_of(world: &mut FourVfPort, vf: u8, list: &[([u8; 6], EtherAddressType)]) -> VirtchnlStatus {
    let list: Vec<_> = list.iter().map(|(mac, usage)| EtherAddress { mac: *mac, usage: *usage }).collect();
    let list = EncodedMessageList::new(&list);
    world.ask(vf, VirtchnlRequest::Addresses(true, VSI + u16::from(vf), list.list())).0
}

fn add(world: &mut FourVfPort, list: &[([u8; 6], EtherAddressType)]) -> VirtchnlStatus {
    add_of(world, THIEF, list)
}

/// Resets a VF by its guest, whose driver then starts again.
pub(super) fn restart(world: &mut FourVfPort, vf: u8) {
    world.card.flr(vf);
    world.pf.visit(&mut world.card);
    world.introduce(vf, OFFERED);
}

/// Creates a port whose VFs 0 and 1 are active, with the main addresses 1 and 2.
fn thief_and_owner() -> FourVfPort {
    let mut world = FourVfPort::new();
    for vf in [THIEF, OWNER] {
        let policy = VfPolicy { mac: Some(MacAddress(mac(1 + vf))), ..VfPolicy::default() };
        world.pf.set_policy(&mut world.card, vf, policy).unwrap();
        world.introduce(vf, OFFERED);
    }
    world
}

#[test]
fn address_that_the_switch_withholds_is_refused() {
    let mut world = FourVfPort::active();
    world.card.withheld.insert(mac(9));
    let [free, station] = [5, 9].map(|n| extra(mac(n)));
    assert_eq!(add(&mut world, &[free, (GROUP, EtherAddressType::Extra), station]), VirtchnlStatus::Param);
    assert_eq!(world.refusals(VirtchnlRefusal::AddressInUse), 1);
    assert!(world.told().addresses.is_empty(), "the whole message is refused");
    assert_eq!(add(&mut world, &[(mac(9), EtherAddressType::Primary)]), VirtchnlStatus::Param);
    assert_eq!((add(&mut world, &[free]), world.pf.vf_mac(0)), (VirtchnlStatus::Success, None));
    // The switch decides again in its tables about an address that the VF has.
    world.card.withheld.insert(mac(5));
    assert_eq!(add(&mut world, &[free]), VirtchnlStatus::Success);
}

/// Tests the list of iavf's start: main address, further addresses and groups. iavf never repeats a refused list.
#[test]
fn list_with_the_main_address_is_acknowledged() {
    let mut world = FourVfPort::new();
    world.set(|policy| policy.mac = Some(MacAddress(mac(1))));
    world.introduce(0, OFFERED);
    world.card.withheld.insert(mac(9));
    let extra = [mac(9), GROUP].map(|mac| (mac, EtherAddressType::Extra));
    assert_eq!(
        add(&mut world, &[(mac(1), EtherAddressType::Primary), extra[0], extra[1]]),
        VirtchnlStatus::Success
    );
    assert!(world.told().addresses.iter().eq(&[mac(1), GROUP]));
    assert_eq!(world.refusals(VirtchnlRefusal::AddressInUse), 1);
}

#[test]
fn list_with_the_main_address_takes_none_of_a_resetting_vf() {
    let mut world = thief_and_owner();
    let owned = [primary(2), extra(CHOSEN), extra(GROUP)];
    assert_eq!(add_of(&mut world, OWNER, &owned), VirtchnlStatus::Success);
    restart(&mut world, OWNER);
    // The switch keeps the address for its owner.
    world.card.withheld.insert(CHOSEN);
    assert_eq!(add(&mut world, &[primary(1), extra(CHOSEN), extra(mac(5))]), VirtchnlStatus::Success);
    assert!(world.told().addresses.iter().eq(&[mac(1), mac(5)]));
    assert_eq!(world.refusals(VirtchnlRefusal::AddressInUse), 1);
    world.card.withheld.clear();
    assert_eq!(add_of(&mut world, OWNER, &owned), VirtchnlStatus::Success);
    assert!(world.card.told[&OWNER].addresses.iter().eq(&[mac(2), CHOSEN, GROUP]));
}

#[test]
fn withheld_address_becomes_no_main_address() {
    let mut world = thief_and_owner();
    let chosen = (CHOSEN, EtherAddressType::Primary);
    assert_eq!(add_of(&mut world, OWNER, &[chosen]), VirtchnlStatus::Success);
    // The host ends the connection of the owner's client.
    world.pf.forget_guest(OWNER);
    world.card.withheld.insert(CHOSEN);
    restart(&mut world, OWNER);
    assert_eq!(add(&mut world, &[extra(mac(1)), chosen]), VirtchnlStatus::Success);
    assert_eq!(world.pf.vf_mac(THIEF), Some(MacAddress(mac(1))));
    restart(&mut world, THIEF);
    assert!(world.told().addresses.iter().eq(&[mac(1)]));
    world.card.withheld.clear();
    assert_eq!(add_of(&mut world, OWNER, &[chosen]), VirtchnlStatus::Success);
    assert_eq!(world.pf.vf_mac(OWNER), Some(MacAddress(CHOSEN)));
}
