//! Tests a driver's requests against the PF's policy, and that each refusal is counted with its reason.

use crate::support::{DrivenCardFixture, frame, index};
use backplane::vf_mac;
use driver::pf::MailboxRefusal;
use driver::vf::{MailboxError, VfError};
use i82576::MacAddress;
use policy::{PortVlan, VfLinkPolicy, VfPolicy};

const GROUP: MacAddress = MacAddress([0x01, 0, 0x5e, 0, 0, 0xfb]);

/// Changes VF 0's policy by the function `change`.
fn allow(bench: &mut DrivenCardFixture, change: impl FnOnce(&mut VfPolicy)) {
    let mut policy = *bench.card.pf_driver().unwrap().policy(index(0));
    change(&mut policy);
    bench.card.with_pf_driver(|pf, hal| pf.set_policy(hal, index(0), policy)).unwrap().unwrap();
}

fn refused(bench: &DrivenCardFixture, why: MailboxRefusal) -> u64 {
    bench.card.pf_driver().unwrap().counters(index(0)).refused(why)
}

fn is_nack(outcome: Result<(), VfError>) -> bool {
    matches!(outcome, Err(VfError::Mailbox(MailboxError::Refused(_))))
}

fn vlans(bench: &DrivenCardFixture) -> Vec<u16> {
    bench.card.pf_driver().unwrap().vf_vlans(index(0)).collect()
}

#[test]
fn a_vf_joins_the_vlans_of_its_list_only() {
    let mut bench = DrivenCardFixture::new(1);
    allow(&mut bench, |policy| policy.vlans = Some([10, 11].into_iter().collect()));
    bench.on(0, |vf, hal| vf.set_vlan(hal, 10, true)).unwrap();
    assert!(is_nack(bench.on(0, |vf, hal| vf.set_vlan(hal, 12, true))));
    assert_eq!((vlans(&bench), refused(&bench, MailboxRefusal::VlanNotAllowed)), (vec![0, 10], 1));
    bench.on(0, |vf, hal| vf.set_vlan(hal, 0, true)).unwrap();
}

#[test]
fn a_vf_leaves_a_vlan_that_is_removed_from_its_list() {
    let mut bench = DrivenCardFixture::new(1);
    for vlan in [10, 11] {
        bench.on(0, |vf, hal| vf.set_vlan(hal, vlan, true)).unwrap();
    }
    allow(&mut bench, |policy| policy.vlans = Some([11].into_iter().collect()));
    assert_eq!(vlans(&bench), [0, 11]);
    allow(&mut bench, |policy| policy.vlans = Some([10, 11].into_iter().collect()));
    assert_eq!(vlans(&bench), [0, 10, 11], "the guest has it again");
}

/// Covers Linux igbvf, which ignores the refusal of a VLAN and does not request the VLAN again.
#[test]
fn refused_vlan_is_joined_after_the_policy_allows_it() {
    let mut bench = DrivenCardFixture::new(1);
    allow(&mut bench, |policy| policy.vlans = Some([11].into_iter().collect()));
    for vlan in [10, 11, 12] {
        assert_eq!(is_nack(bench.on(0, |vf, hal| vf.set_vlan(hal, vlan, true))), vlan != 11);
    }
    bench.on(0, |vf, hal| vf.set_vlan(hal, 12, false)).unwrap();
    allow(&mut bench, |policy| policy.vlans = None);
    assert_eq!(vlans(&bench), [0, 11, 10], "12 was left");
    allow(&mut bench, |policy| policy.vlans = Some([11].into_iter().collect()));
    bench.on(0, |vf, hal| vf.restart(hal)).unwrap();
    allow(&mut bench, |policy| policy.vlans = None);
    assert_eq!(vlans(&bench), [0, 11], "a reset discards the refused VLAN");
}

#[test]
fn vlans_of_a_vf_return_when_its_port_vlan_is_removed() {
    let mut bench = DrivenCardFixture::new(2);
    for vf in 0..2 {
        bench.on(vf, |vf, hal| vf.set_vlan(hal, 10, true)).unwrap();
    }
    bench.on(0, |vf, hal| vf.set_vlan(hal, 7, true)).unwrap();
    let port_vlan = PortVlan { id: 7, qos: 0 };
    allow(&mut bench, |policy| policy.vlan = Some(port_vlan));
    assert_eq!(vlans(&bench), [7]);
    allow(&mut bench, |policy| policy.vlans = Some([7].into_iter().collect()));
    assert_eq!(vlans(&bench), [7]);
    allow(&mut bench, |policy| (policy.vlan, policy.vlans) = (None, None));
    assert_eq!(vlans(&bench), [0, 10, 7]);
    let mut tagged = frame(vf_mac(1), vf_mac(0), 100, 1);
    tagged.splice(12..12, [0x81, 0, 0, 10]);
    bench.send(0, &tagged);
    assert_eq!(bench.receive_all(1).len(), 1);
}

#[test]
fn vf_request_for_a_frame_length_beyond_the_mtu_is_refused() {
    let mut bench = DrivenCardFixture::new(1);
    allow(&mut bench, |policy| policy.max_mtu = Some(1500));
    bench.on(0, |vf, hal| vf.set_max_frame(hal, 1514)).unwrap();
    assert!(is_nack(bench.on(0, |vf, hal| vf.set_max_frame(hal, 1515))));
    assert_eq!(refused(&bench, MailboxRefusal::MtuLimit), 1);
    allow(&mut bench, |policy| policy.max_mtu = None);
    bench.on(0, |vf, hal| vf.set_max_frame(hal, 9000)).unwrap();
}

#[test]
fn lowered_mtu_limit_applies_to_vfs_with_a_larger_mtu() {
    let mut bench = DrivenCardFixture::new(2);
    for vf in 0..2 {
        bench.on(vf, |vf, hal| vf.set_max_frame(hal, 9000)).unwrap();
    }
    let long = frame(vf_mac(0), vf_mac(1), 3000, 1);
    bench.send(1, &long);
    assert_eq!(bench.receive_all(0).len(), 1);
    allow(&mut bench, |policy| policy.max_mtu = Some(1500));
    bench.send(1, &long);
    assert_eq!(bench.receive_all(0).len(), 0);
    allow(&mut bench, |policy| policy.max_mtu = None);
    bench.send(1, &long);
    assert_eq!(bench.receive_all(0).len(), 1, "the VF's own limit returns");
}

#[test]
fn vf_request_for_all_multicast_is_refused_unless_allowed() {
    let mut bench = DrivenCardFixture::new(2);
    allow(&mut bench, |policy| policy.allmulti = false);
    assert!(is_nack(bench.on(0, |vf, hal| vf.set_all_multicast(hal, true))));
    assert_eq!(refused(&bench, MailboxRefusal::MulticastPromiscuity), 1);
    let multicast = frame(GROUP, vf_mac(1), 100, 1);
    bench.send(1, &multicast);
    assert_eq!(bench.receive_all(0).len(), 0);
    bench.on(0, |vf, hal| vf.set_multicast(hal, &[GROUP])).unwrap();
    bench.send(1, &multicast);
    assert_eq!(bench.receive_all(0).len(), 1, "a single group is allowed");
}

#[test]
fn vf_beyond_its_multicast_limit_gets_no_unrequested_group() {
    let mut bench = DrivenCardFixture::new(2);
    allow(&mut bench, |policy| policy.allmulti = false);
    let many: Vec<_> = (0..40).map(|n| MacAddress([0x01, 0, 0x5e, 1, n, n])).collect();
    // The driver may list the groups that fit or request all: foreign groups must not arrive.
    let _ = bench.on(0, |vf, hal| vf.set_multicast(hal, &many));
    bench.send(1, &frame(GROUP, vf_mac(1), 100, 1));
    assert_eq!(bench.receive_all(0).len(), 0);
}

#[test]
fn trusted_vf_with_a_full_multicast_list_receives_all_groups() {
    let mut bench = DrivenCardFixture::new(2);
    let full: Vec<_> = (0..30).map(|n| MacAddress([0x01, 0, 0x5e, 1, n, n])).collect();
    bench.on(0, |vf, hal| vf.set_multicast(hal, &full)).unwrap();
    let stranger = frame(GROUP, vf_mac(1), 100, 1);
    let received = |bench: &mut DrivenCardFixture| {
        bench.send(1, &stranger);
        bench.receive_all(0).len()
    };
    assert_eq!(received(&mut bench), 0);
    allow(&mut bench, |policy| policy.trust = true);
    assert_eq!(received(&mut bench), 1);
    allow(&mut bench, |policy| policy.allmulti = false);
    assert_eq!(received(&mut bench), 0);
    allow(&mut bench, |policy| (policy.trust, policy.allmulti) = (true, true));
    bench.on(0, |vf, hal| vf.set_multicast(hal, &full[1..])).unwrap();
    assert_eq!(received(&mut bench), 0, "a list that is not full has every group");
}

#[test]
fn revoked_allmulti_policy_ends_a_vfs_all_multicast_mode() {
    let mut bench = DrivenCardFixture::new(2);
    bench.on(0, |vf, hal| vf.set_all_multicast(hal, true)).unwrap();
    let multicast = frame(GROUP, vf_mac(1), 100, 1);
    bench.send(1, &multicast);
    assert_eq!(bench.receive_all(0).len(), 1);
    allow(&mut bench, |policy| policy.allmulti = false);
    bench.send(1, &multicast);
    assert_eq!(bench.receive_all(0).len(), 0);
}

#[test]
fn assigned_mac_address_is_valid_from_the_vfs_next_reset() {
    let mut bench = DrivenCardFixture::new(1);
    let chosen = MacAddress([2, 0, 0, 0, 9, 9]);
    allow(&mut bench, |policy| (policy.mac, policy.admin_mac) = (Some(chosen), true));
    let own = MacAddress([2, 0, 0, 0, 9, 8]);
    assert!(is_nack(bench.on(0, |vf, hal| vf.set_mac(hal, own))));
    assert_eq!(refused(&bench, MailboxRefusal::AddressFixed), 1);
    allow(&mut bench, |policy| policy.trust = true);
    bench.on(0, |vf, hal| vf.set_mac(hal, own)).unwrap();
    assert_eq!(bench.card.pf_driver().unwrap().vf_mac(index(0)), Some(own));
    allow(&mut bench, |policy| policy.state = VfLinkPolicy::Auto);
    assert_eq!(bench.card.pf_driver().unwrap().vf_mac(index(0)), Some(own), "another change keeps it");
}
