//! Tests of a wire between two ports of one host. The rings have unit tests.

use crate::support::alone::{alone, assert_asleep};
use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use daemon::control::uplink::{UplinkState, UplinkStatus};

/// Configuration of a host with two ports, joined by a wire.
const WIRED: &str = "[[port]]\nvfs = 2\nuplink.wire = \"w\"\n[[port]]\nvfs = 2\nuplink.wire = \"w\"\n";
/// Configuration of a host with two ports without uplinks.
const APART: &str = "[[port]]\nvfs = 2\n[[port]]\nvfs = 2\n";

fn uplink(live: &LiveHost, port: &str) -> UplinkStatus {
    live.show_port(port).uplink_status.expect("the port has an uplink")
}

#[test]
fn wire_carries_frames_and_both_ports_show_its_state() {
    let live = LiveHost::with(WIRED);
    let (mut a, mut b) = (VfGuest::on(&live, "pf0vf0"), VfGuest::on(&live, "pf1vf1"));
    exchange(&mut a, &mut b, 100);
    for port in ["pf0", "pf1"] {
        assert_eq!(live.show_port(port).uplink, "wire:w");
        let status = uplink(&live, port);
        assert_eq!(
            (status.kind.as_str(), status.name.as_str(), status.state),
            ("wire", "w", UplinkState::Up)
        );
    }
}

/// Tests a port that has no link when it starts, because no other port uses its wire yet.
#[test]
fn tx_rate_limit_holds_on_a_port_started_without_a_link() {
    let live =
        LiveHost::with(&WIRED.replacen("vfs = 2", "vfs = 2\nvf = [{ index = 0, max_tx_rate = 100 }]", 1));
    assert_eq!(live.show(0).settings.max_tx_rate, Some(100));
    eventually("both ports have a link", || ["pf0", "pf1"].iter().all(|port| live.show_port(port).link));
    let (mut a, mut b) = (VfGuest::on(&live, "pf0vf0"), VfGuest::on(&live, "pf1vf1"));
    exchange(&mut a, &mut b, 5);
}

#[test]
fn idle_wire_uses_no_processor_time() {
    alone("wire::idle_wire_uses_no_processor_time", || {
        let live = LiveHost::with(WIRED);
        let (mut a, mut b) = (VfGuest::on(&live, "pf0vf0"), VfGuest::on(&live, "pf1vf0"));
        exchange(&mut a, &mut b, 10);
        assert_asleep("both ports are idle");
        exchange(&mut a, &mut b, 10);
    });
}

#[test]
fn wire_is_added_to_and_removed_from_a_running_port() {
    let live = LiveHost::keeping(APART);
    let (mut a, mut b) = (VfGuest::on(&live, "pf0vf0"), VfGuest::on(&live, "pf1vf0"));
    for _ in 0..3 {
        let changes = live.apply(WIRED).unwrap().changes;
        assert_eq!(changes.iter().map(|change| change.name.as_str()).collect::<Vec<_>>(), ["pf0", "pf1"]);
        assert_eq!(changes[0].settings["uplink"].new, "wire:w");
        eventually("both ports have a link", || ["pf0", "pf1"].iter().all(|port| live.show_port(port).link));
        a.take();
        b.take();
        a.wait_for_link();
        b.wait_for_link();
        exchange(&mut a, &mut b, 5);
        live.apply(APART).unwrap();
        assert_eq!(live.show_port("pf0").uplink, "none");
    }
    assert!(live.is_whole());
}

#[test]
fn link_of_a_wire_is_down_while_one_port_is_removed() {
    let live = LiveHost::keeping(WIRED);
    let heir =
        "[[port]]\nvfs = 2\nuplink.wire = \"w\"\n[[port]]\nname = \"new\"\nvfs = 1\nuplink.wire = \"w\"\n";
    let mut a = VfGuest::on(&live, "pf0vf0");
    // The new port exists before the old one has ended.
    live.apply(heir).unwrap();
    eventually("the wire connects pf0 to the new port", || {
        live.show_port("pf0").link && live.show_port("new").link
    });
    let mut b = VfGuest::on(&live, "newvf0");
    a.wait_for_link();
    exchange(&mut a, &mut b, 5);
    live.apply("[[port]]\nvfs = 2\nuplink.wire = \"w\"\n[[port]]\nname = \"third\"\nuplink.wire = \"w\"\n")
        .unwrap();
    eventually("the wire connects pf0 to the third port", || {
        live.show_port("pf0").link && live.show_port("third").link
    });
    // A neighbour that replaces another between two visits of the port counts as the same.
    let reattached = uplink(&live, "pf0").reattached;
    assert!(reattached <= 2, "{reattached}");
}

#[test]
fn wire_without_exactly_two_ends_is_refused() {
    let live = LiveHost::keeping(WIRED);
    for (text, why) in [
        ("[[port]]\nvfs = 2\nuplink.wire = \"w\"\n[[port]]\nvfs = 2\n".to_owned(), "has only one end"),
        (format!("{WIRED}[[port]]\nuplink.wire = \"w\"\n"), "has two ends"),
    ] {
        let refused = live.apply(&text).expect_err("the host refuses the change").to_string();
        assert!(refused.contains(why), "{refused}");
    }
    assert!(live.show_port("pf0").link);
}
