//! Taps of a host in a network namespace of the test's own, which requires root.

use super::guest::VfGuest;
use super::live::LiveHost;
use super::qemu::QemuClient;
use super::{PATIENCE, eventually};
use daemon::control::status::PortStatus;
use daemon::control::uplink::UplinkStatus;
use host::test_support::in_network_namespace;
use i82576::MacAddress;
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

/// Configuration of a port whose uplink is the tap softiov0.
pub(crate) const TAP: &str = "[[port]]\nuplink = { tap = \"softiov0\" }\n";

/// Runs a test in a new network namespace with a host on the tap softiov0, which has an address.
pub(crate) fn on_a_tap(name: &str, config: &str, body: impl FnOnce(LiveHost) + Send) {
    in_network_namespace(name, || {
        let live = LiveHost::with(config);
        ip("addr add 10.99.0.1/24 dev softiov0");
        body(live);
    });
}

/// Runs `ip` with the arguments `words`, which must succeed.
#[track_caller]
pub(crate) fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().expect("iproute2 is installed");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Creates the tap softiov0 with the host's address, as an administrator does.
pub(crate) fn make_tap() {
    ip("tuntap add softiov0 mode tap");
    ip("addr add 10.99.0.1/24 dev softiov0");
}

/// Returns the number of frames that this network namespace has received from an interface.
pub(crate) fn received_by_the_host(interface: &str) -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = table.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
    line.unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Sends UDP broadcasts from the host's address into the tap.
pub(crate) fn host_broadcasts(count: usize) {
    let socket = UdpSocket::bind("10.99.0.1:0").unwrap();
    socket.set_broadcast(true).unwrap();
    for _ in 0..count {
        // A full queue does not matter.
        let _ = socket.send_to(&[0x5a; 100], "10.99.0.255:9");
    }
}

/// Checks that frames move both ways between the guest and the host at this interface. After its carrier comes up, an
/// interface gets its send queue a moment later (the kernel's linkwatch) and drops earlier frames silently, so both
/// send until one frame arrives.
#[track_caller]
pub(crate) fn reaches_the_host(guest: &mut VfGuest<QemuClient>, interface: &str) {
    let before = received_by_the_host(interface);
    eventually("the host receives the guest's frame", || {
        guest.send(MacAddress::BROADCAST, &[1; 60]);
        received_by_the_host(interface) > before
    });
    hears_the_host(guest);
}

/// Checks that a guest receives a broadcast that the host sends into the tap.
#[track_caller]
pub(crate) fn hears_the_host(guest: &mut VfGuest<QemuClient>) {
    guest.take();
    eventually("the guest receives the host's frame", || {
        host_broadcasts(1);
        guest.receive_within(Duration::from_millis(50)).iter().any(|frame| frame.ends_with(&[0x5a; 100]))
    });
}

/// Returns the status of the tap that is the first port's uplink.
pub(crate) fn tap(live: &LiveHost) -> UplinkStatus {
    live.port().uplink_status.expect("the uplink is a tap")
}

/// Waits until `holds` returns true for the status of the first port. After [`PATIENCE`] fails with the message `what`.
#[track_caller]
pub(crate) fn wait_port(live: &LiveHost, what: &str, holds: impl Fn(&PortStatus) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let port = live.port();
        if holds(&port) {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {:?}, link {}", port.uplink_status, port.link);
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Takes the interface of the first port's uplink down and up again, and waits until the port's link has followed.
#[track_caller]
pub(crate) fn link_follows(live: &LiveHost, kind: &str, name: &str) {
    ip(&format!("link set {name} down"));
    let down = format!("{kind}:{name} (down)");
    wait_port(live, "down", |port| !port.link && port.uplink == down);
    ip(&format!("link set {name} up"));
    wait_port(live, "up again", |port| port.link);
}

/// Waits until the interface of the first port's uplink is back for the `round`th time, with a link.
#[track_caller]
pub(crate) fn wait_reattached(live: &LiveHost, round: u64) {
    wait_port(live, "back", |port| {
        port.link && port.uplink_status.as_ref().is_some_and(|status| status.reattached == round)
    });
}
