//! Announcements of guests that have moved to this host.

use crate::address;
use crate::machine::{MODERN, TestMachine};
use units::MacAddress;
use virtio_nic::{VfRules, VlanMembership};

/// Returns the RARP request of an address (RFC 903), with VLAN 5 if `tagged`.
fn request(address: [u8; 6], tagged: bool) -> Vec<u8> {
    let tag: &[u8] = if tagged { &[0x81, 0, 0, 5] } else { &[] };
    let parts: [&[u8]; 6] =
        [&[0xff; 6], &address, tag, &[0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3], &address, &[0; 4]];
    let mut frame = [&parts.concat()[..], &address].concat();
    frame.resize(60 + tag.len(), 0);
    frame
}

fn rules(addresses: Vec<MacAddress>) -> VfRules {
    VfRules { addresses, spoof_check: true, ..VfRules::default() }
}

#[test]
fn announcement_reaches_uplink_and_other_vfs_once() {
    let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN)]);
    machine.post(1, &[&[1536][..]; 2]);
    let wanted = request(address(0), false);
    // A storm of requests is one announcement.
    (0..100).for_each(|_| machine.nic.announce(0, MacAddress(address(0))));
    machine.poll(0);
    machine.poll(0);
    assert_eq!(machine.wire.sent, std::slice::from_ref(&wanted));
    let received = machine.received(1);
    assert_eq!((received.len(), &received[0].1), (1, &wanted));
}

#[test]
fn announcements_keep_to_the_rate_of_their_vf() {
    let mut machine = TestMachine::new(&[(false, MODERN)]);
    machine.nic.set_rules(0, VfRules { max_tx_rate: 1, ..rules(vec![MacAddress(address(0))]) });
    // 64 bytes take 512 us at 1 Mb/s.
    for micros in 0..10_000 {
        machine.nic.announce(0, MacAddress(address(0)));
        machine.poll(micros * 1000);
    }
    assert!((18..=21).contains(&machine.wire.sent.len()), "{} announcements", machine.wire.sent.len());
    let due = machine.nic.due().expect("an announcement waits");
    machine.poll(due.as_nanos());
    assert_eq!(machine.nic.due(), None);
}

#[test]
fn announcement_has_the_port_vlan() {
    let mut machine = TestMachine::new(&[(false, MODERN)]);
    let rules = VfRules { vlans: VlanMembership::Port(5), ..rules(vec![MacAddress(address(0))]) };
    machine.nic.set_rules(0, rules);
    machine.nic.announce(0, MacAddress(address(0)));
    machine.poll(0);
    assert_eq!(machine.wire.sent, [request(address(0), true)]);
}

#[test]
fn vf_without_an_address_has_the_announced_one() {
    let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN)]);
    machine.nic.set_rules(0, rules(vec![]));
    machine.nic.announce(0, MacAddress(address(7)));
    machine.poll(0);
    assert_eq!(machine.nic.address(0), Some(MacAddress(address(7))));
    assert_eq!(machine.wire.sent, [request(address(7), false)]);
}

#[test]
fn announcement_of_a_foreign_address_is_dropped_as_spoofed() {
    let mut machine = TestMachine::new(&[(false, MODERN), (false, MODERN)]);
    for before in [vec![MacAddress(address(0))], vec![]] {
        machine.nic.set_rules(0, rules(before.clone()));
        machine.nic.announce(0, MacAddress(address(1)));
        machine.poll(0);
        assert_eq!((machine.wire.sent.len(), machine.nic.address(0)), (0, before.first().copied()));
    }
}

#[test]
fn announcement_of_a_group_disabled_or_missing_vf_is_ignored() {
    let mut machine = TestMachine::new(&[(false, MODERN)]);
    for (vf, announced) in [(0, MacAddress::BROADCAST), (0, MacAddress::ZERO), (9, MacAddress(address(0)))] {
        machine.nic.announce(vf, announced);
    }
    machine.nic.announce(0, MacAddress(address(0)));
    machine.nic.reset(0);
    machine.poll(0);
    machine.nic.set_rules(0, VfRules { enabled: false, ..rules(vec![MacAddress(address(0))]) });
    machine.nic.announce(0, MacAddress(address(0)));
    machine.poll(0);
    assert_eq!(machine.wire.sent.len(), 0);
}
