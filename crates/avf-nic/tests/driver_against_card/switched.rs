//! Tests VFs as ports of the forwarding plane: receivers of a frame, tags, and checks of the sender.

use crate::world::{CardFixture, mac};
use avf::control::CardControl;
use avf::virtchnl::{EncodedMessageList, EtherAddress, EtherAddressType, VirtchnlRequest};
use driver::avf::vf::AvfDriver;
use plane::PortIndex;
use plane::guard::GuardedPlane;
use plane::switch::{PortMirrorRule, PortMirrorRules};
use policy::{PortVlan, VfPolicy};
use units::VlanIds;

/// Creates a card with a plane and starts its VFs 0 to 2, with policies that `change` adjusts.
fn three(change: impl Fn(u8, &mut VfPolicy)) -> (CardFixture, [AvfDriver; 3]) {
    let mut world = CardFixture::new(3).across_a_plane();
    world.with_pf(|pf, side| {
        for vf in 0..3 {
            let mut policy = VfPolicy { mac: Some(mac(vf)), ..VfPolicy::default() };
            change(vf, &mut policy);
            pf.set_policy(side, vf, policy).unwrap();
        }
    });
    let vfs = [0, 1, 2].map(|vf| world.start(vf));
    (world, vfs)
}

fn frame(to: [u8; 6], from: u8) -> Vec<u8> {
    let mut frame = [&to[..], &mac(from).0, &[0x88, 0xb5]].concat();
    frame.resize(60, from);
    frame
}

/// Sends the frame `sent` from VF 0. Returns the frames that VF 1 and VF 2 receive, or `None` for each that
/// receives none.
fn heard(world: &mut CardFixture, vfs: &mut [AvfDriver; 3], sent: &[u8]) -> [Option<Vec<u8>>; 2] {
    assert!(vfs[0].transmit(&mut world.vf(0), 0, sent));
    world.round();
    [1, 2].map(|n| {
        let mut into = [0; 2048];
        let received = vfs[usize::from(n)].receive(&mut world.vf(n), 0, &mut into)?;
        Some(into[..received.length].to_vec())
    })
}

/// Tests the master and the backup of a virtual router (keepalived with use_vmac), and a client, which is VF
/// 0.
#[test]
fn backup_of_a_virtual_router_receives_after_fail_over() {
    let (mut world, mut vfs) = three(|_, _| {});
    let router = [0, 0, 0x5e, 0, 1, 51];
    for n in [1, 2] {
        let list = EncodedMessageList::new(&[EtherAddress { mac: router, usage: EtherAddressType::Extra }]);
        let request = VirtchnlRequest::Addresses(true, u16::from(n) + 1, list.list());
        vfs[usize::from(n)].ask(&mut world.vf(n), request).unwrap();
    }
    let from_router = |byte| [&mac(0).0[..], &router, &[0x88, 0xb5], &[byte; 46]].concat();
    for active in [1, 2] {
        let announcement = from_router(active);
        assert!(vfs[usize::from(active)].transmit(&mut world.vf(active), 0, &announcement));
        world.round();
        let mut into = [0; 2048];
        let received = vfs[0].receive(&mut world.vf(0), 0, &mut into);
        assert_eq!(received.map(|got| into[..got.length].to_vec()), Some(announcement));
        let ping = frame(router, 0);
        assert_eq!(heard(&mut world, &mut vfs, &ping), [Some(ping.clone()), Some(ping.clone())]);
        // The master may be on another host while both of these are backups.
        assert_eq!(core::mem::take(&mut world.cable.0), [ping]);
    }
    // A VF that has not added the address may not send from it.
    let spoofed = [&mac(1).0[..], &router, &[0x88, 0xb5], &[3; 46]].concat();
    assert_eq!(heard(&mut world, &mut vfs, &spoofed), [None, None]);
}

#[test]
fn unicast_reaches_its_vf_and_broadcast_every_vf_and_uplink() {
    let (mut world, mut vfs) = three(|_, _| {});
    let to_one = frame(mac(2).0, 0);
    assert_eq!(heard(&mut world, &mut vfs, &to_one), [None, Some(to_one)]);
    assert!(world.cable.0.is_empty(), "unicast between VFs stays off the uplink");
    let to_all = frame([0xff; 6], 0);
    assert_eq!(heard(&mut world, &mut vfs, &to_all), [Some(to_all.clone()), Some(to_all.clone())]);
    assert_eq!(world.cable.0, [to_all]);
    assert_eq!(world.card.statistics(2).rx_broadcast, 1);
    assert_eq!((world.card.statistics(0).tx_unicast, world.card.statistics(0).tx_broadcast), (1, 1));
}

#[test]
fn frame_with_a_spoofed_source_is_dropped_and_counted() {
    let (mut world, mut vfs) = three(|_, _| {});
    assert_eq!(heard(&mut world, &mut vfs, &frame(mac(2).0, 1)), [None, None]);
    assert_eq!(world.card.statistics(0).tx_discards, 1);
}

#[test]
fn avf_with_spoof_check_sends_into_its_own_vlans_only() {
    let (mut world, mut vfs) = three(|_, _| {});
    let vlans = EncodedMessageList::new(&[7]);
    vfs[0].ask(&mut world.vf(0), VirtchnlRequest::Vlans(true, 1, vlans.list())).unwrap();
    let [own, foreign] = [7, 8].map(|vlan| {
        let mut tagged = frame(mac(9).0, 0);
        tagged.splice(12..12, [0x81, 0, 0, vlan]);
        tagged
    });
    heard(&mut world, &mut vfs, &foreign);
    heard(&mut world, &mut vfs, &own);
    assert_eq!(world.cable.0, [own]);
    assert_eq!(world.plane.as_ref().unwrap().ledger.total(PortIndex::of_field(0)).tx_spoofed, 1);
}

#[test]
fn port_vlan_isolates_vfs_and_hides_its_tag_from_guests() {
    let (mut world, mut vfs) =
        three(|vf, policy| policy.vlan = (vf != 1).then_some(PortVlan { id: 5, qos: 0 }));
    let to_all = frame([0xff; 6], 0);
    assert_eq!(heard(&mut world, &mut vfs, &to_all), [None, Some(to_all.clone())]);
    assert_eq!(world.cable.0[0][12..16], [0x81, 0, 0, 5], "the uplink sees the tag");
}

#[test]
fn port_vlan_0_adds_a_priority_tag_to_frames_on_the_wire() {
    let (mut world, mut vfs) =
        three(|vf, policy| policy.vlan = (vf == 0).then_some(PortVlan { id: 0, qos: 5 }));
    let to_all = frame([0xff; 6], 0);
    let mut tagged = to_all.clone();
    tagged.splice(12..12, [0x81, 0, 0xa0, 0]);
    assert_eq!(
        heard(&mut world, &mut vfs, &to_all),
        [Some(tagged.clone()), Some(tagged.clone())],
        "VLAN 0 is every VF's"
    );
    assert_eq!(world.cable.0, [tagged]);
    let untagged = frame([0xff; 6], 9);
    assert_eq!(arrived(&mut world, &mut vfs, &untagged).as_ref(), Some(&untagged));
}

#[test]
fn link_local_frames_except_pause_pass_if_forwarding_is_on() {
    let (mut world, mut vfs) = three(|_, _| {});
    let to = |last: u8| frame([0x01, 0x80, 0xc2, 0, 0, last], 0);
    (0..16).for_each(|last| drop(heard(&mut world, &mut vfs, &to(last))));
    assert!(world.cable.0.is_empty());
    world.plane.as_mut().unwrap().forward_link_local(true);
    // New switch tables, as after any change of filters, keep the setting.
    world.card.apply_policy(world.plane.as_mut().unwrap(), &PortMirrorRules::NONE);
    (0..16).for_each(|last| drop(heard(&mut world, &mut vfs, &to(last))));
    assert_eq!(world.cable.0, (0..16).filter(|last| *last != 1).map(to).collect::<Vec<_>>());
    world.plane.as_mut().unwrap().forward_link_local(false);
    drop(heard(&mut world, &mut vfs, &to(2)));
    assert_eq!(world.cable.0.len(), 15);
}

#[test]
fn vf_receives_only_vlans_that_it_has_joined() {
    let (mut world, mut vfs) = three(|_, _| {});
    for n in [0, 2] {
        let vlans = EncodedMessageList::new(&[7]);
        let request = VirtchnlRequest::Vlans(true, u16::from(n) + 1, vlans.list());
        vfs[usize::from(n)].ask(&mut world.vf(n), request).unwrap();
    }
    let mut tagged = frame([0xff; 6], 0);
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    let mut untagged = tagged.clone();
    untagged.drain(12..16);
    assert_eq!(heard(&mut world, &mut vfs, &tagged), [None, Some(untagged)], "the tag is in the descriptor");
}

#[test]
fn vf_with_stopped_queues_receives_nothing() {
    let (mut world, mut vfs) = three(|_, _| {});
    vfs[2].stop(&mut world.vf(2)).unwrap();
    assert_eq!(heard(&mut world, &mut vfs, &frame(mac(2).0, 0)), [None, None]);
}

/// Delivers a frame from the uplink to the card. Returns the bytes that VF 0 receives.
fn arrived(world: &mut CardFixture, vfs: &mut [AvfDriver; 3], came: &[u8]) -> Option<Vec<u8>> {
    world.cable.1.push_back(came.to_vec());
    world.round();
    let mut into = [0; 12_000];
    let received = vfs[0].receive(&mut world.vf(0), 0, &mut into)?;
    Some(into[..received.length].to_vec())
}

#[test]
fn frame_from_the_uplink_reaches_its_vf_padded_to_60_bytes() {
    let (mut world, mut vfs) = three(|_, _| {});
    let mut short = frame(mac(0).0, 9);
    short.truncate(42);
    let padded = [&short[..], &[0; 18]].concat();
    assert_eq!(arrived(&mut world, &mut vfs, &short), Some(padded));
    assert_eq!(arrived(&mut world, &mut vfs, &frame(mac(7).0, 9)), None, "no VF has this address");
}

#[test]
fn pause_undersize_and_oversize_frames_from_wire_are_dropped() {
    let (mut world, mut vfs) = three(|_, _| {});
    let mut pause = frame(mac(0).0, 9);
    pause[12..14].copy_from_slice(&[0x88, 0x08]);
    let mut endless = frame(mac(0).0, 9);
    endless.resize(9725, 0);
    for came in [&pause[..], &pause[..13], &endless] {
        assert_eq!(arrived(&mut world, &mut vfs, came), None);
    }
    assert!(arrived(&mut world, &mut vfs, &endless[..1500]).is_some());
}

#[test]
fn mirror_rule_copies_each_frame_once() {
    let (mut world, mut vfs) = three(|_, _| {});
    let only = |vf: u32| PortIndex::of_field(vf).only();
    let rule = PortMirrorRule {
        to: only(2),
        ports: only(1),
        from_uplink: false,
        to_uplink: true,
        vlans: VlanIds::new(),
    };
    world.mirrors.add(rule);
    let to_one = frame(mac(1).0, 0);
    assert_eq!(
        heard(&mut world, &mut vfs, &to_one),
        [Some(to_one.clone()), Some(to_one)],
        "VF 1's received frames are mirrored"
    );
    let outside = frame(mac(9).0, 0);
    assert_eq!(
        heard(&mut world, &mut vfs, &outside),
        [None, Some(outside)],
        "frames to the uplink are mirrored"
    );
    let to_all = frame([0xff; 6], 0);
    assert_eq!(heard(&mut world, &mut vfs, &to_all), [Some(to_all.clone()), Some(to_all)]);
    assert_eq!(
        vfs[2].receive(&mut world.vf(2), 0, &mut [0; 2048]).map(|got| got.length),
        None,
        "no second copy"
    );
}
