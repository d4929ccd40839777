//! Tests resets by the VF, by its guest, and by the administrator.

use super::{FourVfPort, mac};
use crate::avf::pf::OFFERED;
use crate::hal::Hal;
use ::avf::bits::rstat;
use ::avf::pf_register as r;
use ::avf::virtchnl::{VirtchnlEvent, VirtchnlOpcode, VirtchnlRequest, VirtchnlVersion};
use i82576::MacAddress;
use pcie::VfIndex;
use policy::{AddressOwner, PolicyError, VfLinkPolicy, VfPolicy};

#[test]
fn vf_reset_request_gets_no_reply() {
    let mut world = FourVfPort::active();
    world.card.sent.clear();
    world.card.arrive(0, VirtchnlOpcode::ResetVf.number(), &[]);
    world.pf.visit(&mut world.card);
    assert!(!world.card.sent.contains_key(&0), "no reply, no event");
    assert_eq!(world.card.read(r::VFGEN_RSTAT1), rstat::ACTIVE);
    assert!(!world.pf.vf_is_active(0));
}

#[test]
fn negotiated_version_and_mac_address_survive_a_vf_reset() {
    let mut world = FourVfPort::new();
    world.ask(0, VirtchnlRequest::Version(VirtchnlVersion::V1_1));
    world.introduce(0, OFFERED);
    let address =
        ::avf::virtchnl::EtherAddress { mac: mac(3), usage: ::avf::virtchnl::EtherAddressType::Primary };
    let list = ::avf::virtchnl::EncodedMessageList::new(&[address]);
    world.granted(VirtchnlRequest::Addresses(true, super::VSI, list.list()));
    world.card.flr(0);
    world.pf.visit(&mut world.card);
    // Linux's reset task requests resources without a new VERSION.
    let (_, body) = world.ask(0, VirtchnlRequest::Resources(Some(OFFERED)));
    let resources: ::avf::virtchnl::VfResources = ::avf::virtchnl::reply::decode(&body).unwrap();
    assert_eq!(
        (resources.mac, resources.capabilities.has(::avf::virtchnl::VfCapabilities::VLAN_V2)),
        (mac(3), true)
    );
    assert!(world.told().addresses.contains(&mac(3)));
}

#[test]
fn next_guest_of_a_vf_gets_no_choice_of_the_last_one() {
    let mut world = FourVfPort::new();
    world.set(|policy| policy.mac = Some(MacAddress(mac(1))));
    let chosen = ::avf::virtchnl::EncodedMessageList::new(&[::avf::virtchnl::EtherAddress {
        mac: mac(3),
        usage: ::avf::virtchnl::EtherAddressType::Primary,
    }]);
    world.introduce(0, OFFERED);
    world.granted(VirtchnlRequest::Addresses(true, super::VSI, chosen.list()));
    world.ask(0, VirtchnlRequest::Queues(2));
    assert_eq!((world.introduce(0, OFFERED).mac, world.pf.vf_pairs(0)), (mac(3), 2));
    // The VF's client has gone, and the card has reset the VF.
    world.pf.forget_guest(0);
    assert_eq!(world.pf.vf_mac(0), Some(MacAddress(mac(1))));
    world.card.flr(0);
    world.pf.visit(&mut world.card);
    let resources = world.introduce(0, OFFERED);
    assert_eq!((resources.mac, resources.pairs), (mac(1), 4));
    assert!(world.told().addresses.iter().eq(&[mac(1)]));
}

#[test]
fn function_level_reset_voids_the_vfs_pending_requests() {
    let mut world = FourVfPort::active();
    world.introduce(1, OFFERED);
    world.card.sent.clear();
    let version = ::avf::virtchnl::reply::encode(&VirtchnlVersion::V1_1);
    for vf in [0, 1, 0] {
        world.card.arrive(vf, VirtchnlOpcode::Version.number(), &version);
    }
    world.card.flr(0);
    let visit = world.pf.visit(&mut world.card);
    assert_eq!((visit.resets, visit.served), (1, 1));
    assert!(world.card.sent.keys().eq(&[1]), "only VF 1 gets a reply");
    assert_eq!(world.card.read(r::GLGEN_VFLRSTAT), 0, "the reset is confirmed to the card");
    assert_eq!(world.pf.passed_over(), (0, 2));
}

#[test]
fn reset_of_a_vf_without_credit_waits() {
    let mut world = FourVfPort::active();
    world.introduce(1, OFFERED);
    world.pf.hold_resets(0b01);
    [0, 1].into_iter().for_each(|vf| world.card.flr(vf));
    let visit = world.pf.visit(&mut world.card);
    assert_eq!((visit.resets, visit.more), (0b10, true));
    assert_eq!(world.card.read(r::GLGEN_VFLRSTAT), 0b01, "the reset is not confirmed to the card");
    world.pf.hold_resets(0);
    let visit = world.pf.visit(&mut world.card);
    assert_eq!((visit.resets, visit.more), (0b01, false));
    assert!(!world.pf.vf_is_active(0));
}

#[test]
fn reset_by_policy_serves_a_function_level_reset_that_waits() {
    let mut world = FourVfPort::active();
    world.pf.hold_resets(0b01);
    world.card.flr(0);
    world.pf.visit(&mut world.card);
    world.set(|policy| policy.trust = true);
    assert_eq!(world.card.read(r::GLGEN_VFLRSTAT), 0, "the reset is confirmed to the card");
    world.introduce(0, OFFERED);
    world.pf.hold_resets(0);
    assert_eq!(world.pf.visit(&mut world.card).resets, 0);
    assert!(world.pf.vf_is_active(0), "the driver's new start is kept");
}

#[test]
fn vf_messages_after_a_reset_request_are_void() {
    let mut world = FourVfPort::active();
    world.card.sent.clear();
    world.card.arrive(0, VirtchnlOpcode::ResetVf.number(), &[]);
    world.card.arrive(0, VirtchnlOpcode::GetRssHenaCaps.number(), &[]);
    world.pf.visit(&mut world.card);
    assert!(!world.card.sent.contains_key(&0));
}

#[test]
fn vf_reset_by_the_administrator_is_announced_first() {
    let changes: [fn(&mut VfPolicy); 4] = [
        |policy| policy.mac = Some(MacAddress(mac(9))),
        |policy| policy.trust = true,
        |policy| policy.vlan = Some(policy::PortVlan { id: 7, qos: 0 }),
        |policy| policy.enabled = false,
    ];
    for (case, change) in changes.into_iter().enumerate() {
        let mut world = FourVfPort::active();
        world.card.log.clear();
        world.set(change);
        assert_eq!(world.card.log, [(0, "reset impending"), (0, "reset")], "case {case}");
    }
}

#[test]
fn rate_spoof_check_and_link_of_a_vf_change_without_reset() {
    let mut world = FourVfPort::active();
    world.card.log.clear();
    world.set(|policy| (policy.max_tx_rate, policy.spoofchk) = (500, false));
    assert!(world.card.log.is_empty());
    assert_eq!((world.told().rate, world.told().spoof_check), (500, false));
    world.set(|policy| policy.state = VfLinkPolicy::Disable);
    assert_eq!(world.card.log, [(0, "event")]);
}

#[test]
fn inactive_vf_is_reset_without_notice() {
    let mut world = FourVfPort::new();
    world.card.log.clear();
    world.set(|policy| policy.trust = true);
    assert_eq!(world.card.log, [(0, "reset")]);
}

#[test]
fn invalid_policy_of_an_avf_keeps_its_old_policy() {
    let mut world = FourVfPort::active();
    let before = *world.pf.policy(0).unwrap();
    let changes: [fn(&mut VfPolicy); 4] = [
        |policy| policy.mac = Some(MacAddress::BROADCAST),
        |policy| policy.vlan = Some(policy::PortVlan { id: 0, qos: 0 }),
        |policy| policy.max_mtu = Some(1495),
        |policy| policy.rss = true,
    ];
    for change in changes {
        let mut policy = before;
        change(&mut policy);
        assert!(world.pf.set_policy(&mut world.card, 0, policy).is_err());
        assert_eq!(world.pf.policy(0), Some(&before));
    }
    assert!(world.pf.set_policy(&mut world.card, 4, before).is_err(), "VF 4 does not exist");
}

#[test]
fn policies_of_several_vfs_are_set_together_or_not_at_all() {
    let mut world = FourVfPort::new();
    let policy = |n| VfPolicy { mac: Some(MacAddress(mac(n))), ..VfPolicy::default() };
    let macs = |world: &FourVfPort| [0, 1].map(|vf| world.pf.vf_mac(vf).map(|mac| mac.0[5]));
    world.pf.set_policies(&mut world.card, &[policy(1), policy(2)]).unwrap();
    let twice = PolicyError::MacInUse(MacAddress(mac(3)), AddressOwner::Vf(VfIndex::of_field(1)));
    assert_eq!(
        world.pf.set_policies(&mut world.card, &[policy(3), policy(3)]),
        Err((VfIndex::of_field(0), twice))
    );
    let wrong = VfPolicy { rss: true, ..policy(2) };
    assert!(matches!(
        world.pf.set_policies(&mut world.card, &[policy(3), wrong]),
        Err((_, PolicyError::Unsupported("rss", _)))
    ));
    assert_eq!(macs(&world), [Some(1), Some(2)], "nothing is changed");
    world.pf.set_policies(&mut world.card, &[policy(2), policy(1)]).unwrap();
    assert_eq!(macs(&world), [Some(2), Some(1)], "addresses can be swapped");
}

#[test]
fn changed_number_of_queue_pairs_resets_the_vf() {
    let mut world = FourVfPort::active();
    for (pairs, most) in [(0, 16), (4, 17), (4, 2)] {
        assert!(!world.pf.set_pairs(&mut world.card, 0, pairs, most), "{pairs} of {most}");
    }
    assert!(!world.pf.set_pairs(&mut world.card, 4, 2, 16), "VF 4 does not exist");
    world.card.log.clear();
    assert!(world.pf.set_pairs(&mut world.card, 0, 2, 16));
    assert_eq!(world.card.log, [(0, "reset impending"), (0, "reset")]);
    assert_eq!(world.pf.vf_pairs(0), 2);
}

#[test]
fn pf_driver_poll_serves_at_most_16_requests_and_reports_more() {
    let mut world = FourVfPort::active();
    (0..20).for_each(|_| world.card.arrive(0, VirtchnlOpcode::GetRssHenaCaps.number(), &[]));
    let visit = world.pf.visit(&mut world.card);
    assert_eq!((visit.served, visit.more), (16, true));
    let visit = world.pf.visit(&mut world.card);
    assert_eq!((visit.served, visit.more), (4, false));
    assert_eq!(world.card.sent[&0].len(), 21 - 1 + 1, "the link event, and twenty replies");
}

#[test]
fn link_and_reset_events_to_a_vf_are_counted() {
    let mut world = FourVfPort::active();
    world.set(|policy| policy.trust = true);
    assert_eq!(world.events().last(), Some(&VirtchnlEvent::ResetImpending));
    let counters = world.pf.counters(0).unwrap();
    assert_eq!((counters.events, counters.requests(VirtchnlOpcode::Version)), (2, 1));
}
