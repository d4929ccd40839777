//! Tests a VF driver's first requests: version, resources, link.

use super::{FourVfPort, VSI, mac};
use crate::avf::pf::{OFFERED, VirtchnlRefusal};
use ::avf::virtchnl::reply::{decode, encode};
use ::avf::virtchnl::{
    QueueSet, VfCapabilities, VfResources, VirtchnlEvent, VirtchnlRequest, VirtchnlStatus, VirtchnlVersion,
    VlanCapabilities,
};
use i82576::MacAddress;
use policy::{PortVlan, VfLinkPolicy};
use std::vec;

const UP: VirtchnlEvent = VirtchnlEvent::Link { speed: 25_000, up: true };

#[test]
fn version_reply_has_the_older_of_both_versions() {
    let mut world = FourVfPort::new();
    for (asked, answered) in [
        (VirtchnlVersion::V1_1, VirtchnlVersion::V1_1),
        (VirtchnlVersion::V1_0, VirtchnlVersion::V1_0),
        (VirtchnlVersion { major: 9, minor: 9 }, VirtchnlVersion::V1_1),
    ] {
        let reply = world.ask(0, VirtchnlRequest::Version(asked));
        assert_eq!(reply, (VirtchnlStatus::Success, encode(&answered)));
    }
}

#[test]
fn vf_gets_the_capabilities_both_requested_and_offered() {
    let mut world = FourVfPort::new();
    world.set(|policy| policy.mac = Some(MacAddress(mac(7))));
    let linux_6_12 = VfCapabilities(0x1abd_8cf9);
    let resources = world.introduce(0, linux_6_12);
    assert_eq!(resources.capabilities, linux_6_12.common(OFFERED).without(VfCapabilities::VLAN));
    assert_eq!((resources.pairs, resources.vectors, resources.max_frame), (4, 5, 9728));
    assert_eq!((resources.vsi, resources.mac), (VSI, mac(7)));
}

#[test]
fn longest_frame_of_a_vf_on_a_port_vlan_is_at_most_9724_bytes() {
    for (max_mtu, told) in [(9706, 9724), (9700, 9724), (9698, 9724), (1500, 1526)] {
        let mut world = FourVfPort::new();
        world.set(|of| (of.max_mtu, of.vlan) = (Some(max_mtu), Some(PortVlan { id: 7, qos: 0 })));
        assert_eq!(world.introduce(0, VfCapabilities::VLAN).max_frame, told, "MTU {max_mtu}");
    }
}

#[test]
fn vf_that_requests_vlan_offload_v1_and_v2_gets_only_v2() {
    let (v1, v2) = (VfCapabilities::VLAN, VfCapabilities::VLAN_V2);
    for (asked, agreed) in [(v1, v1), (v2, v2), (v1.and(v2), v2)] {
        let resources = FourVfPort::new().introduce(0, asked);
        assert_eq!(resources.capabilities.common(v1.and(v2)), agreed, "Linux tests V1 first");
    }
}

#[test]
fn vf_of_virtchnl_version_1_0_is_offered_vlan_offload() {
    let mut world = FourVfPort::new();
    world.ask(0, VirtchnlRequest::Version(VirtchnlVersion::V1_0));
    let (_, body) = world.ask(0, VirtchnlRequest::Resources(None));
    let resources: VfResources = decode(&body).unwrap();
    assert_eq!(resources.capabilities, VfCapabilities::L2.and(VfCapabilities::VLAN));
}

#[test]
fn vf_may_request_its_resources_twice() {
    let mut world = FourVfPort::active();
    let (status, _) = world.ask(0, VirtchnlRequest::Resources(Some(OFFERED)));
    assert_eq!(
        status,
        VirtchnlStatus::Success,
        "-5 would be fatal in Linux, which asks twice when the reply is late"
    );
}

#[test]
fn resource_reply_has_a_zero_mac_if_policy_sets_none() {
    assert_eq!(FourVfPort::new().introduce(0, OFFERED).mac, [0; 6]);
}

#[test]
fn link_event_follows_resource_reply_and_every_queue_enable() {
    let mut world = FourVfPort::active();
    assert_eq!(world.events(), [UP]);
    for _ in 0..2 {
        world.granted(VirtchnlRequest::SwitchQueues(true, QueueSet { vsi: VSI, rx: 1, tx: 1 }));
        assert_eq!(world.events(), [UP], "drivers treat it as up only when their queues run");
    }
    world.granted(VirtchnlRequest::SwitchQueues(false, QueueSet { vsi: VSI, rx: 1, tx: 1 }));
    assert_eq!(world.events(), []);
}

#[test]
fn link_event_to_vf_without_adv_link_speed_has_a_speed_bit() {
    let mut world = FourVfPort::new();
    world.introduce(0, VfCapabilities::L2);
    assert_eq!(world.events(), [VirtchnlEvent::Link { speed: 0x40, up: true }], "25 Gb/s");
    world.pf.set_link(&mut world.card, Some(100_000));
    assert_eq!(
        world.events(),
        [VirtchnlEvent::Link { speed: 0, up: true }],
        "the old field has no value for it"
    );
}

#[test]
fn link_change_event_is_sent_only_to_vfs_with_a_driver() {
    let mut world = FourVfPort::active();
    world.events();
    world.pf.set_link(&mut world.card, None);
    assert_eq!(world.events(), [VirtchnlEvent::Link { speed: 0, up: false }]);
    assert!(!world.card.sent.contains_key(&1), "VF 1 has no driver");
    world.pf.set_link(&mut world.card, None);
    assert_eq!(world.events(), [], "no change, no event");
}

#[test]
fn vfs_link_policy_overrides_the_ports_link_state() {
    let mut world = FourVfPort::active();
    world.events();
    world.set(|policy| policy.state = VfLinkPolicy::Disable);
    assert_eq!(world.events(), [VirtchnlEvent::Link { speed: 0, up: false }]);
    world.set(|policy| policy.state = VfLinkPolicy::Enable);
    assert_eq!(world.events(), [UP]);
    world.pf.set_link(&mut world.card, None);
    assert_eq!(world.pf.vf_link(0), Some(25_000), "up, whatever the port's link is");
}

#[test]
fn unknown_operation_is_refused_with_a_reply() {
    let mut world = FourVfPort::active();
    for number in [0, 4, 20, 45, 60, 66, 112, 500] {
        assert_eq!(world.ask_raw(0, number, &[]), (VirtchnlStatus::NotSupported, vec![]), "{number}");
    }
    assert_eq!(world.pf.counters(0).unwrap().unknown, 8);
}

#[test]
fn request_with_a_body_of_wrong_length_is_refused() {
    let mut world = FourVfPort::active();
    assert_eq!(world.ask_raw(0, 8, &[0; 11]), (VirtchnlStatus::Param, vec![]));
    assert_eq!(world.ask_raw(0, 6, &[1, 0, 200, 0, 0, 0, 0, 0]), (VirtchnlStatus::Param, vec![]));
}

#[test]
fn vf_requests_before_its_resources_request_are_refused() {
    let mut world = FourVfPort::new();
    world.refused(VirtchnlRequest::Strip(true), VirtchnlRefusal::NotReady);
    world.refused(VirtchnlRequest::Queues(2), VirtchnlRefusal::NotReady);
}

#[test]
fn request_for_another_vfs_vsi_is_refused() {
    let mut world = FourVfPort::active();
    for request in [
        VirtchnlRequest::SwitchQueues(true, QueueSet { vsi: VSI + 1, rx: 1, tx: 1 }),
        VirtchnlRequest::Promiscuity(VSI + 1, 0),
        VirtchnlRequest::HashKey(VSI + 1, &[0; 52]),
    ] {
        world.refused(request, VirtchnlRefusal::NotItsVsi);
    }
}

#[test]
fn vlan_v2_reply_offers_one_tag_and_none_on_a_port_vlan() {
    let mut world = FourVfPort::active();
    let (_, body) = world.ask(0, VirtchnlRequest::VlanCapabilities);
    assert_eq!(decode(&body), Some(VlanCapabilities::one_tag(64)));
    world.set(|policy| policy.vlan = Some(PortVlan { id: 5, qos: 0 }));
    let resources = world.introduce(0, OFFERED);
    assert!(!resources.capabilities.has(VfCapabilities::VLAN));
    let (_, body) = world.ask(0, VirtchnlRequest::VlanCapabilities);
    assert_eq!(decode(&body), Some(VlanCapabilities::default()), "Linux shows the offloads as fixed off");
}

#[test]
fn rx_format_query_without_its_capability_is_refused() {
    let mut world = FourVfPort::active();
    let (status, body) = world.ask(0, VirtchnlRequest::RxDescriptors);
    assert_eq!((status, body[0] & 2), (VirtchnlStatus::Success, 2), "legacy must be among them");
    let mut world = FourVfPort::new();
    world.introduce(0, VfCapabilities::L2);
    world.refused(VirtchnlRequest::RxDescriptors, VirtchnlRefusal::NotAgreed);
}
