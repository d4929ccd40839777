//! Tests embedded guests on ports whose uplinks are interfaces of this machine: veth pairs in network namespaces of the
//! tests' own.

use super::{LiveTestHost, PATIENCE, eventually, ip};
use embedded_guest::EmbeddedGuest;
use host::test_support::{in_network_namespace, skipped};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

#[test]
fn tcp_flows_cross_between_two_macvtaps_in_large_packets() {
    let name = "tcp_flows_cross_between_two_macvtaps_in_large_packets";
    in_network_namespace(name, || {
        // Device files of all network namespaces are in one folder, so the numbers must be unique.
        let number = 1_000_000 + 2 * std::process::id();
        let made = [
            "link add wire0 type veth peer name wire1".to_owned(),
            format!("link add link wire0 name left0 index {number} type macvtap mode passthru"),
            format!("link add link wire1 name right0 index {} type macvtap mode passthru", number + 1),
        ]
        .iter()
        .all(|words| Command::new("ip").args(words.split(' ')).status().is_ok_and(|status| status.success()));
        if !made || !Path::new(&format!("/dev/tap{number}")).exists() {
            return skipped(name, "this machine has no veth, no macvtap, or no device file for it");
        }
        for interface in ["wire0", "wire1", "left0", "right0"] {
            ip(&format!("link set {interface} up"));
        }
        let port = |name: &str| format!("[[port]]\nuplink.macvtap = \"{name}\"\nvfs = 2\n");
        let world = LiveTestHost::with(&(port("left0") + &port("right0")));
        let (one, other) = (world.attach_to(0, 0), world.attach_to(1, 1));
        eventually("a ping crosses the veth pair", || one.ping(other.ip(), 1).unwrap().received() == 1);
        let flow = one.send_tcp(other.ip(), 16 << 20).unwrap();
        assert!(flow.is_intact(), "{flow:?}");
        // Bytes and packets that the interface has received: on average a packet is longer than the longest frame.
        let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        let line = table.lines().find_map(|line| line.trim().strip_prefix("right0:")).unwrap();
        let counts: Vec<u64> = line.split_whitespace().take(2).map(|word| word.parse().unwrap()).collect();
        assert!(counts[0] / counts[1] > 1518, "{counts:?}");
        // The port counts the frames after segmentation, each with its headers.
        let sent = world.port("pf0").uplink_status.unwrap().tx;
        assert!(
            sent.packets >= (16 << 20) / 1460 && sent.bytes >= (16 << 20) + 54 * sent.packets,
            "{sent:?}"
        );
    });
}

#[test]
fn host_behind_an_uplink_interface_answers_and_sends_pings() {
    let name = "host_behind_an_uplink_interface_answers_and_sends_pings";
    in_network_namespace(name, || {
        let made = Command::new("ip").args("link add wire0 type veth peer name host0".split(' ')).status();
        if !made.is_ok_and(|status| status.success()) {
            return skipped(name, "this kernel has no veth, or iproute2 is not installed");
        }
        ip("addr add 10.82.0.200/24 dev host0");
        ip("link set host0 up");
        ip("link set wire0 up");
        let world = LiveTestHost::with("[[port]]\nuplink.interface = \"wire0\"\nvfs = 2\n");
        let guest = world.attach(0);
        let beyond = Ipv4Addr::new(10, 82, 0, 200);
        // A pair gets its send queues a moment after its carrier, and until then silently loses frames.
        eventually("a ping crosses the veth pair", || guest.ping(beyond, 1).unwrap().received() == 1);
        let pings = guest.ping(beyond, 50).unwrap();
        assert_eq!((pings.sent, pings.received()), (50, 50));
        match Command::new("ping").args(["-c", "3", "-W", "5", "10.82.0.1"]).output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
            Err(error) => skipped(name, &format!("the host's `ping` cannot be run: {error}")),
        }
    });
}

#[test]
fn tcp_flows_cross_between_two_af_xdp_uplinks() {
    let name = "tcp_flows_cross_between_two_af_xdp_uplinks";
    in_network_namespace(name, || {
        let made = Command::new("ip").args("link add wire0 type veth peer name wire1".split(' ')).status();
        if !made.is_ok_and(|status| status.success()) {
            return skipped(name, "this kernel has no veth, or iproute2 is not installed");
        }
        if let Err(error) = host::xdp::XdpProgram::load() {
            return skipped(name, &format!("the kernel loads no XDP program: {error}"));
        }
        ip("link set wire0 up");
        ip("link set wire1 up");
        let port = |end: u8, mode: &str| {
            let uplink = format!("{{ interface = \"wire{end}\", xdp = \"{mode}\" }}");
            format!("[[port]]\nuplink = {uplink}\nvfs = 2\n")
        };
        for (left, right) in [("native", "native"), ("generic", "native")] {
            let world = LiveTestHost::with(&(port(0, left) + &port(1, right)));
            let (one, other) = (world.attach_to(0, 0), world.attach_to(1, 1));
            eventually("a ping crosses the veth pair", || one.ping(other.ip(), 1).unwrap().received() == 1);
            let send = |from: &EmbeddedGuest, to: Ipv4Addr| from.send_tcp(to, 16 << 20).unwrap();
            let flows = std::thread::scope(|scope| {
                let there = scope.spawn(|| send(&one, other.ip()));
                let back = scope.spawn(|| send(&other, one.ip()));
                [there.join().unwrap(), back.join().unwrap()]
            });
            assert!(flows.iter().all(|flow| flow.is_intact()), "{left} {right}: {flows:?}");
            let passed = world.port("pf0").uplink_status.unwrap();
            assert!(passed.rx.bytes > 16 << 20 && passed.tx.bytes > 16 << 20, "{passed:?}");
        }
    });
}

#[test]
fn host_behind_an_af_xdp_uplink_answers_over_udp_and_tcp() {
    let name = "host_behind_an_af_xdp_uplink_answers_over_udp_and_tcp";
    in_network_namespace(name, || {
        let made = Command::new("ip").args("link add wire0 type veth peer name host0".split(' ')).status();
        if !made.is_ok_and(|status| status.success()) {
            return skipped(name, "this kernel has no veth, or iproute2 is not installed");
        }
        if let Err(error) = host::xdp::XdpProgram::load() {
            return skipped(name, &format!("the kernel loads no XDP program: {error}"));
        }
        ip("addr add 10.82.0.200/24 dev host0");
        ip("link set host0 up");
        ip("link set wire0 up");
        let world =
            LiveTestHost::with("[[port]]\nuplink = { interface = \"wire0\", xdp = \"native\" }\nvfs = 2\n");
        let guest = world.attach(0);
        let beyond = Ipv4Addr::new(10, 82, 0, 200);
        eventually("a ping crosses the veth pair", || guest.ping(beyond, 1).unwrap().received() == 1);
        let pings = guest.ping(beyond, 50).unwrap();
        assert_eq!((pings.sent, pings.received()), (50, 50));
        // Linux sends frames without a complete checksum over the pair: a guest that verifies them would never get
        // a connection.
        let stats = guest.stats().unwrap();
        let refused = std::net::TcpStream::connect_timeout(&(guest.ip(), 9).into(), PATIENCE).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "{refused}");
        assert_eq!(guest.stats().unwrap().refused.bad_checksum, stats.refused.bad_checksum);
    });
}
