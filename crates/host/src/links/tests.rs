//! Tests the observation of interfaces in network namespaces of their own: changes of an interface, and more changes
//! than the kernel's buffer holds.

use std::process::Command;
use std::thread;
use std::time::Duration;

use netlink_packet_core::NetlinkBuffer;
use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::*;
use crate::poll::{PollInterest, Poller};
use crate::tap::Tap;
use crate::test_support::{in_network_namespace, skipped};

/// Runs a test in a network namespace with the tap `watched0`.
fn with_tap(what: &str, body: impl FnOnce(Tap) + Send) {
    in_network_namespace(what, || match Tap::open(&"watched0".parse().unwrap()) {
        Ok(tap) if ip("link show lo") => body(tap),
        Ok(_) => skipped(what, "ip does not work"),
        Err(error) => skipped(what, &error.to_string()),
    });
}

fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).output().is_ok_and(|output| output.status.success())
}

/// Reads the notifications about the interface `watched0` for about 100 ms. Returns the most serious result.
fn hear(links: &mut LinkMonitor) -> LinkNotifications {
    let mut heard = LinkNotifications::Unrelated;
    for _ in 0..100 {
        thread::sleep(Duration::from_millis(1));
        heard = heard.max(links.hear(|_, name| name == "watched0").unwrap());
    }
    heard
}

#[test]
fn interface_look_up_returns_its_current_state() {
    with_tap("links: as it is", |tap| {
        let mut links = LinkMonitor::new().unwrap();
        let link = links.look_up("watched0").unwrap().unwrap();
        assert_eq!((link.up, link.carrier, link.mtu), (false, true, 1500));
        tap.set_up().unwrap();
        tap.set_mtu(9000).unwrap();
        assert_eq!(
            links.look_up("watched0").unwrap(),
            Some(NetworkLinkState { up: true, mtu: 9000, ..link.clone() })
        );
        assert!(ip("link set watched0 carrier off"));
        assert!(!links.look_up("watched0").unwrap().unwrap().carrier);
        assert!(ip("link set watched0 name other0"));
        assert_eq!(links.look_up("watched0").unwrap(), None);
        assert_eq!(links.look_up("other0").unwrap().unwrap().index, link.index);
        assert!(links.look_up("longer than any name").is_err());
    });
}

#[test]
fn interface_look_up_returns_the_shared_parent() {
    with_tap("links: parents", |tap| {
        let mut links = LinkMonitor::new().unwrap();
        let mut parent = |name| links.look_up(name).unwrap().map(|link| link.parent);
        let own = parent("watched0");
        if !ip("link add bridge0 type bridge") || !ip("link add veth0 type veth peer name veth1") {
            return skipped("links: parents", "this kernel has no bridge or no veth");
        }
        assert!(ip("link set watched0 master bridge0"));
        assert!(own.is_some() && parent("watched0") == parent("bridge0") && parent("watched0") != own);
        assert!(ip("link set watched0 nomaster"));
        assert_eq!(parent("watched0"), own);
        // The peer of a veth is another interface, and its IFLA_LINK is no parent.
        assert!(parent("veth0").is_some() && parent("veth0") != parent("veth1"));
        if ip("link add link veth0 name vtap0 type macvtap mode bridge") {
            assert!(ip("link add link veth0 name vlan0 type macvlan mode bridge"));
            assert_eq!((parent("vtap0"), parent("vlan0")), (parent("veth0"), parent("veth0")));
        }
        drop(tap);
    });
}

#[test]
fn network_namespaces_have_different_inodes() {
    let here = LinkMonitor::new().unwrap().namespace();
    assert_eq!(here, LinkMonitor::new().unwrap().namespace());
    let there = in_network_namespace("links: namespaces", || LinkMonitor::new().unwrap().namespace());
    assert!(here != 0 && there != Some(here));
}

#[test]
fn link_notifications_name_the_changed_interface() {
    with_tap("links: news", |tap| {
        let mut links = LinkMonitor::new().unwrap();
        assert_eq!(hear(&mut links), LinkNotifications::Unrelated);
        let mut poller = Poller::new().unwrap();
        poller.add(&links, 7, PollInterest::READ).unwrap();
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap().count(), 0);
        for change in ["link set watched0 up", "link set watched0 mtu 1400", "link set watched0 down"] {
            assert!(ip(change), "{change}");
            assert_eq!(poller.wait(Some(Duration::from_secs(60))).unwrap().count(), 1, "{change}");
            assert_eq!(hear(&mut links), LinkNotifications::Related, "{change}");
        }
        assert!(ip("tuntap add passer0 mode tap") && ip("tuntap del passer0 mode tap"));
        assert_eq!(hear(&mut links), LinkNotifications::Unrelated);
        // After a rename the notification has the new name and the old index.
        let index = links.look_up("watched0").unwrap().unwrap().index;
        assert!(ip("link set watched0 name other0"));
        assert_eq!(
            links.hear(|number, name| number == index && name == "other0").unwrap(),
            LinkNotifications::Related
        );
        assert!(ip("link set other0 name watched0"));
        drop(tap);
        assert_eq!(hear(&mut links), LinkNotifications::Related, "deleted");
        assert_eq!(links.look_up("watched0").unwrap(), None);
    });
}

#[test]
fn link_notifications_dropped_by_the_kernel_are_reported() {
    with_tap("links: lost news", |_tap| {
        let mut links = LinkMonitor::new().unwrap();
        // The kernel rounds the size up to its minimum.
        set_socket_recv_buffer_size(&links.news, 1).unwrap();
        for _ in 0..20 {
            assert!(ip("link set watched0 up") && ip("link set watched0 down"));
        }
        assert_eq!(hear(&mut links), LinkNotifications::Lost);
        assert_eq!(hear(&mut links), LinkNotifications::Unrelated, "the loss is reported once");
        assert!(ip("link set watched0 mtu 1400"));
        assert!(hear(&mut links) >= LinkNotifications::Related, "later notifications arrive");
        assert_eq!(links.look_up("watched0").unwrap().unwrap().mtu, 1400);
    });
}

#[test]
fn malformed_rtnetlink_messages_are_ignored() {
    for length in 0..40 {
        for byte in [0, 1, 16, 0xff] {
            let bytes = vec![byte; length];
            assert_eq!(message::changes(&bytes).count(), 0);
            assert!(message::answer(&bytes).is_none());
        }
    }
    // A valid message, cut off at any length.
    let mut told = message::question("watched0");
    NetlinkBuffer::new(&mut told).set_message_type(libc::RTM_NEWLINK);
    assert_eq!(message::changes(&told).collect::<Vec<_>>(), [(0, "watched0")]);
    assert!(message::answer(&told).is_none(), "no MTU");
    for length in 0..told.len() {
        assert_eq!(message::changes(&told[..length]).count(), 0);
    }
}
