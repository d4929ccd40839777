//! Tests of an existing network interface over AF_XDP as the uplink: one end of a veth pair, whose other end is an
//! interface of the test's network namespace. `host::xdp` tests rings and queues.

use crate::interface::{make_pair, with_a_pair};
use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::tap::{ip, link_follows, reaches_the_host, wait_port, wait_reattached};
use daemon::RunningHost;
use daemon::config::HostConfig;
use daemon::control::status::PortStatus;
use daemon::control::uplink::{InterfaceMode, UplinkState, UplinkStatus};
use host::confine::{SeccompMode, ThreadCapabilities, ThreadRole, ThreadSandbox};
use host::test_support::skipped;
use host::xdp::XdpProgram;
use i82576::MacAddress;
use std::process::Command;

/// Configuration of a confined host. Its threads keep only the privileges that attaching to a recreated interface
/// needs.
const CONFINED: &str = "confine = { user = \"0:0\" }\n";

fn config(mode: &str) -> String {
    format!("[[port]]\nuplink = {{ interface = \"wire0\", xdp = \"{mode}\" }}\n")
}

/// Runs a test with a veth pair. Skips the test if the kernel does not allow this process to load XDP programs.
fn where_programs_load(name: &str, body: impl FnOnce() + Send) {
    with_a_pair(name, || match XdpProgram::load() {
        Ok(_) => body(),
        Err(error) => skipped(name, &format!("no program can be loaded: {error}")),
    });
}

/// Returns true if an XDP program is attached to the port's interface.
fn has_program() -> bool {
    let output = Command::new("ip").args(["link", "show", "wire0"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("xdp")
}

fn status(live: &LiveHost) -> UplinkStatus {
    live.port().uplink_status.unwrap()
}

/// Waits until the first port has a link and its interface is in an XDP mode.
#[track_caller]
fn wait_mode(live: &LiveHost, mode: InterfaceMode) {
    wait_port(live, "the interface is in the XDP mode", |port| {
        port.link && port.uplink_status.as_ref().is_some_and(|status| status.mode == Some(mode))
    });
}

#[test]
fn each_xdp_mode_carries_frames_and_removes_its_program() {
    where_programs_load("xdp::each_xdp_mode_carries_frames_and_removes_its_program", || {
        for (asked, had) in [
            ("best-effort", InterfaceMode::Native),
            ("native", InterfaceMode::Native),
            ("generic", InterfaceMode::Generic),
        ] {
            let live = LiveHost::with(&config(asked));
            assert_eq!(live.port().uplink, "interface:wire0");
            let found = status(&live);
            assert_eq!((found.kind.as_str(), found.state), ("interface", UplinkState::Up));
            assert_eq!(
                (found.carrier, found.mtu, found.mode),
                (Some(true), Some(1500), Some(had)),
                "{asked}"
            );
            assert!(has_program());
            let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
            reaches_the_host(&mut a, "host0");
            b.take();
            a.send(MacAddress::BROADCAST, &[6; 70]);
            let heard = b.receive().into_iter().filter(|frame| frame[..] == [6; 70]).count();
            assert_eq!(heard, 1, "a copy came over the wire");
            exchange(&mut a, &mut b, 10);
            drop((a, b));
            assert!(live.is_whole());
            live.stop();
            eventually("the XDP program is removed", || !has_program());
        }
    });
}

#[test]
fn recreated_interface_gets_its_xdp_program_again() {
    where_programs_load("xdp::recreated_interface_gets_its_xdp_program_again", || {
        let live = LiveHost::with(&(CONFINED.to_owned() + &config("best-effort")));
        let mut guest = VfGuest::under_qemu(&live, 0);
        reaches_the_host(&mut guest, "host0");
        link_follows(&live, "interface", "wire0");
        guest.wait_for_link();
        reaches_the_host(&mut guest, "host0");
        for round in 1..=2 {
            ip("link del wire0");
            wait_port(&live, "the interface is gone", |port| {
                !port.link && port.uplink == "interface:wire0 (gone)"
            });
            make_pair();
            wait_reattached(&live, round);
            guest.wait_for_link();
            reaches_the_host(&mut guest, "host0");
            // On a kernel that requires a privilege for attaching, this confined host falls back to a packet socket.
            let mode = status(&live).mode;
            assert_eq!(has_program(), mode == Some(InterfaceMode::Native), "{mode:?}");
            if mode != Some(InterfaceMode::Native) {
                skipped("AF_XDP on an interface that returns", "this kernel requires a privilege for it");
            }
        }
        assert!(live.is_whole());
    });
}

#[test]
fn hand_over_keeps_a_renamed_interface_of_an_xdp_uplink() {
    where_programs_load("xdp::hand_over_keeps_a_renamed_interface_of_an_xdp_uplink", || {
        let mut live = LiveHost::with(&config("native"));
        ip("link set wire0 down");
        ip("link set wire0 name other0");
        ip("link set other0 up");
        let is_renamed = |port: &PortStatus| {
            let status = port.uplink_status.as_ref();
            port.link && status.is_some_and(|status| status.name == "other0")
        };
        wait_port(&live, "the interface is renamed", is_renamed);
        for other in [false, true] {
            if other {
                ip("link add wire0 type veth peer name host1");
                ip("link set wire0 up");
                ip("link set host1 up");
            }
            live.hand_over(&config("native"));
            wait_port(&live, "the renamed interface is the uplink", is_renamed);
            assert_eq!(status(&live).mode, Some(InterfaceMode::Native));
        }
        let mut guest = VfGuest::under_qemu(&live, 0);
        reaches_the_host(&mut guest, "host0");
        assert!(!has_program(), "the interface of the former name has a program");
    });
}

#[test]
fn running_port_changes_its_xdp_mode() {
    where_programs_load("xdp::running_port_changes_its_xdp_mode", || {
        let live = LiveHost::keeping(&config("generic"));
        let mut guest = VfGuest::under_qemu(&live, 0);
        reaches_the_host(&mut guest, "host0");
        for (asked, had) in [("native", InterfaceMode::Native), ("generic", InterfaceMode::Generic)] {
            live.apply(&config(asked)).unwrap();
            wait_mode(&live, had);
            guest.wait_for_link();
            reaches_the_host(&mut guest, "host0");
        }
        live.apply("[[port]]\nuplink.interface = \"wire0\"\n").unwrap();
        wait_mode(&live, InterfaceMode::PacketSocket);
        guest.wait_for_link();
        reaches_the_host(&mut guest, "host0");
        eventually("the XDP program is removed", || !has_program());
        assert!(live.is_whole());
    });
}

#[test]
fn refused_change_of_the_xdp_mode_keeps_the_interface_held() {
    where_programs_load("xdp::refused_change_of_the_xdp_mode_keeps_the_interface_held", || {
        const OTHER: &str = "[[port]]\nvfs = 1\n";
        let live = LiveHost::keeping(&(config("generic") + OTHER));
        assert!(live.keeps("pf0.xdp.wire0"));
        for asked in ["native", "best-effort"] {
            let refused = config(asked) + OTHER + "uplink.interface = \"missing0\"\n";
            live.apply(&refused).expect_err("the other port's uplink is missing");
            assert!(live.keeps("pf0.xdp.wire0"), "{asked}");
        }
        live.apply(&(config("native") + OTHER)).unwrap();
        wait_mode(&live, InterfaceMode::Native);
        eventually("the interface is held for a successor", || live.keeps("pf0.xdp.wire0"));
        live.apply(&("[[port]]\n".to_owned() + OTHER)).unwrap();
        assert!(!live.keeps("pf0.xdp.wire0"), "an uplink that has ended is held");
    });
}

#[test]
fn running_host_loads_no_xdp_program_and_names_a_remedy() {
    where_programs_load("xdp::running_host_loads_no_xdp_program_and_names_a_remedy", || {
        let live = LiveHost::keeping("[[port]]\n");
        let mut guest = VfGuest::under_qemu(&live, 0);
        let refused = live.apply(&config("native")).expect_err("the host refuses the change").to_string();
        assert!(
            refused.contains("restart the host with an AF_XDP uplink") && refused.contains("best-effort"),
            "{refused}"
        );
        live.apply(&config("best-effort")).unwrap();
        wait_mode(&live, InterfaceMode::PacketSocket);
        guest.wait_for_link();
        reaches_the_host(&mut guest, "host0");
        assert!(!has_program() && live.is_whole());
    });
}

#[test]
fn frames_use_a_packet_socket_without_the_xdp_privilege() {
    with_a_pair("xdp::frames_use_a_packet_socket_without_the_xdp_privilege", || {
        let capabilities = ThreadCapabilities::Only { net_admin: false, net_raw: true };
        ThreadSandbox { seccomp: SeccompMode::Off, capabilities }
            .prepare(ThreadRole::Main)
            .unwrap()
            .apply()
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let checked =
            HostConfig::check(HostConfig::parse(&config("native")).unwrap(), folder.path()).unwrap();
        let refused = RunningHost::start(checked).unwrap_err().to_string();
        assert!(refused.contains("CAP_BPF") && refused.contains("best-effort"), "{refused}");
        let live = LiveHost::with(&config("best-effort"));
        assert_eq!(status(&live).mode, Some(InterfaceMode::PacketSocket));
        let mut guest = VfGuest::under_qemu(&live, 0);
        reaches_the_host(&mut guest, "host0");
        assert!(live.is_whole());
    });
}

#[test]
fn interface_with_mtu_beyond_xdp_uses_a_packet_socket() {
    where_programs_load("xdp::interface_with_mtu_beyond_xdp_uses_a_packet_socket", || {
        ip("link set wire0 mtu 9000");
        ip("link set host0 mtu 9000");
        let live = LiveHost::with(&config("best-effort"));
        let found = status(&live);
        assert_eq!((found.mtu, found.mode), (Some(9000), Some(InterfaceMode::PacketSocket)));
        assert!(!has_program());
    });
}
