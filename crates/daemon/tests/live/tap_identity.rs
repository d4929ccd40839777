//! Tests of a tap uplink across a hand-over of the host: the host leaves a tap as its administrator has set it, whatever
//! interface has the tap's former name.

use crate::support::live::LiveHost;
use crate::support::tap::{TAP, ip, on_a_tap, tap, wait_port};
use daemon::control::uplink::UplinkState;
use std::process::Command;

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
