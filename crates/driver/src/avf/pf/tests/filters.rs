//! Tests addresses, VLANs and promiscuity: i40e's rules and limits.

use super::{FourVfPort, VSI, mac};
use crate::avf::pf::{OFFERED, VirtchnlRefusal};
use ::avf::virtchnl::{
    EncodedMessageList, EtherAddress, EtherAddressType, VfCapabilities, VirtchnlRequest, VirtchnlStatus,
    VlanFilter, VlanFilterTag,
};
use i82576::MacAddress;
use policy::{FilterKind, PortVlan, VfPolicy};
use std::vec::Vec;

const GROUP: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

fn add(world: &mut FourVfPort, list: &[([u8; 6], EtherAddressType)]) -> VirtchnlStatus {
    let list: Vec<_> = list.iter().map(|(mac, usage)| EtherAddress { mac: *mac, usage: *usage }).collect();
    world.ask(0, VirtchnlRequest::Addresses(true, VSI, EncodedMessageList::new(&list).list())).0
}

fn delete(world: &mut FourVfPort, macs: &[[u8; 6]]) -> VirtchnlStatus {
    let list: Vec<_> =
        macs.iter().map(|mac| EtherAddress { mac: *mac, usage: EtherAddressType::Extra }).collect();
    world.ask(0, VirtchnlRequest::Addresses(false, VSI, EncodedMessageList::new(&list).list())).0
}

fn vlans(world: &mut FourVfPort, on: bool, ids: &[u16]) -> VirtchnlStatus {
    world.ask(0, VirtchnlRequest::Vlans(on, VSI, EncodedMessageList::new(ids).list())).0
}

/// Creates a port whose VF 0 is active and has an address that the administrator has set.
fn fixed() -> FourVfPort {
    let mut world = FourVfPort::new();
    world.set(|policy| (policy.mac, policy.admin_mac) = (Some(MacAddress(mac(1))), true));
    world.introduce(0, OFFERED);
    world
}

#[test]
fn vf_may_add_its_own_and_a_multicast_address() {
    let mut world = FourVfPort::active();
    assert_eq!(
        add(&mut world, &[(mac(1), EtherAddressType::Primary), (GROUP, EtherAddressType::Extra)]),
        VirtchnlStatus::Success
    );
    assert!(world.told().addresses.iter().eq(&[mac(1), GROUP]));
    assert_eq!(world.pf.vf_mac(0), Some(MacAddress(mac(1))));
}

#[test]
fn new_primary_address_is_added_before_the_old_is_removed() {
    let mut world = FourVfPort::active();
    add(&mut world, &[(mac(1), EtherAddressType::Primary)]);
    add(&mut world, &[(mac(2), EtherAddressType::Primary)]);
    assert_eq!(delete(&mut world, &[mac(1)]), VirtchnlStatus::Success);
    assert_eq!(world.pf.vf_mac(0), Some(MacAddress(mac(2))));
    assert!(world.told().addresses.iter().eq(&[mac(2)]));
}

#[test]
fn untrusted_vf_cannot_replace_an_address_set_by_policy() {
    let mut world = fixed();
    assert_eq!(
        add(&mut world, &[(mac(1), EtherAddressType::Primary), (GROUP, EtherAddressType::Extra)]),
        VirtchnlStatus::Success
    );
    let again = add(&mut world, &[(mac(1), EtherAddressType::Primary)]);
    assert_eq!(again, VirtchnlStatus::Success, "DPDK asks for its address twice");
    assert_eq!(
        add(&mut world, &[(GROUP, EtherAddressType::Extra), (mac(2), EtherAddressType::Extra)]),
        VirtchnlStatus::Param
    );
    assert_eq!(world.refusals(VirtchnlRefusal::AddressFixed), 1);
    assert_eq!(delete(&mut world, &[mac(1)]), VirtchnlStatus::Success);
    assert!(world.told().addresses.contains(&mac(1)), "kept despite the success reply");
}

#[test]
fn trusted_vf_may_use_another_address() {
    let mut world = fixed();
    world.set(|policy| policy.trust = true);
    world.introduce(0, OFFERED);
    assert_eq!(add(&mut world, &[(mac(2), EtherAddressType::Primary)]), VirtchnlStatus::Success);
    assert_eq!(world.pf.vf_mac(0), Some(MacAddress(mac(2))));
}

#[test]
fn zero_and_broadcast_addresses_are_refused() {
    let mut world = FourVfPort::active();
    for bad in [[0; 6], [0xff; 6]] {
        assert_eq!(
            add(&mut world, &[(mac(1), EtherAddressType::Extra), (bad, EtherAddressType::Extra)]),
            VirtchnlStatus::Param
        );
        assert_eq!(delete(&mut world, &[bad]), VirtchnlStatus::Param);
    }
    assert!(world.told().addresses.is_empty(), "the whole message is refused");
}

/// Creates a port whose VFs 0 and 1 are active; VF 1 also receives by the address `mac`.
fn with_neighbour(mac: [u8; 6]) -> FourVfPort {
    let mut world = FourVfPort::active();
    world.introduce(1, OFFERED);
    let list = EncodedMessageList::new(&[EtherAddress { mac, usage: EtherAddressType::Extra }]);
    assert_eq!(
        world.ask(1, VirtchnlRequest::Addresses(true, VSI + 1, list.list())).0,
        VirtchnlStatus::Success
    );
    world
}

/// Tests a virtual router: keepalived (use_vmac) adds the address to the backup's interface while the master
/// has it.
#[test]
fn virtual_router_address_may_be_shared() {
    for last in [0x01, 0x02] {
        let router = [0, 0, 0x5e, 0, last, 51];
        let mut world = with_neighbour(router);
        let own = (mac(1), EtherAddressType::Primary);
        assert_eq!(add(&mut world, &[own, (router, EtherAddressType::Extra)]), VirtchnlStatus::Success);
        assert!(world.told().addresses.contains(&router));
    }
}

#[test]
fn two_vfs_with_share_mac_may_have_the_same_address() {
    let extra = [(mac(9), EtherAddressType::Extra)];
    for (own, others, status) in [
        (false, false, VirtchnlStatus::Param),
        (true, false, VirtchnlStatus::Param),
        (false, true, VirtchnlStatus::Param),
        (true, true, VirtchnlStatus::Success),
    ] {
        let mut world = with_neighbour(mac(9));
        world.set(|policy| policy.share_mac = own);
        let policy = VfPolicy { share_mac: others, ..VfPolicy::default() };
        world.pf.set_policy(&mut world.card, 1, policy).unwrap();
        assert!([0, 1].into_iter().all(|vf| world.pf.vf_is_active(vf)), "no VF is reset");
        assert_eq!(add(&mut world, &extra), status, "{own}, {others}");
    }
}

#[test]
fn using_another_vfs_address_needs_trust() {
    let mut world = with_neighbour(mac(9));
    assert_eq!(add(&mut world, &[(mac(9), EtherAddressType::Extra)]), VirtchnlStatus::Param);
    assert_eq!(world.refusals(VirtchnlRefusal::AddressInUse), 1);
    world.set(|policy| policy.trust = true);
    world.introduce(0, OFFERED);
    assert_eq!(add(&mut world, &[(mac(9), EtherAddressType::Extra)]), VirtchnlStatus::Success);
}

#[test]
fn reserved_address_stays_reserved_over_policies_and_resets() {
    let mut world = FourVfPort::active();
    let extra = [(mac(9), EtherAddressType::Extra)];
    world.pf.reserve_address(2, Some(MacAddress(mac(9))));
    assert_eq!(add(&mut world, &extra), VirtchnlStatus::Param);
    world.pf.set_policies(&mut world.card, &[VfPolicy::default(); 4]).unwrap();
    assert_eq!(add(&mut world, &extra), VirtchnlStatus::Param, "after a change of policies");
    world.pf.reset_all(&mut world.card);
    world.introduce(0, OFFERED);
    assert_eq!(add(&mut world, &extra), VirtchnlStatus::Param, "after a reset of all VFs");
    world.pf.reserve_address(2, None);
    assert_eq!(
        add(&mut world, &extra),
        VirtchnlStatus::Success,
        "once the other card's VF has given the address up"
    );
}

#[test]
fn address_quota_is_18_and_higher_for_a_trusted_vf() {
    let groups =
        |count: u8| -> Vec<_> { (0..count).map(|n| ([1, 0, 0, 0, 0, n], EtherAddressType::Extra)).collect() };
    let mut world = FourVfPort::active();
    assert_eq!(add(&mut world, &groups(18)), VirtchnlStatus::Success);
    assert_eq!(add(&mut world, &groups(18)), VirtchnlStatus::Success, "repeated addresses count once");
    assert_eq!(add(&mut world, &groups(19)), VirtchnlStatus::Param);
    assert_eq!(world.refusals(VirtchnlRefusal::TooManyAddresses), 1);
    world.set(|policy| policy.trust = true);
    world.introduce(0, OFFERED);
    assert_eq!(add(&mut world, &groups(100)), VirtchnlStatus::Success);
    assert_eq!(add(&mut world, &groups(129)), VirtchnlStatus::Param);
}

/// Tests a list longer than the quota. Each look-up of an address compares it with those of all VFs, so the PF
/// refuses a longer list before any look-up.
#[test]
fn address_list_beyond_the_quota_is_refused_without_a_look_up() {
    let mut world = with_neighbour(mac(9));
    let used = (mac(9), EtherAddressType::Extra);
    assert_eq!(add(&mut world, &[used; 510]), VirtchnlStatus::Param);
    assert_eq!(add(&mut world, &[used; 18]), VirtchnlStatus::Param);
    let refused = [VirtchnlRefusal::TooManyAddresses, VirtchnlRefusal::AddressInUse];
    assert_eq!(refused.map(|why| world.refusals(why)), [1, 1]);
}

#[test]
fn deleting_a_missing_address_or_vlan_succeeds() {
    let mut world = FourVfPort::active();
    assert_eq!(delete(&mut world, &[mac(5)]), VirtchnlStatus::Success);
    assert_eq!(
        vlans(&mut world, false, &[77]),
        VirtchnlStatus::Success,
        "Linux resets again and again after an error"
    );
}

#[test]
fn vf_joins_and_leaves_vlans_and_strips_tags() {
    let mut world = FourVfPort::new();
    world.introduce(0, VfCapabilities::VLAN);
    assert!(
        world.told().vlans.iter().eq(&[0]) && !world.told().tags.strip,
        "every VF receives untagged frames"
    );
    assert_eq!(vlans(&mut world, true, &[5, 4095]), VirtchnlStatus::Success);
    assert!(world.told().vlans.iter().eq(&[0, 5, 4095]) && world.told().tags.strip);
    world.granted(VirtchnlRequest::Strip(false));
    assert!(!world.told().tags.strip);
    assert_eq!(vlans(&mut world, false, &[5, 0]), VirtchnlStatus::Success);
    assert!(world.told().vlans.iter().eq(&[0, 4095]), "VLAN 0 cannot be left");
}

#[test]
fn joining_vlans_beyond_the_quota_succeeds_without_effect() {
    let mut world = FourVfPort::active();
    let ids: Vec<u16> = (1..=17).collect();
    assert_eq!(vlans(&mut world, true, &ids), VirtchnlStatus::Success);
    assert_eq!((world.told().vlans.len(), world.refusals(VirtchnlRefusal::TooManyVlans)), (1 + 16, 1));
    world.set(|policy| policy.trust = true);
    world.introduce(0, OFFERED);
    vlans(&mut world, true, &ids);
    assert_eq!(world.told().vlans.len(), 1 + 17);
}

#[test]
fn address_and_vlan_quotas_of_the_policy_replace_those_by_trust() {
    let groups =
        |count: u8| -> Vec<_> { (0..count).map(|n| ([1, 0, 0, 0, 0, n], EtherAddressType::Extra)).collect() };
    for trust in [false, true] {
        let mut world = FourVfPort::new();
        world.set(|policy| {
            policy.trust = trust;
            (policy.quotas.mac.max, policy.quotas.vlan.max) = (20, 3);
        });
        world.introduce(0, OFFERED);
        assert_eq!(add(&mut world, &groups(21)), VirtchnlStatus::Param);
        assert_eq!(add(&mut world, &groups(20)), VirtchnlStatus::Success);
        vlans(&mut world, true, &[1, 2, 3, 4]);
        assert!(world.told().vlans.iter().eq(&[0, 1, 2, 3]));
        let uses = FilterKind::ALL.map(|kind| world.pf.filter_use(0, kind).unwrap());
        assert_eq!(uses.map(|of| (of.used, of.guaranteed, of.most)), [(20, 20, 20), (3, 3, 3)]);
    }
}

#[test]
fn vlan_beyond_4095_is_refused() {
    let mut world = FourVfPort::active();
    assert_eq!(vlans(&mut world, true, &[5, 4096]), VirtchnlStatus::Param);
    assert_eq!(world.refusals(VirtchnlRefusal::VlanInvalid), 1);
    assert!(world.told().vlans.iter().eq(&[0]), "no VLAN of the list is added");
}

#[test]
fn vf_on_a_port_vlan_cannot_join_another_vlan() {
    let mut world = FourVfPort::active();
    world.set(|policy| policy.vlan = Some(PortVlan { id: 5, qos: 3 }));
    world.introduce(0, OFFERED);
    assert!(world.told().vlans.iter().eq(&[5]));
    assert_eq!(world.told().tags.port_vlan, Some(3 << 13 | 5));
    assert_eq!(vlans(&mut world, true, &[6]), VirtchnlStatus::Param);
    assert_eq!(vlans(&mut world, false, &[5]), VirtchnlStatus::Success);
    assert!(world.told().vlans.iter().eq(&[5]), "the port VLAN cannot be left");
}

#[test]
fn vlan_stripping_on_a_port_vlan_succeeds_without_effect() {
    let mut world = FourVfPort::active();
    world.set(|policy| policy.vlan = Some(PortVlan { id: 5, qos: 3 }));
    world.introduce(0, OFFERED);
    let tags = world.told().tags;
    world.granted(VirtchnlRequest::Strip(false));
    assert_eq!(world.told().tags, tags);
}

#[test]
fn vlan_v2_filter_must_be_one_outer_tag_of_type_8100() {
    let mut world = FourVfPort::active();
    let tag = |tci, tpid| VlanFilterTag { tci, mask: 0, tpid };
    let good = VlanFilter { outer: tag(0x6005, 0x8100), inner: VlanFilterTag::default() };
    world.granted(VirtchnlRequest::VlanFilters(true, VSI, EncodedMessageList::new(&[good]).list()));
    assert!(world.told().vlans.contains(&5), "the id of the tag");
    for bad in [
        VlanFilter { outer: tag(5, 0x88a8), ..good },
        VlanFilter { inner: tag(5, 0x8100), ..good },
        VlanFilter::default(),
    ] {
        world.refused(
            VirtchnlRequest::VlanFilters(true, VSI, EncodedMessageList::new(&[good, bad]).list()),
            VirtchnlRefusal::VlanInvalid,
        );
    }
    world.granted(VirtchnlRequest::VlanFilters(false, VSI, EncodedMessageList::new(&[good]).list()));
    assert!(!world.told().vlans.contains(&5));
}

#[test]
fn untrusted_vfs_promiscuity_request_succeeds_without_effect() {
    let mut world = FourVfPort::active();
    world.granted(VirtchnlRequest::Promiscuity(VSI, 3));
    assert_eq!((world.told().promiscuous, world.refusals(VirtchnlRefusal::Promiscuity)), ((false, false), 1));
    world.set(|policy| policy.trust = true);
    world.introduce(0, OFFERED);
    for (flags, told) in [(3, (true, true)), (2, (false, true)), (0, (false, false))] {
        world.granted(VirtchnlRequest::Promiscuity(VSI, flags));
        assert_eq!(world.told().promiscuous, told);
    }
}

#[test]
fn multicast_promiscuity_needs_trust_and_allmulti() {
    let mut world = FourVfPort::active();
    world.set(|policy| (policy.trust, policy.allmulti) = (true, false));
    world.introduce(0, OFFERED);
    world.granted(VirtchnlRequest::Promiscuity(VSI, 2));
    assert_eq!((world.told().promiscuous, world.refusals(VirtchnlRefusal::Promiscuity)), ((false, false), 1));
    world.granted(VirtchnlRequest::Promiscuity(VSI, 3));
    assert_eq!(world.told().promiscuous, (true, false));
}

#[test]
fn look_ups_of_addresses_are_charged_by_all_vfs_addresses() {
    let mut world = FourVfPort::active();
    let list = [mac(1), mac(2), GROUP].map(|mac| (mac, EtherAddressType::Extra));
    let compared = [0, 16].map(|groups| {
        world.introduce(1, OFFERED);
        let list_of_groups = (0..groups)
            .map(|n| EtherAddress { mac: [0x33, 0x33, 0, 0, 1, n], usage: EtherAddressType::Extra })
            .collect::<Vec<_>>();
        let request = EncodedMessageList::new(&list_of_groups);
        world.ask(1, VirtchnlRequest::Addresses(true, VSI + 1, request.list()));
        world.card.compared.clear();
        add(&mut world, &list);
        let compared = core::mem::take(&mut world.card.compared);
        delete(&mut world, &list.map(|(mac, _)| mac));
        compared
    });
    let [[(0, few)], [(0, many)]] = compared.each_ref().map(Vec::as_slice) else { panic!("{compared:?}") };
    assert_eq!(many - few, 2 * 16, "two unicast addresses, sixteen groups of VF 1");
    world.set(|policy| policy.trust = true);
    world.introduce(0, OFFERED);
    add(&mut world, &list);
    assert_eq!(world.card.compared, [], "a trusted VF may use any address");
}
