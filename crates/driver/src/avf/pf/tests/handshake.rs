//! Tests a driver's first requests: version, resources, link.

use super::{VSI, World, mac};
use crate::avf::pf::{OFFERED, Refusal};
use ::avf::virtchnl::reply::{decode, encode};
use ::avf::virtchnl::{Capabilities, Event, QueueSet, Request, Resources, Status, Version, VlanCapabilities};
use i82576::MacAddress;
use policy::{Link, PortVlan};
use std::vec;

const UP: Event = Event::Link { speed: 25_000, up: true };

#[test]
fn version_reply_has_the_older_of_both_versions() {
    let mut world = World::new();
    for (asked, answered) in [
        (Version::V1_1, Version::V1_1),
        (Version::V1_0, Version::V1_0),
        (Version { major: 9, minor: 9 }, Version::V1_1),
    ] {
        let reply = world.ask(0, Request::Version(asked));
        assert_eq!(reply, (Status::Success, encode(&answered)));
    }
}

#[test]
fn resources_are_those_requested_and_offered() {
    let mut world = World::new();
    world.set(|policy| policy.mac = Some(MacAddress(mac(7))));
    let linux_6_12 = Capabilities(0x1abd_8cf9);
    let resources = world.introduce(0, linux_6_12);
    assert_eq!(resources.capabilities, linux_6_12.common(OFFERED).without(Capabilities::VLAN));
    assert_eq!((resources.pairs, resources.vectors, resources.max_frame), (4, 5, 9728));
    assert_eq!((resources.vsi, resources.mac), (VSI, mac(7)));
}

#[test]
fn port_vlan_leaves_room_for_its_tag_in_the_longest_frame() {
    for (max_mtu, told) in [(9706, 9724), (9700, 9724), (9698, 9724), (1500, 1526)] {
        let mut world = World::new();
        world.set(|of| (of.max_mtu, of.vlan) = (Some(max_mtu), Some(PortVlan { id: 7, qos: 0 })));
        assert_eq!(world.introduce(0, Capabilities::VLAN).max_frame, told, "MTU {max_mtu}");
    }
}

#[test]
fn vlan_offload_v1_and_v2_are_exclusive() {
    let (v1, v2) = (Capabilities::VLAN, Capabilities::VLAN_V2);
    for (asked, agreed) in [(v1, v1), (v2, v2), (v1.and(v2), v2)] {
        let resources = World::new().introduce(0, asked);
        assert_eq!(resources.capabilities.common(v1.and(v2)), agreed, "Linux tests V1 first");
    }
}

#[test]
fn vf_of_version_1_0_has_vlan_offload() {
    let mut world = World::new();
    world.ask(0, Request::Version(Version::V1_0));
    let (_, body) = world.ask(0, Request::Resources(None));
    let resources: Resources = decode(&body).unwrap();
    assert_eq!(resources.capabilities, Capabilities::L2.and(Capabilities::VLAN));
}

#[test]
fn resources_may_be_requested_twice() {
    let mut world = World::active();
    let (status, _) = world.ask(0, Request::Resources(Some(OFFERED)));
    assert_eq!(
        status,
        Status::Success,
        "-5 would be fatal in Linux, which asks twice when the reply is late"
    );
}

#[test]
fn vf_without_mac_address_gets_a_zero_address() {
    assert_eq!(World::new().introduce(0, OFFERED).mac, [0; 6]);
}

#[test]
fn link_event_follows_resources_and_every_enable() {
    let mut world = World::active();
    assert_eq!(world.events(), [UP]);
    for _ in 0..2 {
        world.granted(Request::SwitchQueues(true, QueueSet { vsi: VSI, rx: 1, tx: 1 }));
        assert_eq!(world.events(), [UP], "drivers treat it as up only when their queues run");
    }
    world.granted(Request::SwitchQueues(false, QueueSet { vsi: VSI, rx: 1, tx: 1 }));
    assert_eq!(world.events(), []);
}

#[test]
fn link_speed_format_follows_the_capability() {
    let mut world = World::new();
    world.introduce(0, Capabilities::L2);
    assert_eq!(world.events(), [Event::Link { speed: 0x40, up: true }], "25 Gb/s");
    world.pf.set_link(&mut world.card, Some(100_000));
    assert_eq!(world.events(), [Event::Link { speed: 0, up: true }], "the old field has no value for it");
}

#[test]
fn link_change_is_sent_to_active_vfs() {
    let mut world = World::active();
    world.events();
    world.pf.set_link(&mut world.card, None);
    assert_eq!(world.events(), [Event::Link { speed: 0, up: false }]);
    assert!(!world.card.sent.contains_key(&1), "VF 1 has no driver");
    world.pf.set_link(&mut world.card, None);
    assert_eq!(world.events(), [], "no change, no event");
}

#[test]
fn link_policy_overrides_the_port_link() {
    let mut world = World::active();
    world.events();
    world.set(|policy| policy.state = Link::Disable);
    assert_eq!(world.events(), [Event::Link { speed: 0, up: false }]);
    world.set(|policy| policy.state = Link::Enable);
    assert_eq!(world.events(), [UP]);
    world.pf.set_link(&mut world.card, None);
    assert_eq!(world.pf.vf_link(0), Some(25_000), "up, whatever the port's link is");
}

#[test]
fn unknown_operation_is_refused_with_a_reply() {
    let mut world = World::active();
    for number in [0, 4, 20, 45, 60, 66, 112, 500] {
        assert_eq!(world.ask_raw(0, number, &[]), (Status::NotSupported, vec![]), "{number}");
    }
    assert_eq!(world.pf.counters(0).unwrap().unknown, 8);
}

#[test]
fn body_of_wrong_length_is_refused() {
    let mut world = World::active();
    assert_eq!(world.ask_raw(0, 8, &[0; 11]), (Status::Param, vec![]));
    assert_eq!(world.ask_raw(0, 6, &[1, 0, 200, 0, 0, 0, 0, 0]), (Status::Param, vec![]));
}

#[test]
fn requests_before_resources_are_refused() {
    let mut world = World::new();
    world.refused(Request::Strip(true), Refusal::NotReady);
    world.refused(Request::Queues(2), Refusal::NotReady);
}

#[test]
fn vsi_of_another_vf_is_refused() {
    let mut world = World::active();
    for request in [
        Request::SwitchQueues(true, QueueSet { vsi: VSI + 1, rx: 1, tx: 1 }),
        Request::Promiscuity(VSI + 1, 0),
        Request::HashKey(VSI + 1, &[0; 52]),
    ] {
        world.refused(request, Refusal::NotItsVsi);
    }
}

#[test]
fn vlan_v2_offers_one_tag_or_none_on_a_port_vlan() {
    let mut world = World::active();
    let (_, body) = world.ask(0, Request::VlanCapabilities);
    assert_eq!(decode(&body), Some(VlanCapabilities::one_tag(64)));
    world.set(|policy| policy.vlan = Some(PortVlan { id: 5, qos: 0 }));
    let resources = world.introduce(0, OFFERED);
    assert!(!resources.capabilities.has(Capabilities::VLAN));
    let (_, body) = world.ask(0, Request::VlanCapabilities);
    assert_eq!(decode(&body), Some(VlanCapabilities::default()), "Linux shows the offloads as fixed off");
}

#[test]
fn flexible_descriptor_formats_need_their_capability() {
    let mut world = World::active();
    let (status, body) = world.ask(0, Request::RxDescriptors);
    assert_eq!((status, body[0] & 2), (Status::Success, 2), "legacy must be among them");
    let mut world = World::new();
    world.introduce(0, Capabilities::L2);
    world.refused(Request::RxDescriptors, Refusal::NotAgreed);
}
