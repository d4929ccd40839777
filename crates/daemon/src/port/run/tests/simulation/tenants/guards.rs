//! Tests of the guards of a VF's frames: each setting reaches the plane, whatever the family of the port. `plane` has the tests of
//! the guards.

use super::super::families::SimulatedFamily;
use super::{FAMILIES, TestPort};
use std::collections::BTreeMap;

/// Returns frames of a DHCP server (RFC 2131) and of an IPv6 router (RFC 4861), and one with a tag behind the port VLAN.
fn frames(to: [u8; 6], from: [u8; 6]) -> [Vec<u8>; 3] {
    let ipv4 = [0x45, 0, 0, 0x48, 0, 0, 0, 0, 64, 17, 0x66, 0xa3, 10, 0, 0, 1, 10, 0, 0, 2];
    let udp = [0, 67, 0, 68, 0, 0x34, 0, 0];
    let dhcp = [&[8, 0][..], &ipv4, &udp, &[1; 44]].concat();
    let local = |n| [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n];
    let ipv6 = [&[0x60, 0, 0, 0, 0, 24, 58, 255][..], &local(1), &local(2)].concat();
    let router = [&[0x86, 0xdd][..], &ipv6, &[134, 0, 0, 0], &[2; 20]].concat();
    let tagged = [&[0x88, 0xa8, 0, 9, 0x88, 0xb5][..], &[3; 60]].concat();
    [dhcp, router, tagged].map(|rest| [&to[..], &from, &rest].concat())
}

/// Returns the numbers of the frames of VF 0 that its guards have dropped, by reason, and the frames of [`frames`] that VF 1
/// received, each by its last byte. VF 0 has these settings.
fn outcome(family: SimulatedFamily, settings: &str) -> (BTreeMap<String, u64>, Vec<u8>) {
    let vfs = format!("[[port.vf]]\nindex = 0\nvlan = 7\n{settings}\n[[port.vf]]\nindex = 1\nvlan = 7\n");
    let port = TestPort::open_with(family, &vfs);
    let (mut guest, mut neighbour) = (port.boot(0), port.boot(1));
    let (own, other) = (guest.mac().0, neighbour.mac().0);
    // The port learns the address of a virtio guest from its first frame.
    assert!(neighbour.send(&[&own[..], &other, &[0x88, 0xb5], &[0; 46]].concat()));
    port.rest();
    frames(other, own).iter().for_each(|frame| assert!(guest.send(frame)));
    port.rest();
    let received = neighbour.receive(true).unwrap();
    let received = received.iter().map(|frame| *frame.bytes.last().unwrap()).collect();
    let guarded = port.host.borrow_mut().status().vfs[0].guarded.clone();
    drop((guest, neighbour));
    port.rest();
    (guarded, received)
}

#[test]
fn settings_of_a_vf_set_its_guards() {
    for family in FAMILIES {
        for (settings, dropped, passed) in [
            ("", &["double_tag"][..], &[1, 2][..]),
            ("qinq = true", &[], &[1, 2, 3]),
            ("qinq = true\ndhcp_guard = true", &["dhcp_server"], &[2, 3]),
            ("qinq = true\nrouter_guard = true", &["router"], &[1, 3]),
            ("dhcp_guard = true\nrouter_guard = true", &["dhcp_server", "double_tag", "router"], &[]),
        ] {
            let (reasons, mut received) = outcome(family, settings);
            // The queues of a function have no common order.
            received.sort_unstable();
            let expected = dropped.iter().map(|reason| ((*reason).to_owned(), 1)).collect();
            assert_eq!((reasons, &received[..]), (expected, passed), "{family:?} with {settings:?}");
        }
    }
}
