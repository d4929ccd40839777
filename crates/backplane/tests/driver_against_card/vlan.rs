//! Tests VLANs: those that guests join and tag themselves, and port VLANs that the administrator assigns to
//! VFs.

use crate::support::{DrivenCardFixture, between, frame, index};
use backplane::vf_mac;
use driver::pf::MailboxRefusal;
use driver::vf::{MailboxError, TxOffload, VfError};
use i82576::MacAddress;
use policy::PortVlan;

const TAG_7: TxOffload = TxOffload { ip_checksum: false, l4_checksum: false, tso: None, vlan: Some(0x6007) };

fn tagged(frame: &[u8], tag: u16) -> Vec<u8> {
    [&frame[..12], &[0x81, 0], &tag.to_be_bytes(), &frame[12..]].concat()
}

#[test]
fn vlan_frames_reach_only_member_vfs_and_lose_their_tag() {
    let mut bench = DrivenCardFixture::new(3);
    bench.on(0, |vf, hal| vf.set_vlan(hal, 7, true)).unwrap();
    bench.on(1, |vf, hal| vf.set_vlan(hal, 7, true)).unwrap();
    let plain = between(0, 1, 100, 1);
    bench.send_with(0, &plain, &TAG_7);
    let (got, received) = bench.receive(1).unwrap();
    assert_eq!((got, received.vlan), (plain, Some(0x6007)));

    let broadcast = frame(MacAddress::BROADCAST, vf_mac(0), 100, 2);
    bench.send_with(0, &broadcast, &TAG_7);
    assert_eq!(bench.receive_all(1), std::slice::from_ref(&broadcast));
    assert_eq!(bench.receive_all(2).len(), 0);
    assert_eq!(bench.card.world().take_frames(), [tagged(&broadcast, 0x6007)]);
}

#[test]
fn a_vf_receives_no_frames_of_a_vlan_that_it_left() {
    let mut bench = DrivenCardFixture::new(2);
    for vf in [0, 1] {
        bench.on(vf, |driver, hal| driver.set_vlan(hal, 7, true)).unwrap();
    }
    bench.on(1, |vf, hal| vf.set_vlan(hal, 7, false)).unwrap();
    bench.send_with(0, &between(0, 1, 100, 1), &TAG_7);
    assert_eq!(bench.receive_all(1).len(), 0);
    assert_eq!(bench.card.pf_driver().unwrap().vf_vlans(index(1)).collect::<Vec<_>>(), [0]);
}

#[test]
fn frame_sent_on_a_vlan_not_joined_is_counted_as_spoofed() {
    let mut bench = DrivenCardFixture::new(2);
    bench.on(1, |vf, hal| vf.set_vlan(hal, 7, true)).unwrap();
    bench.send_with(0, &between(0, 1, 100, 1), &TAG_7);
    assert_eq!(bench.receive_all(1).len(), 0);
    assert_eq!(bench.card.last_visit().spoofed, 0b01);
}

#[test]
fn vf_request_to_join_or_leave_vlan_0_changes_no_membership() {
    let mut bench = DrivenCardFixture::new(2);
    bench.on(1, |vf, hal| vf.set_vlan(hal, 0, true)).unwrap();
    bench.on(1, |vf, hal| vf.set_vlan(hal, 0, false)).unwrap();
    bench.send(0, &between(0, 1, 100, 1));
    assert_eq!(bench.receive_all(1).len(), 1);
}

#[test]
fn vf_cannot_join_a_32nd_vlan_before_leaving_another_vlan() {
    let mut bench = DrivenCardFixture::new(1);
    for vlan in 1..32 {
        bench.on(0, |vf, hal| vf.set_vlan(hal, vlan, true)).unwrap();
    }
    let refused = bench.on(0, |vf, hal| vf.set_vlan(hal, 99, true));
    assert_eq!(refused, Err(VfError::Mailbox(MailboxError::Refused(0x1_0004))));
    assert_eq!(bench.card.pf_driver().unwrap().counters(index(0)).refused(MailboxRefusal::NoVlanFilter), 1);
    bench.on(0, |vf, hal| vf.set_vlan(hal, 3, false)).unwrap();
    bench.on(0, |vf, hal| vf.set_vlan(hal, 99, true)).unwrap();
}

#[test]
fn a_port_vlan_is_invisible_to_the_guest_and_tags_the_wire() {
    let mut bench = DrivenCardFixture::new(3);
    for vf in [0, 1] {
        let vlan = Some(PortVlan { id: 42, qos: 5 });
        let policy = policy::VfPolicy { vlan, ..*bench.card.pf_driver().unwrap().policy(index(vf)) };
        bench.card.with_pf_driver(|pf, hal| pf.set_policy(hal, index(vf), policy)).unwrap().unwrap();
    }
    let broadcast = frame(MacAddress::BROADCAST, vf_mac(0), 100, 2);
    bench.send(0, &broadcast);
    assert_eq!(bench.receive_all(1), std::slice::from_ref(&broadcast));
    assert_eq!(bench.receive_all(2).len(), 0);
    assert_eq!(bench.card.world().take_frames(), [tagged(&broadcast, 5 << 13 | 42)]);

    let refused = bench.on(0, |vf, hal| vf.set_vlan(hal, 7, true));
    assert_eq!(refused, Err(VfError::Mailbox(MailboxError::Refused(0x1_0004))));
    assert_eq!(bench.card.pf_driver().unwrap().counters(index(0)).refused(MailboxRefusal::VlanFixed), 1);
}

#[test]
fn port_vlan_0_gives_frames_on_the_wire_a_priority_tag() {
    let mut bench = DrivenCardFixture::new(2);
    let vlan = Some(PortVlan { id: 0, qos: 5 });
    let policy = policy::VfPolicy { vlan, ..*bench.card.pf_driver().unwrap().policy(index(0)) };
    bench.card.with_pf_driver(|pf, hal| pf.set_policy(hal, index(0), policy)).unwrap().unwrap();
    let there = frame(MacAddress::BROADCAST, vf_mac(0), 100, 2);
    bench.send(0, &there);
    assert_eq!(bench.card.world().take_frames(), [tagged(&there, 5 << 13)]);
    assert_eq!(bench.receive_all(1), [there], "every VF is in VLAN 0, and copies lose their tag");
    let back = frame(MacAddress::BROADCAST, vf_mac(1), 100, 3);
    bench.send(1, &back);
    assert_eq!(bench.receive_all(0), [back], "the VF still receives untagged frames");
}
