//! A tap as the uplink: frames to and from the host. Left out: taps that come and go (`uplink_life`).

use crate::support::alone::{alone, assert_asleep};
use crate::support::eventually;
use crate::support::guest::{Guest, exchange};
use crate::support::live::Live;
use crate::support::tap::{TAP, hears_the_host, host_broadcasts, ip, on_a_tap, received_by_the_host};
use i82576::MacAddress;

/// On a tap, in a process of its own.
fn alone_on_a_tap(name: &str, body: fn(Live)) {
    alone(name, || on_a_tap(name, TAP, body));
}

#[test]
fn frames_go_out_and_come_in() {
    alone_on_a_tap("uplink::frames_go_out_and_come_in", |live| {
        assert_eq!(live.port().uplink, "tap:softiov0");
        let mut guest = Guest::under_qemu(&live, 0);
        let before = received_by_the_host("softiov0");
        for _ in 0..10 {
            assert!(guest.send(MacAddress::BROADCAST, &[1; 60]));
        }
        eventually("the host has them", || received_by_the_host("softiov0") >= before + 10);
        hears_the_host(&mut guest);
    });
}

#[test]
fn frames_that_no_guest_wants_keep_nobody_awake() {
    alone_on_a_tap("uplink::frames_that_no_guest_wants_keep_nobody_awake", |live| {
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
    alone_on_a_tap("uplink::a_tap_that_is_down_keeps_nobody_awake_and_comes_back", |live| {
        let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
        host_broadcasts(10);
        ip("link set softiov0 down");
        a.send(MacAddress::BROADCAST, &[1; 60]);
        assert_asleep("the tap is down");
        // The card's switch needs no link; a stock driver would not send without.
        a.take();
        b.take();
        exchange(&mut a, &mut b, 3);
        ip("link set softiov0 up");
        eventually("the port has its link", || live.port().link);
        hears_the_host(&mut a);
    });
}
