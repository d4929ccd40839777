//! A network interface that is there, by AF_XDP: one end of a pair whose other end the test's own host has. Left out: rings
//! and queues, which `host::xdp` has tests for.

use crate::interface::{make_pair, with_a_pair};
use crate::support::eventually;
use crate::support::guest::{Guest, exchange};
use crate::support::live::Live;
use crate::support::tap::{ip, reaches_the_host, wait_port};
use daemon::Host;
use daemon::config::Config;
use daemon::control::uplink::{InterfaceMode, UplinkState, UplinkStatus};
use host::confine::{Capabilities, Confinement, Role, Seccomp};
use host::test_support::skipped;
use host::xdp::Program;
use i82576::MacAddress;
use std::process::Command;

/// A host whose threads keep what an interface takes that comes back, and no more.
const CONFINED: &str = "confine = { user = \"0:0\" }\n";

fn config(mode: &str) -> String {
    format!("[[port]]\nuplink = {{ interface = \"wire0\", xdp = \"{mode}\" }}\n")
}

/// Runs a test with a pair, where programs can be loaded.
fn where_programs_load(name: &str, body: impl FnOnce() + Send) {
    with_a_pair(name, || match Program::load() {
        Ok(_) => body(),
        Err(error) => skipped(name, &format!("no program can be loaded: {error}")),
    });
}

/// Whether a program is on the port's interface.
fn has_program() -> bool {
    let output = Command::new("ip").args(["link", "show", "wire0"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("xdp")
}

fn status(live: &Live) -> UplinkStatus {
    live.port().uplink_status.unwrap()
}

/// Waits until frames pass in this mode.
#[track_caller]
fn wait_mode(live: &Live, mode: InterfaceMode) {
    wait_port(live, "the mode", |port| {
        port.link && port.uplink_status.as_ref().is_some_and(|status| status.mode == Some(mode))
    });
}

#[test]
fn frames_go_out_and_come_in_in_each_mode_and_the_program_goes_with_the_host() {
    where_programs_load("xdp::frames_go_out_and_come_in_in_each_mode", || {
        for (asked, had) in [
            ("best-effort", InterfaceMode::Native),
            ("native", InterfaceMode::Native),
            ("generic", InterfaceMode::Generic),
        ] {
            let live = Live::with(&config(asked));
            assert_eq!(live.port().uplink, "interface:wire0");
            let found = status(&live);
            assert_eq!((found.kind.as_str(), found.state), ("interface", UplinkState::Up));
            assert_eq!(
                (found.carrier, found.mtu, found.mode),
                (Some(true), Some(1500), Some(had)),
                "{asked}"
            );
            assert!(has_program());
            let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
            reaches_the_host(&mut a, "host0");
            b.take();
            a.send(MacAddress::BROADCAST, &[6; 70]);
            let heard = b.receive().into_iter().filter(|frame| frame[..] == [6; 70]).count();
            assert_eq!(heard, 1, "over the switch, and not over the wire as well");
            exchange(&mut a, &mut b, 10);
            drop((a, b));
            assert!(live.is_whole());
            live.stop();
            eventually("the program goes with its host", || !has_program());
        }
    });
}

#[test]
fn an_interface_that_comes_back_has_its_program_again() {
    where_programs_load("xdp::an_interface_that_comes_back_has_its_program_again", || {
        let live = Live::with(&(CONFINED.to_owned() + &config("best-effort")));
        let mut guest = Guest::under_qemu(&live, 0);
        reaches_the_host(&mut guest, "host0");
        ip("link set wire0 down");
        wait_port(&live, "down", |port| !port.link && port.uplink == "interface:wire0 (down)");
        ip("link set wire0 up");
        guest.wait_for_link();
        reaches_the_host(&mut guest, "host0");
        for round in 1..=2 {
            ip("link del wire0");
            wait_port(&live, "gone", |port| !port.link && port.uplink == "interface:wire0 (gone)");
            make_pair();
            wait_port(&live, "back", |port| {
                port.link && port.uplink_status.as_ref().is_some_and(|status| status.reattached == round)
            });
            guest.wait_for_link();
            reaches_the_host(&mut guest, "host0");
            // A kernel that wants a privilege for attaching gives a packet socket to this host.
            let mode = status(&live).mode;
            assert_eq!(has_program(), mode == Some(InterfaceMode::Native), "{mode:?}");
            if mode != Some(InterfaceMode::Native) {
                skipped("AF_XDP on an interface that comes back", "this kernel wants a privilege for it");
            }
        }
        assert!(live.is_whole());
    });
}

#[test]
fn a_running_port_goes_from_one_mode_to_another() {
    where_programs_load("xdp::a_running_port_goes_from_one_mode_to_another", || {
        let live = Live::keeping(&config("generic"));
        let mut guest = Guest::under_qemu(&live, 0);
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
        eventually("the program is gone", || !has_program());
        assert!(live.is_whole());
    });
}

#[test]
fn a_host_that_runs_loads_no_program_and_says_what_helps() {
    where_programs_load("xdp::a_host_that_runs_loads_no_program_and_says_what_helps", || {
        let live = Live::keeping("[[port]]\n");
        let mut guest = Guest::under_qemu(&live, 0);
        let refused = live.apply(&config("native")).expect_err("is refused").to_string();
        assert!(refused.contains("a host that starts with") && refused.contains("best-effort"), "{refused}");
        live.apply(&config("best-effort")).unwrap();
        wait_mode(&live, InterfaceMode::PacketSocket);
        guest.wait_for_link();
        reaches_the_host(&mut guest, "host0");
        assert!(!has_program() && live.is_whole());
    });
}

#[test]
fn without_the_privilege_frames_pass_by_a_packet_socket() {
    with_a_pair("xdp::without_the_privilege_frames_pass_by_a_packet_socket", || {
        let capabilities = Capabilities::Only { net_admin: false, net_raw: true };
        Confinement { seccomp: Seccomp::Off, capabilities }.prepare(Role::Main).unwrap().apply().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let checked = Config::check(Config::parse(&config("native")).unwrap(), folder.path()).unwrap();
        let refused = Host::start(checked).unwrap_err().to_string();
        assert!(refused.contains("CAP_BPF") && refused.contains("best-effort"), "{refused}");
        let live = Live::with(&config("best-effort"));
        assert_eq!(status(&live).mode, Some(InterfaceMode::PacketSocket));
        let mut guest = Guest::under_qemu(&live, 0);
        reaches_the_host(&mut guest, "host0");
        assert!(live.is_whole());
    });
}

#[test]
fn an_interface_that_carries_longer_frames_is_had_by_a_packet_socket() {
    where_programs_load("xdp::an_interface_that_carries_longer_frames", || {
        ip("link set wire0 mtu 9000");
        ip("link set host0 mtu 9000");
        let live = Live::with(&config("best-effort"));
        let found = status(&live);
        assert_eq!((found.mtu, found.mode), (Some(9000), Some(InterfaceMode::PacketSocket)));
        assert!(!has_program());
    });
}
