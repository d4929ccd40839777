//! Tests of a tap as the uplink: frames to and from the host. `uplink_life` has taps that disappear and
//! return.

use crate::support::alone::{alone, assert_asleep};
use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::tap::{TAP, hears_the_host, host_broadcasts, ip, on_a_tap, received_by_the_host};
use i82576::MacAddress;

/// Runs a test with a host on a tap, in a process of its own.
fn alone_on_a_tap(name: &str, body: fn(LiveHost)) {
    alone(name, || on_a_tap(name, TAP, body));
}

#[test]
fn tap_carries_frames_both_ways() {
    alone_on_a_tap("uplink::tap_carries_frames_both_ways", |live| {
        assert_eq!(live.port().uplink, "tap:softiov0");
        let mut guest = VfGuest::under_qemu(&live, 0);
        let before = received_by_the_host("softiov0");
        for _ in 0..10 {
            assert!(guest.send(MacAddress::BROADCAST, &[1; 60]));
        }
        eventually("the host receives ten frames", || received_by_the_host("softiov0") >= before + 10);
        hears_the_host(&mut guest);
    });
}

#[test]
fn frames_that_no_guest_receives_keep_no_thread_awake() {
    alone_on_a_tap("uplink::frames_that_no_guest_receives_keep_no_thread_awake", |live| {
        host_broadcasts(2000);
        assert_asleep("without a guest");
        let guest = VfGuest::under_qemu(&live, 0);
        host_broadcasts(2000);
        assert_asleep("while the guest takes no frame");
        drop(guest);
    });
}

#[test]
fn tap_that_is_down_keeps_no_thread_awake_until_it_is_up() {
    alone_on_a_tap("uplink::tap_that_is_down_keeps_no_thread_awake_until_it_is_up", |live| {
        let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
        host_broadcasts(10);
        ip("link set softiov0 down");
        a.send(MacAddress::BROADCAST, &[1; 60]);
        assert_asleep("while the tap is down");
        // The card's switch needs no link, but a stock driver would not send without one.
        a.take();
        b.take();
        exchange(&mut a, &mut b, 3);
        ip("link set softiov0 up");
        eventually("the port has a link", || live.port().link);
        hears_the_host(&mut a);
    });
}
