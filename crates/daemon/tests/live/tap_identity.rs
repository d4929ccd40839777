//! Tests of a tap uplink across a hand-over of the host, and across network namespaces: the host leaves a tap as its
//! administrator has set it, whatever interface has the tap's former name or index meanwhile.

use crate::support::live::LiveHost;
use crate::support::tap::{TAP, ip, on_a_tap, tap, wait_port};
use daemon::control::uplink::UplinkState;
use host::test_support::OtherNetworkNamespace;
use std::process::Command;
use std::time::Duration;

/// Returns the line of `ip -o link show` about an interface.
fn line(interface: &str) -> String {
    let output = Command::new("ip").args(["-o", "link", "show", interface]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Returns true if an interface of this network namespace is set up.
fn is_up(interface: &str) -> bool {
    let line = line(interface);
    let flags = line.split_once('<').and_then(|(_, rest)| rest.split_once('>')).expect("flags").0;
    flags.split(',').any(|flag| flag == "UP")
}

/// Returns the index of an interface of this network namespace.
fn index(interface: &str) -> u32 {
    line(interface).split(':').next().unwrap().parse().unwrap()
}

/// Moves the tap softiov0 to another namespace, and waits until the port has noticed.
fn take_tap(other: &OtherNetworkNamespace, live: &LiveHost) {
    ip(&format!("link set softiov0 netns {}", other.pid()));
    wait_port(live, "the tap is elsewhere", |port| {
        port.uplink_status.as_ref().is_some_and(|tap| tap.mtu.is_none())
    });
}

/// Moves the tap softiov0 back, and sets it up.
fn return_tap(other: &OtherNetworkNamespace) {
    other.ip(&format!("link set softiov0 netns {}", rustix::thread::gettid()));
    ip("link set softiov0 up");
}

/// Waits until the port sees the whole state of its tap in this network namespace.
#[track_caller]
fn wait_here(live: &LiveHost) {
    wait_port(live, "the tap is back in the host's namespace", |port| {
        let tap = port.uplink_status.as_ref();
        port.link && tap.is_some_and(|tap| (tap.mtu, tap.carrier) == (Some(1500), Some(true)))
    });
    assert_eq!(tap(live).reattached, 0);
}

#[test]
fn hand_over_leaves_a_tap_down_that_was_set_down() {
    on_a_tap("tap_identity::hand_over_leaves_a_tap_down_that_was_set_down", TAP, |mut live| {
        assert!(is_up("softiov0"), "the first host has set its tap up");
        ip("link set softiov0 down");
        wait_port(&live, "the tap is down", |port| !port.link);
        live.hand_over(TAP);
        assert!(!is_up("softiov0"));
        assert_eq!((live.port().link, tap(&live).state), (false, UplinkState::Down));
        ip("link set softiov0 up");
        wait_port(&live, "the tap is up", |port| port.link);
    });
}

#[test]
fn hand_over_of_a_renamed_tap_sets_no_other_interface_up() {
    on_a_tap("tap_identity::hand_over_of_a_renamed_tap_sets_no_other_interface_up", TAP, |mut live| {
        ip("link set softiov0 down");
        ip("link set softiov0 name other0");
        ip("link set other0 up");
        ip("link add softiov0 type bridge");
        live.hand_over(TAP);
        assert!(!is_up("softiov0"), "the host has set a bridge up");
        wait_port(&live, "the renamed tap is the uplink", |port| {
            port.link && port.uplink_status.as_ref().is_some_and(|tap| tap.name == "other0")
        });
    });
}

#[test]
fn tap_with_another_index_is_recognized_after_its_return() {
    on_a_tap("tap_identity::tap_with_another_index_is_recognized_after_its_return", TAP, |live| {
        let (other, before) = (OtherNetworkNamespace::new(), index("softiov0"));
        other.ip(&format!("link add taken0 index {before} type bridge"));
        take_tap(&other, &live);
        return_tap(&other);
        assert_ne!(index("softiov0"), before, "the kernel has kept the index");
        wait_here(&live);
    });
}

#[test]
fn tap_moved_before_a_hand_over_is_recognized_after_it() {
    on_a_tap("tap_identity::tap_moved_before_a_hand_over_is_recognized_after_it", TAP, |mut live| {
        let other = OtherNetworkNamespace::new();
        take_tap(&other, &live);
        live.hand_over(TAP);
        other.ip("link set softiov0 up");
        wait_port(&live, "the tap is up elsewhere", |port| port.link);
        return_tap(&other);
        wait_here(&live);
    });
}

#[test]
fn interface_with_the_name_of_a_moved_tap_is_not_its_own() {
    on_a_tap("tap_identity::interface_with_the_name_of_a_moved_tap_is_not_its_own", TAP, |mut live| {
        let other = OtherNetworkNamespace::new();
        take_tap(&other, &live);
        other.ip("link set softiov0 up");
        ip("link add softiov0 type bridge");
        ip("link set softiov0 mtu 1300");
        live.hand_over(TAP);
        wait_port(&live, "the tap is up elsewhere", |port| port.link);
        assert_eq!(tap(&live).mtu, None, "the port reports the MTU of a bridge");
    });
}

#[test]
fn interface_with_name_and_index_of_a_moved_tap_is_another() {
    on_a_tap("tap_identity::interface_with_name_and_index_of_a_moved_tap_is_another", TAP, |live| {
        let (other, index) = (OtherNetworkNamespace::new(), index("softiov0"));
        take_tap(&other, &live);
        ip(&format!("link add softiov0 index {index} type bridge"));
        ip("link set softiov0 mtu 1300");
        other.ip("link set softiov0 up");
        wait_port(&live, "the tap is up elsewhere", |port| port.link);
        // The watcher of the tap reads the news of the bridge, and looks twice a second beside.
        for _ in 0..10 {
            assert_eq!(tap(&live).mtu, None, "the port reports the MTU of a bridge");
            std::thread::sleep(Duration::from_millis(100));
        }
    });
}
