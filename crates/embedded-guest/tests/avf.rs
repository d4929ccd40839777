//! Tests embedded guests that drive Adaptive Virtual Functions on the live host, over real sockets: frames by several
//! queues, with doorbells by message and in memory, resets, changes of policy and link, and a wire to an 82576 port.

use daemon::RunningHost;
use daemon::config::HostConfig;
use daemon::control::client::ask;
use daemon::control::protocol::{ControlAnswer, ControlRequest, SettingsCommand};
use daemon::control::status::{LinkState, VfStatus};
use daemon::settings::VfSettings;
use embedded_guest::{DeviceFamily, EmbeddedGuest, EmbeddedGuestConfig, EmbeddedGuestStats};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(240);

struct AvfTestHost {
    host: RunningHost,
    folder: TempDir,
}

impl AvfTestHost {
    fn new(wait: &str) -> Self {
        Self::with(&format!("[[port]]\nfamily = \"avf\"\nvfs = 3\nwait = \"{wait}\"\n"))
    }

    fn with(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = HostConfig::check(HostConfig::parse(text).unwrap(), folder.path()).unwrap();
        Self { host: RunningHost::start(config).unwrap(), folder }
    }

    fn attach(&self, port: u8, vf: u8) -> EmbeddedGuest {
        let name = format!("pf{port}vf{vf}");
        let socket = self.folder.path().join(&name).join("vf.sock");
        let ip = Ipv4Addr::new(10, 82, port, vf + 1);
        let guest = EmbeddedGuest::start(EmbeddedGuestConfig { socket, name, ip }).unwrap();
        assert!(guest.wait_link(PATIENCE), "the link of {} did not come up in time", guest.name());
        guest
    }

    fn pair(&self) -> [EmbeddedGuest; 2] {
        [self.attach(0, 0), self.attach(0, 1)]
    }

    fn vf(&self, request: ControlRequest) -> VfStatus {
        match ask(self.host.control_socket(), request).unwrap() {
            ControlAnswer::Vf(status) => *status,
            _ => panic!("expected the status of one VF"),
        }
    }

    fn show(&self) -> VfStatus {
        self.vf(ControlRequest::VfShow { vf: "pf0vf0".into() })
    }

    fn set(&self, settings: VfSettings) {
        self.vf(ControlRequest::VfSet { vf: "pf0vf0".into(), change: SettingsCommand::volatile(settings) });
    }

    fn reset_port(&self) {
        ask(self.host.control_socket(), ControlRequest::PortReset { port: "pf0".into() }).unwrap();
    }
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a flow from each of two guests to the other at once, and checks that every byte arrives.
fn exchange([one, other]: [&EmbeddedGuest; 2], bytes: u64) {
    let flows = std::thread::scope(|scope| {
        let there = scope.spawn(|| one.send_tcp(other.ip(), bytes).unwrap());
        let back = scope.spawn(|| other.send_tcp(one.ip(), bytes).unwrap());
        [there.join().unwrap(), back.join().unwrap()]
    });
    assert!(flows.iter().all(|flow| flow.is_intact() && flow.bytes == bytes), "{flows:?}");
}

fn answers(one: &EmbeddedGuest, other: &EmbeddedGuest) -> bool {
    one.ping(other.ip(), 1).unwrap().received() == 1
}

#[test]
fn pings_and_flows_work_with_doorbells_by_message_and_memory() {
    for wait in ["sleep", "mapped"] {
        let world = AvfTestHost::new(wait);
        let [one, other] = world.pair();
        assert_eq!(one.family(), DeviceFamily::Avf);
        let pings = one.ping(other.ip(), 50).unwrap();
        assert_eq!((pings.sent, pings.received()), (50, 50), "{wait}");
        exchange([&one, &other], (8 << 20) + 77);
        let stats = one.stats().unwrap();
        let sent: u64 = stats.queues.iter().map(|queue| queue.tx.frames).sum();
        let lost: u64 = stats.queues.iter().map(|queue| queue.rx.errors + queue.rx.bad_checksums).sum();
        assert!(stats.interrupts > 0 && stats.card.rx_packets > 0, "{wait}: {stats:?}");
        assert!(sent < stats.card.tx_packets, "{wait}, the card has segmented packets: {stats:?}");
        assert_eq!(
            (stats.refused.bad_checksum, stats.refused.transmit, lost),
            (0, 0, 0),
            "{wait}: {stats:?}"
        );
        assert_eq!(world.show().mac, one.mac().to_string());
    }
}

#[test]
fn doorbells_in_memory_avoid_nearly_all_vfio_user_messages() {
    let world = AvfTestHost::new("mapped");
    let [one, other] = world.pair();
    let trapped = || {
        let trapped = world.show().interventions;
        trapped.reads + trapped.posted_writes + trapped.synchronous_writes
    };
    let before = (trapped(), world.show().tx.packets);
    exchange([&one, &other], 16 << 20);
    let (trapped, packets) = (trapped() - before.0, world.show().tx.packets - before.1);
    assert!(trapped * 100 < packets, "{trapped} messages for {packets} packets sent: at most 1 % expected");
}

/// Sends many flows. The addresses and ports of a flow choose its queue, at the sender by the driver, at the receiver
/// by the card's hash.
#[test]
fn flows_are_spread_over_every_queue_of_both_guests() {
    let world = AvfTestHost::new("sleep");
    let [one, other] = world.pair();
    let used = |stats: EmbeddedGuestStats| {
        assert_eq!(stats.queues.len(), 4, "{stats:?}");
        let both = |least: u64| {
            let (rx, tx) =
                (stats.queues.iter().map(|q| q.rx.frames), stats.queues.iter().map(|q| q.tx.frames));
            rx.chain(tx).all(|frames| frames > least)
        };
        both(0)
    };
    let begun = Instant::now();
    while !(used(one.stats().unwrap()) && used(other.stats().unwrap())) {
        assert!(begun.elapsed() < PATIENCE, "{:?} {:?}", one.stats(), other.stats());
        assert!(one.send_tcp(other.ip(), 10_000).unwrap().is_intact());
    }
}

#[test]
fn tcp_flow_survives_resets_of_the_port() {
    for wait in ["sleep", "mapped"] {
        let world = AvfTestHost::new(wait);
        let [one, other] = world.pair();
        let flow = std::thread::scope(|scope| {
            let flow = scope.spawn(|| one.send_tcp(other.ip(), 8 << 20).unwrap());
            for _ in 0..3 {
                let before = world.show();
                // A reset before the receiver's answer would double the sender's wait each time.
                let continues = || {
                    let vf = world.show();
                    vf.tx.packets > before.tx.packets + 50 && vf.rx.packets > before.rx.packets + 5
                };
                eventually("the TCP flow continues", || continues() || flow.is_finished());
                world.reset_port();
                eventually("the VF's driver restarts", || {
                    world.show().mailbox.resets > before.mailbox.resets
                });
            }
            flow.join().unwrap()
        });
        assert!(flow.is_intact(), "{wait}: {flow:?}");
        eventually("both guests answer pings after the reset", || answers(&one, &other));
    }
}

#[test]
fn guest_link_follows_link_changes_by_the_administrator() {
    let world = AvfTestHost::new("sleep");
    let [one, other] = world.pair();
    world.set(VfSettings::link(LinkState::Disable));
    eventually("the guest's link goes down", || !one.link_up());
    world.set(VfSettings::link(LinkState::Auto));
    eventually("the guest's link comes back", || one.link_up());
    eventually("both guests answer pings after the link came back", || answers(&one, &other));
}

#[test]
fn guest_adopts_a_changed_mac_address_and_vlan() {
    let world = AvfTestHost::new("sleep");
    let [one, other] = world.pair();
    // No other station knows the former address, so none has a stale entry.
    let mac = "02:00:00:00:77:01".to_owned();
    world.set(VfSettings { mac: Some(mac.clone()), spoofchk: Some(true), ..VfSettings::default() });
    eventually("the guest sends by its new MAC address", || answers(&one, &other));
    assert_eq!(world.show().mac, mac);
    world.set(VfSettings { vlan: Some(7), ..VfSettings::default() });
    eventually("the guest's VF is alone on its VLAN", || !answers(&one, &other));
    world.set(VfSettings { vlan: Some(0), ..VfSettings::default() });
    eventually("the guest answers pings without the VLAN", || answers(&one, &other));
}

#[test]
fn a_vf_serves_several_guests_in_succession() {
    let world = AvfTestHost::new("mapped");
    let server = world.attach(0, 0);
    for _ in 0..3 {
        let visitor = world.attach(0, 1);
        assert!(visitor.send_tcp(server.ip(), 1 << 20).unwrap().is_intact());
    }
}

#[test]
fn avf_and_82576_vfs_exchange_frames_over_a_wire() {
    let port = |family: &str| format!("[[port]]\nfamily = \"{family}\"\nuplink.wire = \"w\"\nvfs = 2\n");
    let world = AvfTestHost::with(&(port("82576") + &port("avf")));
    let attach = |port: u8, number: u8| {
        let name = format!("pf{port}vf0");
        let socket = world.folder.path().join(&name).join("vf.sock");
        let ip = Ipv4Addr::new(10, 82, 0, number);
        let guest = EmbeddedGuest::start(EmbeddedGuestConfig { socket, name, ip }).unwrap();
        assert!(guest.wait_link(PATIENCE));
        guest
    };
    let (one, other) = (attach(0, 1), attach(1, 2));
    assert_eq!((one.family(), other.family()), (DeviceFamily::I82576, DeviceFamily::Avf));
    let pings = one.ping(other.ip(), 50).unwrap();
    assert_eq!((pings.sent, pings.received()), (50, 50));
    exchange([&one, &other], 8 << 20);
}
