//! Tests of an existing network interface as the uplink: one end of a veth pair, whose other end is an
//! interface of the test's network namespace. `host::packet` tests bursts, tags and checksums.

use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::tap::{ip, link_follows, reaches_the_host, wait_port, wait_reattached};
use daemon::RunningHost;
use daemon::config::HostConfig;
use daemon::control::uplink::UplinkState;
use host::tap::Tap;
use host::test_support::{in_network_namespace, skipped};
use host::vnet::{GsoType, VnetHeader};
use i82576::MacAddress;
use std::process::Command;

const CONFIG: &str = "[[port]]\nuplink.interface = \"wire0\"\n";

/// Creates a veth pair: `wire0` for the port's uplink, and `host0` with an IP address for the network stack.
pub(crate) fn make_pair() {
    ip("link add wire0 type veth peer name host0");
    ip("addr add 10.99.0.1/24 dev host0");
    ip("link set host0 up");
    ip("link set wire0 up");
}

/// Runs a test in a network namespace with a veth pair: `wire0` for the port, `host0` for the host. Skips the
/// test if the kernel has no veth.
pub(crate) fn with_a_pair(name: &str, body: impl FnOnce() + Send) {
    in_network_namespace(name, || {
        let probe = "link add wire0 type veth peer name host0".split(' ');
        if !Command::new("ip").args(probe).output().is_ok_and(|output| output.status.success()) {
            return skipped(name, "this kernel has no veth, or iproute2 is not installed");
        }
        ip("link del wire0");
        make_pair();
        body();
    });
}

#[test]
fn interface_uplink_carries_frames_without_echo() {
    with_a_pair("interface::interface_uplink_carries_frames_without_echo", || {
        let live = LiveHost::with(CONFIG);
        assert_eq!(live.port().uplink, "interface:wire0");
        let status = live.port().uplink_status.unwrap();
        assert_eq!((status.kind.as_str(), status.state), ("interface", UplinkState::Up));
        assert_eq!((status.carrier, status.mtu), (Some(true), Some(1500)));
        let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
        reaches_the_host(&mut a, "host0");
        b.take();
        a.take();
        a.send(MacAddress::BROADCAST, &[6; 70]);
        let heard: Vec<_> = b.receive().into_iter().filter(|frame| frame[..] == [6; 70]).collect();
        assert_eq!(heard.len(), 1, "a copy came over the wire");
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(!a.take().contains(&vec![6; 70]), "the sender received its own frame");
        exchange(&mut a, &mut b, 10);
    });
}

#[test]
fn link_is_down_while_the_uplink_interface_is_deleted() {
    with_a_pair("interface::link_is_down_while_the_uplink_interface_is_deleted", || {
        let live = LiveHost::with(CONFIG);
        let mut guest = VfGuest::under_qemu(&live, 0);
        reaches_the_host(&mut guest, "host0");
        link_follows(&live, "interface", "wire0");
        guest.wait_for_link();
        reaches_the_host(&mut guest, "host0");
        ip("link set host0 down");
        wait_port(&live, "the interface has no carrier", |port| {
            !port.link && port.uplink_status.as_ref().is_some_and(|status| status.carrier == Some(false))
        });
        ip("link set host0 up");
        for round in 1..=2 {
            ip("link del wire0");
            wait_port(&live, "the interface is gone", |port| {
                !port.link && port.uplink == "interface:wire0 (gone)"
            });
            make_pair();
            wait_reattached(&live, round);
            guest.wait_for_link();
            reaches_the_host(&mut guest, "host0");
        }
        assert!(live.is_whole());
    });
}

#[test]
fn packet_that_the_kernel_cannot_describe_leaves_the_link_up() {
    let name = "interface::packet_that_the_kernel_cannot_describe_leaves_the_link_up";
    in_network_namespace(name, || {
        let wire = Tap::open(&"wire0".parse().unwrap()).unwrap();
        wire.set_up().unwrap();
        let live = LiveHost::with(CONFIG);
        let mut guest = VfGuest::under_qemu(&live, 0);
        guest.wait_for_link();
        // 3,000 bytes of UDP to fragment (VIRTIO_NET_HDR_GSO_UDP): the kernel has no header for it to receive.
        let header =
            VnetHeader { checksum: Some((34, 6)), segments: GsoType::Other(3), headers: 42, size: 1000 };
        let mut packet = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 8, 0];
        packet.extend([0x45, 0, 0x0b, 0xd4, 0, 0, 0, 0, 64, 17, 0, 0, 10, 98, 0, 2, 10, 98, 0, 3]);
        packet.extend([0, 9, 0, 9, 0x0b, 0xc0, 0, 0]);
        packet.resize(42 + 3000, 0x5a);
        let _ = wire.send_with(&header, &packet).unwrap();
        wait_port(&live, "the packet is counted", |port| {
            port.uplink_status.as_ref().is_some_and(|status| status.drops.malformed == 1)
        });
        let mut frame = [0xff; 60];
        frame[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
        let _ = wire.send(&frame).unwrap();
        eventually("the guest receives the next frame", || guest.receive().contains(&frame[14..].to_vec()));
        let status = live.port().uplink_status.unwrap();
        assert_eq!((status.state, status.reattached), (UplinkState::Up, 0));
    });
}

#[test]
fn missing_uplink_interface_is_named_in_the_error() {
    with_a_pair("interface::missing_uplink_interface_is_named_in_the_error", || {
        let folder = tempfile::tempdir().unwrap();
        let text = "[[port]]\nuplink.interface = \"nothere0\"\n";
        let config = HostConfig::check(HostConfig::parse(text).unwrap(), folder.path()).unwrap();
        let refused = RunningHost::start(config).unwrap_err().to_string();
        assert!(
            refused.contains("pf0: cannot open the uplink: interface nothere0 does not exist"),
            "{refused}"
        );
        let live = LiveHost::keeping("[[port]]\n");
        let refused = live.apply(text).expect_err("the host refuses the change").to_string();
        assert!(refused.contains("interface nothere0 does not exist"), "{refused}");
        let mut guest = VfGuest::under_qemu(&live, 0);
        live.apply(CONFIG).unwrap();
        guest.wait_for_link();
        reaches_the_host(&mut guest, "host0");
        live.apply("[[port]]\n").unwrap();
        assert_eq!(live.port().uplink, "none");
    });
}
