//! Tests the addresses that a VF loses when its right to them ends, and the owners that keep an address from a policy.

use super::{StoredRegisters, vf, with_mac};
use crate::hal::Hal;
use crate::pf::{MailboxRefusal, Pf};
use i82576::MacAddress;
use i82576::ids::RECEIVE_ADDRESSES;
use i82576::mailbox::{INFO_SHIFT, WORDS, id, mac_filter};
use i82576::register as r;
use policy::{AddressOwner, PolicyError, VfPolicy};
use std::vec::Vec;

/// Address of a virtual router (VRRP), which every VF without an administrator's address may have.
const ROUTER: MacAddress = MacAddress([0, 0, 0x5e, 0, 1, 51]);

/// Creates a PF with three enabled VFs, to which the host proposes the addresses 1 to 3.
fn three_vfs() -> (StoredRegisters, Pf) {
    let mut hal = StoredRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 3).unwrap();
    pf.set_policies(&mut hal, &[with_mac(1), with_mac(2), with_mac(3)]).unwrap();
    (hal, pf)
}

fn mac(n: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, n])
}

fn trusted(n: u8) -> VfPolicy {
    VfPolicy { trust: true, ..with_mac(n) }
}

fn sharing(n: u8) -> VfPolicy {
    VfPolicy { share_mac: true, ..with_mac(n) }
}

/// Returns a policy with an administrator's address.
fn fixed(n: u8) -> VfPolicy {
    VfPolicy { admin_mac: true, ..with_mac(n) }
}

/// Serves a VF's request for an address: `info` is 0 for its main address, or else adds one.
fn request(
    (hal, pf): (&mut StoredRegisters, &mut Pf),
    n: u8,
    info: u32,
    address: MacAddress,
) -> Result<(), MailboxRefusal> {
    let mut message = [0; WORDS];
    let (low, high) = address.to_words();
    message[..3].copy_from_slice(&[id::SET_MAC_ADDR | info << INFO_SHIFT, low, high]);
    pf.decide(hal, vf(n), &message).outcome
}

/// Returns the addresses by which the card delivers frames to a VF, in order.
fn received(hal: &mut StoredRegisters, n: u8) -> Vec<MacAddress> {
    let entries = (1..RECEIVE_ADDRESSES as u32).map(|i| (hal.read(r::ral(i)), hal.read(r::rah(i))));
    let own = entries.filter(|(_, high)| high >> 31 == 1 && high >> (18 + n) & 1 == 1);
    let mut own: Vec<_> = own.map(|(low, high)| MacAddress::from_words(low, high)).collect();
    own.sort();
    own
}

#[test]
fn administrators_address_ends_a_vfs_other_addresses() {
    for trust in [false, true] {
        let (mut hal, mut pf) = three_vfs();
        request((&mut hal, &mut pf), 0, 0, mac(8)).unwrap();
        request((&mut hal, &mut pf), 0, mac_filter::ADD, mac(9)).unwrap();
        request((&mut hal, &mut pf), 0, mac_filter::ADD, ROUTER).unwrap();
        // The administrator gives the address that the host had proposed, or another one.
        for n in [1, 5] {
            pf.set_policy(&mut hal, vf(0), VfPolicy { trust, ..fixed(n) }).unwrap();
            let expected = if trust { [ROUTER, mac(n), mac(9)].to_vec() } else { [mac(n)].to_vec() };
            assert_eq!(received(&mut hal, 0), expected, "trust {trust}");
            assert_eq!(pf.vf_mac(vf(0)), Some(mac(n)));
        }
    }
}

#[test]
fn distrusted_vf_loses_the_addresses_of_others() {
    let (mut hal, mut pf) = three_vfs();
    pf.set_policy(&mut hal, vf(0), trusted(1)).unwrap();
    request((&mut hal, &mut pf), 0, 0, mac(2)).unwrap();
    for address in [mac(3), mac(9), ROUTER] {
        request((&mut hal, &mut pf), 0, mac_filter::ADD, address).unwrap();
    }
    pf.set_policy(&mut hal, vf(0), with_mac(1)).unwrap();
    assert_eq!(pf.vf_mac(vf(0)), Some(mac(1)));
    assert_eq!(received(&mut hal, 0), [ROUTER, mac(1), mac(9)], "it keeps what any VF may have");
    assert_eq!((received(&mut hal, 1), received(&mut hal, 2)), ([mac(2)].to_vec(), [mac(3)].to_vec()));
}

#[test]
fn distrusted_vf_has_the_administrators_address_alone() {
    let (mut hal, mut pf) = three_vfs();
    pf.set_policy(&mut hal, vf(0), VfPolicy { trust: true, ..fixed(1) }).unwrap();
    request((&mut hal, &mut pf), 0, 0, mac(8)).unwrap();
    request((&mut hal, &mut pf), 0, mac_filter::ADD, mac(9)).unwrap();
    pf.set_policy(&mut hal, vf(0), fixed(1)).unwrap();
    assert_eq!((pf.vf_mac(vf(0)), received(&mut hal, 0)), (Some(mac(1)), [mac(1)].to_vec()));
}

#[test]
fn end_of_sharing_leaves_an_address_to_its_owner() {
    for (ends, main) in [(0, 0), (0, mac_filter::ADD), (1, 0), (1, mac_filter::ADD)] {
        let (mut hal, mut pf) = three_vfs();
        pf.set_policies(&mut hal, &[sharing(1), sharing(2), sharing(3)]).unwrap();
        request((&mut hal, &mut pf), 1, main, mac(1)).unwrap();
        request((&mut hal, &mut pf), 2, mac_filter::ADD, mac(1)).unwrap();
        pf.set_policy(&mut hal, vf(ends), with_mac(ends + 1)).unwrap();
        assert_eq!((pf.vf_mac(vf(1)), received(&mut hal, 1)), (Some(mac(2)), [mac(2)].to_vec()));
        assert_eq!(received(&mut hal, 0), [mac(1)]);
        let third = if ends == 0 { [mac(3)].to_vec() } else { [mac(1), mac(3)].to_vec() };
        assert_eq!(received(&mut hal, 2), third, "sharing of VF {ends} ended");
    }
}

/// Tests an address that a station beyond the uplink uses, or a VF of another port.
#[test]
fn distrusted_vf_loses_the_address_of_a_station() {
    for info in [0, mac_filter::ADD] {
        let (mut hal, mut pf) = three_vfs();
        pf.set_policy(&mut hal, vf(0), trusted(1)).unwrap();
        request((&mut hal, &mut pf), 0, info, mac(9)).unwrap();
        hal.shared = Some(mac(9));
        pf.set_policy(&mut hal, vf(0), with_mac(1)).unwrap();
        assert_eq!((pf.vf_mac(vf(0)), received(&mut hal, 0)), (Some(mac(1)), [mac(1)].to_vec()));
    }
}

#[test]
fn end_of_sharing_takes_no_address_that_trust_has_given() {
    let (mut hal, mut pf) = three_vfs();
    let both = |share_mac| VfPolicy { share_mac, ..trusted(1) };
    pf.set_policies(&mut hal, &[both(true), sharing(2), with_mac(3)]).unwrap();
    request((&mut hal, &mut pf), 1, 0, mac(9)).unwrap();
    request((&mut hal, &mut pf), 0, mac_filter::ADD, mac(9)).unwrap();
    pf.set_policy(&mut hal, vf(0), both(false)).unwrap();
    assert_eq!((pf.vf_mac(vf(1)), received(&mut hal, 1)), (Some(mac(9)), [mac(9)].to_vec()));
}

#[test]
fn end_of_all_sharing_leaves_a_free_address_to_one_vf() {
    let (mut hal, mut pf) = three_vfs();
    pf.set_policies(&mut hal, &[sharing(1), sharing(2), sharing(3)]).unwrap();
    for n in 0..3 {
        request((&mut hal, &mut pf), n, 0, mac(9)).unwrap();
    }
    // A successor finds other settings in the configuration file.
    let mut pf = Pf::restore(pf.save()).unwrap();
    pf.set_policies(&mut hal, &[with_mac(1), with_mac(2), with_mac(3)]).unwrap();
    let addresses = [0, 1, 2].map(|n| received(&mut hal, n));
    assert_eq!(addresses, [[mac(1)], [mac(2)], [mac(9)]]);
    assert_eq!([0, 1, 2].map(|n| pf.vf_mac(vf(n))), [Some(mac(1)), Some(mac(2)), Some(mac(9))]);
}

#[test]
fn vf_keeps_its_address_while_a_trusted_vf_has_it_too() {
    let (mut hal, mut pf) = three_vfs();
    pf.set_policy(&mut hal, vf(0), trusted(1)).unwrap();
    request((&mut hal, &mut pf), 1, 0, mac(9)).unwrap();
    request((&mut hal, &mut pf), 0, mac_filter::ADD, mac(9)).unwrap();
    pf.set_policy(&mut hal, vf(1), VfPolicy { spoofchk: false, ..with_mac(2) }).unwrap();
    assert_eq!(
        (received(&mut hal, 1), received(&mut hal, 0)),
        ([mac(9)].to_vec(), [mac(1), mac(9)].to_vec())
    );
}

#[test]
fn address_of_several_vfs_moves_only_if_all_give_it_up() {
    let (mut hal, mut pf) = three_vfs();
    pf.set_policy(&mut hal, vf(2), trusted(3)).unwrap();
    request((&mut hal, &mut pf), 2, mac_filter::ADD, mac(1)).unwrap();
    let in_use = PolicyError::MacInUse(mac(1), AddressOwner::Vf(vf(2).into()));
    assert_eq!(pf.set_policies(&mut hal, &[with_mac(5), fixed(1), trusted(3)]), Err((vf(1).into(), in_use)));
    // VF 2 has the administrator's address alone from now on.
    pf.set_policies(&mut hal, &[with_mac(5), fixed(1), fixed(3)]).unwrap();
    assert_eq!([0, 1, 2].map(|n| received(&mut hal, n)), [[mac(5)], [mac(1)], [mac(3)]]);
}

#[test]
fn former_main_address_that_is_added_too_is_not_free() {
    let (mut hal, mut pf) = three_vfs();
    // VF 0 adds another address, makes it its main one, and adds the proposed one again.
    request((&mut hal, &mut pf), 0, 0, mac(9)).unwrap();
    request((&mut hal, &mut pf), 0, mac_filter::ADD, mac(1)).unwrap();
    let in_use = PolicyError::MacInUse(mac(1), AddressOwner::Vf(vf(0).into()));
    assert_eq!(
        pf.check_policies(&[with_mac(5), fixed(1), with_mac(3)]),
        Err((vf(1).into(), in_use)),
        "the VF may keep an added address"
    );
}
