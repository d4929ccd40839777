//! Tests embedded guests on the live host, over real sockets: frames, the link, and guests that arrive and depart.

mod interface;

use daemon::RunningHost;
use daemon::config::HostConfig;
use daemon::control::client::ask;
use daemon::control::protocol::{ControlAnswer, ControlRequest, SettingsCommand};
use daemon::control::status::{LinkState, PortStatus, VfStatus};
use daemon::settings::VfSettings;
use embedded_guest::{EmbeddedGuest, EmbeddedGuestConfig, EmbeddedGuestError, TestFlowError};
use host::test_support::in_network_namespace;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(240);

struct LiveTestHost {
    host: RunningHost,
    folder: TempDir,
}

impl LiveTestHost {
    fn new() -> Self {
        Self::with("")
    }

    fn with(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = HostConfig::check(HostConfig::parse(text).unwrap(), folder.path()).unwrap();
        Self { host: RunningHost::start(config).unwrap(), folder }
    }

    fn attach(&self, vf: u8) -> EmbeddedGuest {
        self.attach_to(0, vf)
    }

    fn attach_to(&self, port: u8, vf: u8) -> EmbeddedGuest {
        let name = format!("pf{port}vf{vf}");
        let socket = self.folder.path().join(&name).join("vf.sock");
        let guest = EmbeddedGuest::start(EmbeddedGuestConfig { socket, name, ip: address(vf) }).unwrap();
        assert!(guest.wait_link(PATIENCE), "the link of {} did not come up in time", guest.name());
        guest
    }

    fn port(&self, port: &str) -> PortStatus {
        match ask(self.host.control_socket(), ControlRequest::PortShow { port: port.into() }).unwrap() {
            ControlAnswer::Port(status) => *status,
            _ => panic!("expected the status of one port"),
        }
    }

    fn reset_port(&self) {
        let reset = ControlRequest::PortReset { port: "pf0".into() };
        assert!(matches!(ask(self.host.control_socket(), reset).unwrap(), ControlAnswer::Port(_)));
    }

    fn ask(&self, request: ControlRequest) -> VfStatus {
        match ask(self.host.control_socket(), request).unwrap() {
            ControlAnswer::Vf(status) => *status,
            _ => panic!("expected the status of one VF"),
        }
    }
}

fn address(vf: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 82, 0, vf + 1)
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn short_tcp_flows_in_succession_find_a_listening_socket() {
    let world = LiveTestHost::new();
    let (one, other) = (world.attach(0), world.attach(1));
    for number in 0..200 {
        let flow = one.send_tcp(other.ip(), 100);
        assert!(matches!(flow, Ok(flow) if flow.is_intact()), "{number}: {flow:?}");
    }
}

#[test]
fn answers_to_periodic_pings_are_counted() {
    let world = LiveTestHost::new();
    let (one, other) = (world.attach(0), world.attach(1));
    let pulse = one.pulse(other.ip(), Duration::from_millis(1)).unwrap();
    eventually("a hundred pings are answered", || pulse.answers() > 100);
    assert!(pulse.take_longest() > Duration::ZERO);
}

#[test]
fn pings_and_simultaneous_flows_in_both_directions_work() {
    let world = LiveTestHost::new();
    let (one, other) = (world.attach(0), world.attach(1));
    let pings = one.ping(other.ip(), 50).unwrap();
    assert_eq!((pings.sent, pings.received()), (50, 50));

    let length = (8 << 20) + 77;
    let send = |from: &EmbeddedGuest, to: Ipv4Addr| from.send_tcp(to, length).unwrap();
    let flows = std::thread::scope(|scope| {
        let there = scope.spawn(|| send(&one, other.ip()));
        let back = scope.spawn(|| send(&other, one.ip()));
        [there.join().unwrap(), back.join().unwrap()]
    });
    assert!(flows.iter().all(|flow| flow.is_intact() && flow.bytes == length), "{flows:?}");

    let stats = one.stats().unwrap();
    let [queue] = stats.queues[..] else { panic!("an 82576 VF has one queue pair in use: {stats:?}") };
    assert!(stats.interrupts > 0 && stats.accesses.reads > 0 && queue.rx.frames > 0, "{stats:?}");
    assert!(queue.tx.frames < stats.card.tx_packets, "the card has not segmented packets: {stats:?}");
    assert_eq!((stats.refused.bad_checksum, stats.refused.transmit, queue.rx.errors), (0, 0, 0), "{stats:?}");
    let status = world.ask(ControlRequest::VfShow { vf: "pf0vf0".into() });
    assert_eq!(status.mac, one.mac().to_string());
}

#[test]
fn pings_to_an_unused_address_get_no_answer() {
    let world = LiveTestHost::new();
    let guest = world.attach(0);
    let pings = guest.ping(address(9), 1).unwrap();
    assert_eq!((pings.sent, pings.received()), (1, 0));
    assert_eq!(pings.median(), None);
    let flow = guest.send_tcp(address(9), 1);
    assert!(matches!(flow, Err(EmbeddedGuestError::Flow(TestFlowError::NoConnection))), "{flow:?}");
}

#[test]
fn guest_link_follows_link_changes_by_the_administrator() {
    let world = LiveTestHost::new();
    let guest = world.attach(0);
    world.ask(ControlRequest::VfSet {
        vf: "pf0vf0".into(),
        change: SettingsCommand::volatile(VfSettings::link(LinkState::Disable)),
    });
    eventually("the guest's link goes down", || !guest.link_up());
    world.ask(ControlRequest::VfSet {
        vf: "pf0vf0".into(),
        change: SettingsCommand::volatile(VfSettings::link(LinkState::Auto)),
    });
    eventually("the guest's link comes back", || guest.link_up());
}

/// Compares the port's statistics of its PF driver with the guests' view. No request waits longer than a guest's whole
/// start, which takes a dozen requests. Every request that the PF counts is timed once.
#[test]
fn pf_driver_status_has_the_waiting_times_of_vf_requests() {
    let world = LiveTestHost::new();
    let mut longest = Duration::ZERO;
    let guests: Vec<EmbeddedGuest> = (0..3)
        .map(|vf| {
            let start = Instant::now();
            let guest = world.attach(vf);
            longest = longest.max(start.elapsed());
            guest
        })
        .collect();
    let port = world.port("pf0");
    let answers = port.answers.unwrap();
    let asked: u64 = port.vfs.iter().flat_map(|vf| vf.mailbox.requests.values()).sum();
    assert_eq!(answers.requests, asked, "{answers:?}");
    assert!(asked >= 3 * 2, "{asked} requests: expected a reset and a multicast list of each guest");
    assert!(answers.visits <= asked && answers.visits * u64::from(answers.most_a_visit) >= asked);
    let waits = [1, answers.p50_ns, answers.p99_ns, answers.max_ns, longest.as_nanos() as u64];
    assert!(waits.is_sorted(), "{waits:?}");
    assert!(answers.max_ns <= answers.sum_ns && answers.sum_ns <= answers.max_ns * answers.requests);
    assert_eq!(
        answers.at_most.last().map(|bound| bound.requests),
        Some(asked),
        "every request is in the last bucket, at most 10 s"
    );
    drop(guests);
}

#[test]
fn tcp_flow_survives_resets_of_the_port() {
    let world = LiveTestHost::new();
    let (one, other) = (world.attach(0), world.attach(1));
    let vf = || world.ask(ControlRequest::VfShow { vf: "pf0vf0".into() });
    let flow = std::thread::scope(|scope| {
        let flow = scope.spawn(|| one.send_tcp(other.ip(), 8 << 20).unwrap());
        for _ in 0..3 {
            let before = vf();
            // A reset before the receiver's answer would double the sender's wait each time.
            let continues = || {
                let now = vf();
                now.tx.packets > before.tx.packets + 50 && now.rx.packets > before.rx.packets + 5
            };
            eventually("the TCP flow continues", || continues() || flow.is_finished());
            world.reset_port();
            eventually("the VF's driver restarts", || vf().mailbox.resets > before.mailbox.resets);
        }
        flow.join().unwrap()
    });
    assert!(flow.is_intact(), "{flow:?}");
}

fn ip(words: &str) {
    assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success(), "ip {words}");
}

#[test]
fn tcp_flow_survives_the_loss_of_its_tap() {
    in_network_namespace("tcp_flow_survives_the_loss_of_its_tap", || {
        let port = |tap: &str| format!("[[port]]\nuplink.tap = \"{tap}\"\nvfs = 2\n");
        // The rate is low so that the flow lasts through all rounds.
        let slow = "[[port.vf]]\nindex = 0\nmax_tx_rate = 100\n";
        let world = LiveTestHost::with(&(port("left0") + slow + &port("right0")));
        ip("link add bridge0 type bridge forward_delay 0 mcast_snooping 0");
        ip("link set bridge0 up");
        ip("link set left0 master bridge0");
        ip("link set right0 master bridge0");
        let (one, other) = (world.attach_to(0, 0), world.attach_to(1, 1));
        eventually("the bridge forwards a ping", || one.ping(other.ip(), 1).unwrap().received() == 1);
        let sent = || world.ask(ControlRequest::VfShow { vf: "pf0vf0".into() }).tx.packets;
        let flow = std::thread::scope(|scope| {
            let flow = scope.spawn(|| one.send_tcp(other.ip(), 32 << 20).unwrap());
            for round in 1..=3 {
                let before = sent();
                eventually("the TCP flow continues", || sent() > before + 200 || flow.is_finished());
                assert!(!flow.is_finished(), "the flow ended before round {round}: send more bytes");
                ip("link del left0");
                eventually("the guest's link goes down with its tap", || !one.link_up());
                assert!(other.link_up(), "the other port has its own tap");
                ip("tuntap add left0 mode tap");
                ip("link set left0 master bridge0");
                eventually("the guest's link comes back with its tap", || one.link_up());
                assert_eq!(world.port("pf0").uplink_status.map(|tap| tap.reattached), Some(round));
            }
            flow.join().unwrap()
        });
        assert!(flow.is_intact(), "{flow:?}");
    });
}

#[test]
fn tcp_flows_both_ways_cross_a_wire_between_two_ports() {
    let port = "[[port]]\nuplink.wire = \"w\"\nvfs = 2\n";
    let world = LiveTestHost::with(&(port.to_owned() + port));
    let (one, other) = (world.attach_to(0, 0), world.attach_to(1, 1));
    let pings = one.ping(other.ip(), 50).unwrap();
    assert_eq!((pings.sent, pings.received()), (50, 50));
    let flows = std::thread::scope(|scope| {
        let there = scope.spawn(|| one.send_tcp(other.ip(), 16 << 20).unwrap());
        let back = scope.spawn(|| other.send_tcp(one.ip(), 16 << 20).unwrap());
        [there.join().unwrap(), back.join().unwrap()]
    });
    assert!(flows.iter().all(|flow| flow.is_intact()), "{flows:?}");
}

#[test]
fn guests_recover_from_port_resets_during_their_own_restart() {
    let world = LiveTestHost::new();
    let (one, other) = (world.attach(0), world.attach(1));
    for _ in 0..40 {
        world.reset_port();
    }
    eventually("both guests answer pings after the resets", || {
        one.ping(other.ip(), 1).unwrap().received() == 1
    });
}

#[test]
fn guest_with_a_rate_limit_sends_at_most_at_that_rate() {
    let world = LiveTestHost::new();
    let (one, other) = (world.attach(0), world.attach(1));
    let limit = |mbps| VfSettings { max_tx_rate: Some(mbps), ..VfSettings::default() };
    for mbps in [50, 200] {
        let status = world.ask(ControlRequest::VfSet {
            vf: "pf0vf0".into(),
            change: SettingsCommand::volatile(limit(mbps)),
        });
        assert_eq!(status.settings.max_tx_rate, Some(mbps));
        let flow = one.send_tcp(other.ip(), 4 << 20).unwrap();
        assert!(flow.is_intact() && flow.mbps() <= f64::from(mbps), "{} of {mbps} Mb/s", flow.mbps());
    }
}

#[test]
fn a_vf_serves_several_guests_in_succession() {
    let world = LiveTestHost::new();
    let server = world.attach(0);
    for _ in 0..3 {
        let visitor = world.attach(1);
        assert!(visitor.send_tcp(server.ip(), 1 << 20).unwrap().is_intact());
    }
}

#[test]
fn embedded_guest_ends_when_its_host_ends() {
    let world = LiveTestHost::new();
    let guest = world.attach(0);
    world.host.stop();
    eventually("the guest's link goes down with the host", || !guest.link_up());
    eventually("the guest ends with the host", || matches!(guest.stats(), Err(EmbeddedGuestError::Ended)));
}
