//! Tests of a macvtap as the uplink: frames of the port leave by one end of a veth pair, whose other end is an
//! interface of the test's network namespace. `host::tap` tests device files of other network namespaces, and embedded
//! guests send large packets.

use crate::interface::{make_pair, with_a_pair};
use crate::shared_bridge::{claim, thief_and_owner};
use crate::support::guest::VfGuest;
use crate::support::live::LiveHost;
use crate::support::tap::{ip, link_follows, reaches_the_host, wait_port, wait_reattached};
use daemon::RunningHost;
use daemon::config::HostConfig;
use daemon::control::uplink::UplinkState;
use host::tap::{Tap, TapError};
use host::test_support::skipped;
use std::process::Command;

const CONFIG: &str = "[[port]]\nuplink.macvtap = \"vtap0\"\n";
/// Configuration of a host with two ports, each with a macvtap.
const PAIR: &str =
    "[[port]]\nvfs = 2\nuplink.macvtap = \"vtap0\"\n[[port]]\nvfs = 2\nuplink.macvtap = \"vtap1\"\n";

/// Creates the macvtap `vtap0` on `wire0`.
fn make_macvtap() -> Result<(), String> {
    add_macvtap("vtap0", ("wire0", "passthru"), 0)
}

/// Creates a macvtap on `parent`, in a mode. It is the test's macvtap `n`, 0 or 1, with an interface index of its own: the device
/// files of all network namespaces are in one folder.
fn add_macvtap(name: &str, (parent, mode): (&str, &str), n: i32) -> Result<(), String> {
    let number = 1_000_000 + 20_000_000 * n + 2 * rustix::thread::gettid().as_raw_nonzero().get();
    let words = format!("link add link {parent} name {name} index {number} type macvtap mode {mode}");
    let made = Command::new("ip").args(words.split(' ')).output().map_err(|error| error.to_string())?;
    if !made.status.success() {
        return Err(format!("no macvtap: {}", String::from_utf8_lossy(&made.stderr)));
    }
    ip(&format!("link set {name} up"));
    match Tap::open_macvtap(&name.parse().unwrap()) {
        Err(error @ TapError::NoDeviceFile { .. }) => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Runs a test in a network namespace with a veth pair and a macvtap on one of its ends. Skips the test if the kernel
/// has no macvtap.
fn with_a_macvtap(name: &str, body: impl FnOnce() + Send) {
    with_a_pair(name, || match make_macvtap() {
        Ok(()) => body(),
        Err(why) => skipped(name, &why),
    });
}

#[test]
fn link_is_down_while_the_macvtap_is_deleted() {
    with_a_macvtap("macvtap::link_is_down_while_the_macvtap_is_deleted", || {
        let live = LiveHost::with(CONFIG);
        let status = live.port().uplink_status.unwrap();
        assert_eq!((status.kind.as_str(), status.state), ("macvtap", UplinkState::Up));
        assert_eq!((status.carrier, status.mtu), (Some(true), Some(1500)));
        let mut guest = VfGuest::under_qemu(&live, 0);
        reaches_the_host(&mut guest, "host0");
        link_follows(&live, "macvtap", "vtap0");
        for (round, gone) in [(1, "link del vtap0"), (2, "link del wire0")] {
            ip(gone);
            wait_port(&live, "the macvtap is gone", |port| {
                !port.link && port.uplink == "macvtap:vtap0 (gone)"
            });
            if round == 2 {
                make_pair();
            }
            make_macvtap().unwrap();
            wait_reattached(&live, round);
            guest.wait_for_link();
            reaches_the_host(&mut guest, "host0");
        }
        assert!(live.is_whole());
    });
}

#[test]
fn frames_to_a_macvtap_that_is_down_are_counted() {
    let config = format!("{CONFIG}link = \"up\"\n");
    with_a_macvtap("macvtap::frames_to_a_macvtap_that_is_down_are_counted", || {
        let live = LiveHost::with(&config);
        let mut guest = VfGuest::under_qemu(&live, 0);
        ip("link set vtap0 down");
        wait_port(&live, "the macvtap is down", |port| port.uplink == "macvtap:vtap0 (down)");
        guest.send(i82576::MacAddress::BROADCAST, &[1; 60]);
        wait_port(&live, "the frame is counted", |port| {
            port.uplink_status.as_ref().is_some_and(|status| status.drops.no_link >= 1)
        });
    });
}

#[test]
fn interface_other_than_macvtap_is_refused_with_a_remedy() {
    with_a_macvtap("macvtap::interface_other_than_macvtap_is_refused_with_a_remedy", || {
        for (name, why) in
            [("nothere0", "nothere0 does not exist"), ("wire0", "is not the device file of wire0")]
        {
            let folder = tempfile::tempdir().unwrap();
            let text = format!("[[port]]\nuplink.macvtap = \"{name}\"\n");
            let config = HostConfig::check(HostConfig::parse(&text).unwrap(), folder.path()).unwrap();
            let refused = RunningHost::start(config).unwrap_err().to_string();
            assert!(refused.contains(why) && refused.contains("type macvtap mode passthru"), "{refused}");
        }
    });
}

/// Runs a test with a host of two ports, whose macvtaps are on these interfaces. Skips the test if the kernel has no macvtap.
fn with_two_macvtaps(name: &str, parents: [&str; 2], body: impl FnOnce(LiveHost) + Send) {
    with_a_pair(name, || {
        let made = (0..)
            .zip(parents)
            .try_for_each(|(n, parent)| add_macvtap(&format!("vtap{n}"), (parent, "bridge"), n));
        match made {
            Ok(()) => body(LiveHost::with(PAIR)),
            Err(why) => skipped(name, &why),
        }
    });
}

#[test]
fn address_of_a_macvtap_on_the_same_interface_is_refused() {
    let name = "macvtap::address_of_a_macvtap_on_the_same_interface_is_refused";
    with_two_macvtaps(name, ["wire0", "wire0"], |mut live| {
        let [mut thief, mut owner] = thief_and_owner(&live);
        assert!(!claim(&mut thief), "the PF refuses the address before its owner has sent a frame");
        live.hand_over(PAIR);
        assert!(!claim(&mut thief), "the successor refuses it too");
        assert!(claim(&mut owner), "the owner gets its address back");
        // A macvtap's link is that of its parent: the port of the deleted one keeps its place there.
        ip("link del vtap1");
        wait_port(&live, "the macvtap is gone", |_| live.show_port("pf1").uplink == "macvtap:vtap1 (gone)");
        assert!(!claim(&mut thief));
    });
}

#[test]
fn address_of_a_macvtap_on_another_interface_is_free() {
    let name = "macvtap::address_of_a_macvtap_on_another_interface_is_free";
    with_two_macvtaps(name, ["wire0", "host0"], |live| {
        let [mut thief, _owner] = thief_and_owner(&live);
        assert!(claim(&mut thief), "the ports share no interface");
    });
}
