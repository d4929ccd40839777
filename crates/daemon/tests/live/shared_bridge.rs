//! Tests of two ports whose taps are on one bridge of the host: a guest at one gets no address of a guest at the other.

use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::qemu::QemuClient;
use crate::support::tap::ip;
use daemon::control::status::RefusedClaims;
use daemon::settings::VfSettings;
use host::test_support::{in_network_namespace, skipped};
use i82576::MacAddress;
use std::process::Command;

/// Configuration of a host with two ports, each with a tap.
const TAPS: &str = "[[port]]\nvfs = 2\nuplink.tap = \"left0\"\n[[port]]\nvfs = 2\nuplink.tap = \"right0\"\n";
/// Address that a guest chooses.
const CHOSEN: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x55]);

/// Runs a test in a network namespace with a host whose two taps are on the bridge `bridge0`. Skips the test if the kernel has
/// no bridge.
fn on_a_bridge(name: &str, body: impl FnOnce(LiveHost) + Send) {
    in_network_namespace(name, || {
        let bridge = "link add bridge0 type bridge".split(' ');
        if !Command::new("ip").args(bridge).output().is_ok_and(|output| output.status.success()) {
            return skipped(name, "this kernel has no bridge, or iproute2 is not installed");
        }
        ip("link set bridge0 up");
        for tap in ["left0", "right0"] {
            ip(&format!("tuntap add {tap} mode tap"));
            ip(&format!("link set {tap} master bridge0"));
        }
        body(LiveHost::with(TAPS));
    });
}

/// Boots a guest on each port. That on the second port chooses the address [`CHOSEN`], and sends no frame to its uplink.
pub(crate) fn thief_and_owner(live: &LiveHost) -> [VfGuest<QemuClient>; 2] {
    let (thief, mut owner) = (VfGuest::on(live, "pf0vf0"), VfGuest::on(live, "pf1vf0"));
    let mut neighbour = VfGuest::on(live, "pf1vf1");
    owner.vf.set_mac(&mut owner.machine, CHOSEN).unwrap();
    // Frames between VFs of one port do not leave it.
    exchange(&mut owner, &mut neighbour, 1);
    [thief, owner]
}

/// Has a guest claim the address [`CHOSEN`]. Returns true if it gets the address.
pub(crate) fn claim(guest: &mut VfGuest<QemuClient>) -> bool {
    guest.vf.set_mac(&mut guest.machine, CHOSEN).is_ok()
}

/// Checks that frames pass from one guest to another. The bridge drops frames until it has noticed the taps' carriers.
fn passes(from: &mut VfGuest<QemuClient>, to: &mut VfGuest<QemuClient>, number: u8) {
    eventually("the bridge forwards the frame", || {
        from.send(to.vf.mac(), &[number; 60]);
        to.take().contains(&vec![number; 60])
    });
}

#[test]
fn address_of_a_port_on_the_same_bridge_is_refused() {
    on_a_bridge("shared_bridge::address_of_a_port_on_the_same_bridge_is_refused", |live| {
        let [mut thief, mut owner] = thief_and_owner(&live);
        assert!(!claim(&mut thief), "the PF refuses the address before its owner has sent a frame");
        let refused = RefusedClaims { refused: 1, address: Some(CHOSEN.to_string()) };
        eventually("the claim is refused", || live.show(0).claims == refused);
        // Frames of the other port's guests pass, although it holds their addresses.
        passes(&mut owner, &mut thief, 1);
        passes(&mut thief, &mut owner, 2);
        live.change(0, VfSettings { share_mac: Some(true), ..VfSettings::default() });
        assert!(claim(&mut thief), "policy shares the address");
    });
}

#[test]
fn address_is_free_while_its_tap_is_on_no_common_bridge() {
    on_a_bridge("shared_bridge::address_is_free_while_its_tap_is_on_no_common_bridge", |live| {
        let [mut thief, _owner] = thief_and_owner(&live);
        assert!(!claim(&mut thief));
        ip("link set left0 nomaster");
        eventually("the tap has left the bridge", || claim(&mut thief));
    });
}

#[test]
fn hand_over_keeps_addresses_of_ports_on_one_bridge() {
    on_a_bridge("shared_bridge::hand_over_keeps_addresses_of_ports_on_one_bridge", |mut live| {
        let [mut thief, mut owner] = thief_and_owner(&live);
        live.hand_over(TAPS);
        assert!(!claim(&mut thief));
        assert!(claim(&mut owner), "the owner gets its address back");
    });
}
