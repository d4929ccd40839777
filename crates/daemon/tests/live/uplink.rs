//! A tap as the uplink: frames to and from the host, and a tap that is down, or gone.
//!
//! Each test makes its tap in a network namespace of its own, which takes root.

use crate::support::alone::{alone, assert_asleep};
use crate::support::eventually;
use crate::support::guest::{Guest, exchange};
use crate::support::live::Live;
use host::test_support::in_network_namespace;
use i82576::MacAddress;
use std::net::UdpSocket;
use std::process::Command;

const TAP: &str = "[[port]]\nuplink = { tap = \"softiov0\" }";

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().expect("iproute2 is installed");
    assert!(status.success(), "ip {arguments}");
}

/// Frames that the host has received from the tap.
fn received_by_the_host() -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = table.lines().find(|line| line.trim().starts_with("softiov0:")).unwrap();
    line.split_whitespace().nth(2).unwrap().parse().unwrap()
}

/// Makes the host send broadcasts into the tap.
fn host_broadcasts(count: usize) {
    let socket = UdpSocket::bind("10.99.0.1:0").unwrap();
    socket.set_broadcast(true).unwrap();
    for _ in 0..count {
        // A full queue is no matter.
        let _ = socket.send_to(&[0x5a; 100], "10.99.0.255:9");
    }
}

fn on_a_tap(name: &str, body: fn(Live)) {
    in_network_namespace(name, || {
        alone(name, || {
            let live = Live::with(TAP);
            ip("addr add 10.99.0.1/24 dev softiov0");
            body(live);
        });
    });
}

#[test]
fn frames_go_out_and_come_in() {
    on_a_tap("uplink::frames_go_out_and_come_in", |live| {
        assert_eq!(live.port().uplink, "tap:softiov0");
        let mut guest = Guest::under_qemu(&live, 0);
        let before = received_by_the_host();
        for _ in 0..10 {
            assert!(guest.send(MacAddress::BROADCAST, &[1; 60]));
        }
        eventually("the host has them", || received_by_the_host() >= before + 10);
        host_broadcasts(1);
        eventually("the guest has it", || guest.receive().iter().any(|frame| frame.ends_with(&[0x5a; 100])));
    });
}

#[test]
fn frames_that_no_guest_wants_keep_nobody_awake() {
    on_a_tap("uplink::frames_that_no_guest_wants_keep_nobody_awake", |live| {
        host_broadcasts(2000);
        assert_asleep("no guest is there");
        let guest = Guest::under_qemu(&live, 0);
        host_broadcasts(2000);
        assert_asleep("the guest takes nothing");
        drop(guest);
    });
}

#[test]
fn a_tap_that_is_down_keeps_nobody_awake_and_comes_back() {
    on_a_tap("uplink::a_tap_that_is_down_keeps_nobody_awake_and_comes_back", |live| {
        let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
        host_broadcasts(10);
        ip("link set softiov0 down");
        a.send(MacAddress::BROADCAST, &[1; 60]);
        assert_asleep("the tap is down");
        a.take();
        b.take();
        exchange(&mut a, &mut b, 3);
        ip("link set softiov0 up");
        host_broadcasts(1);
        eventually("the guest hears the host", || {
            a.receive().iter().any(|frame| frame.ends_with(&[0x5a; 100]))
        });
    });
}

#[test]
fn a_tap_that_is_deleted_is_given_up_and_guests_still_reach_each_other() {
    on_a_tap("uplink::a_tap_that_is_deleted_is_given_up_and_guests_still_reach_each_other", |live| {
        let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
        a.take();
        b.take();
        ip("link del softiov0");
        assert_asleep("the tap is gone");
        assert_eq!(live.port().uplink, "tap:softiov0 (gone)");
        a.take();
        b.take();
        exchange(&mut a, &mut b, 3);
    });
}
