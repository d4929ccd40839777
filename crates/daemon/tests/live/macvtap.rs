//! Tests of a macvtap as the uplink: frames of the port leave by one end of a veth pair, whose other end is an
//! interface of the test's network namespace. `host::tap` tests device files of other network namespaces, and embedded
//! guests send large packets.

use crate::interface::{make_pair, with_a_pair};
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

/// Creates the macvtap `vtap0` on `wire0`, with an interface index of its own: the device files of all network
/// namespaces are in one folder.
fn make_macvtap() -> Result<(), String> {
    let number = 1_000_000 + 2 * rustix::thread::gettid().as_raw_nonzero().get();
    let words = format!("link add link wire0 name vtap0 index {number} type macvtap mode passthru");
    let made = Command::new("ip").args(words.split(' ')).output().map_err(|error| error.to_string())?;
    if !made.status.success() {
        return Err(format!("no macvtap: {}", String::from_utf8_lossy(&made.stderr)));
    }
    ip("link set vtap0 up");
    match Tap::open_macvtap(&"vtap0".parse().unwrap()) {
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
