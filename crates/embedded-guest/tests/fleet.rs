//! Tests an AVF port that offers all VFs of its card, with guests on some of the VFs and on every VF. Covers frames
//! between guests, policy, changes of the number of VFs at run time, and a hand-over to another host.

use daemon::config::HostConfig;
use daemon::control::client::ask;
use daemon::control::protocol::{ControlAnswer, ControlRequest, SettingsCommand};
use daemon::control::status::{PortStatus, VfStatus};
use daemon::settings::{MirrorRule, PortSettings, VfSettings};
use daemon::{ReadyHost, RunningHost};
use embedded_guest::{EmbeddedGuest, EmbeddedGuestConfig};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(240);
/// Maximum number of VFs of an AVF card.
const MOST: u8 = 64;
/// Indices of the VFs to test: first and last, and those on both sides of a 32-bit word's edge and of the 82576's last
/// VF.
const ENDS: [u8; 6] = [0, 7, 8, 31, 32, 63];

/// Lock that lets one test at a time run hosts: all hosts of a process share one table of mappings, and a hand-over
/// needs two hosts.
static TURN: Mutex<()> = Mutex::new(());

/// Running host with one AVF port that offers VFs for guests of the test.
struct FullPortHost {
    host: Option<RunningHost>,
    _turn: MutexGuard<'static, ()>,
    folder: TempDir,
    text: String,
}

impl FullPortHost {
    fn new(vfs: u8, wait: &str) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let text = format!("[[port]]\nfamily = \"avf\"\nvfs = {vfs}\nwait = \"{wait}\"\n");
        let host = Some(RunningHost::start(config(&text, folder.path())).unwrap());
        Self { host, _turn: turn, folder, text }
    }

    /// Replaces the running host by another host, which takes over all guests, as `softiov upgrade` does.
    fn hand_over(&mut self) {
        let host = self.host.take().unwrap();
        assert!(host.pause(PATIENCE), "the port did not pause in time");
        let ready = ReadyHost::open(config(&self.text, self.folder.path()), host.vault()).unwrap();
        host.leave(PATIENCE);
        self.host = Some(ready.start().unwrap());
    }

    fn attach(&self, vf: u8) -> EmbeddedGuest {
        let name = format!("pf0vf{vf}");
        let socket = self.folder.path().join(&name).join("vf.sock");
        let guest = EmbeddedGuest::start(EmbeddedGuestConfig { socket, name, ip: address(vf) }).unwrap();
        assert!(guest.wait_link(PATIENCE), "the link of {} did not come up in time", guest.name());
        guest
    }

    fn ask(&self, request: ControlRequest) -> Result<ControlAnswer, String> {
        ask(self.host.as_ref().unwrap().control_socket(), request).map_err(|error| error.to_string())
    }

    fn vf(&self, request: ControlRequest) -> VfStatus {
        match self.ask(request).unwrap() {
            ControlAnswer::Vf(status) => *status,
            other => panic!("expected the status of one VF: {other:?}"),
        }
    }

    fn show(&self, vf: u8) -> VfStatus {
        self.vf(ControlRequest::VfShow { vf: format!("pf0vf{vf}") })
    }

    fn set(&self, vf: u8, settings: VfSettings) -> VfStatus {
        self.vf(ControlRequest::VfSet {
            vf: format!("pf0vf{vf}"),
            change: SettingsCommand::volatile(settings),
        })
    }

    fn set_port(&self, settings: PortSettings) -> Result<PortStatus, String> {
        match self.ask(ControlRequest::PortSet {
            port: "pf0".into(),
            change: SettingsCommand::volatile(settings),
        })? {
            ControlAnswer::Port(status) => Ok(*status),
            other => panic!("expected the status of one port: {other:?}"),
        }
    }

    fn offer(&self, vfs: u8) -> Result<usize, String> {
        let settings = PortSettings { vfs: Some(vfs), ..PortSettings::default() };
        self.set_port(settings).map(|port| port.vfs.len())
    }
}

fn config(text: &str, folder: &Path) -> HostConfig {
    HostConfig::check(HostConfig::parse(text).unwrap(), folder).unwrap()
}

fn address(vf: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 82, 0, vf + 1)
}

fn answers(one: &EmbeddedGuest, other: &EmbeddedGuest) -> bool {
    one.ping(other.ip(), 1).unwrap().received() == 1
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a flow from each guest to the next, and from the last to the first, all at once. Checks that every byte
/// arrives.
fn send_round(guests: &[EmbeddedGuest], bytes: u64) {
    let nexts = guests.iter().cycle().skip(1);
    std::thread::scope(|scope| {
        for (guest, next) in guests.iter().zip(nexts) {
            scope.spawn(move || {
                let flow = guest.send_tcp(next.ip(), bytes).unwrap();
                assert!(flow.is_intact() && flow.bytes == bytes, "{} {flow:?}", guest.name());
            });
        }
    });
}

fn resets(world: &FullPortHost, vfs: &[u8]) -> Vec<u64> {
    vfs.iter().map(|vf| world.show(*vf).mailbox.resets).collect()
}

#[test]
fn guests_on_any_vf_survive_a_host_hand_over() {
    for wait in ["sleep", "mapped"] {
        let mut world = FullPortHost::new(MOST, wait);
        let guests = ENDS.map(|vf| world.attach(vf));
        send_round(&guests, 1 << 20);
        let before = resets(&world, &ENDS);
        for _ in 0..2 {
            world.hand_over();
            send_round(&guests, 1 << 20);
        }
        assert_eq!(resets(&world, &ENDS), before, "{wait}: a VF was reset");
        let addresses = ENDS.map(|vf| world.show(vf).mac);
        assert_eq!(addresses, [0, 1, 2, 3, 4, 5].map(|place: usize| guests[place].mac().to_string()));
    }
}

#[test]
fn policy_of_the_last_vf_survives_a_host_hand_over() {
    let mut world = FullPortHost::new(MOST, "sleep");
    let [first, beside, last] = [0, 62, 63].map(|vf| world.attach(vf));
    // The arithmetic of SR-IOV: the PF is 00:01.0, the first VF 16 behind it, the others one by one.
    assert_eq!([0, 8, 63].map(|vf| world.show(vf).rid), ["00:03.0", "00:04.0", "00:0a.7"]);
    world.set(63, VfSettings { vlan: Some(7), ..VfSettings::default() });
    eventually("VF 63 is alone on VLAN 7", || !answers(&last, &first));
    assert!(answers(&beside, &first), "VFs without VLAN 7 exchange frames");
    let watcher = MirrorRule { to: 62, vfs: vec![63], uplink: None, vlans: None };
    let mirror = [("0".to_owned(), Some(watcher))].into();
    let told = world.set_port(PortSettings { mirror, ..PortSettings::default() }).unwrap();
    world.hand_over();
    let settings = world.show(63).settings;
    assert_eq!((settings.vlan, world.show(0).settings.vlan), (Some(7), Some(0)));
    world.set(0, VfSettings { vlan: Some(7), ..VfSettings::default() });
    eventually("VFs 0 and 63 are both on VLAN 7", || answers(&last, &first));
    let again = world.set_port(PortSettings::default()).unwrap();
    assert_eq!(again.settings, told.settings, "the mirror rule still exists");
    let copied = world.show(62).rx.packets;
    eventually("VF 62 receives mirrored frames", || {
        answers(&first, &last) && world.show(62).rx.packets > copied
    });
    world.set(63, VfSettings { quarantine: Some(true), ..VfSettings::default() });
    eventually("VF 63 is quarantined", || !answers(&last, &first));
    world.hand_over();
    assert_eq!(world.show(63).conduct.quarantine.as_deref(), Some("administrator"));
    assert!(!answers(&last, &first), "VF 63 stays quarantined");
    world.set(63, VfSettings { quarantine: Some(false), ..VfSettings::default() });
    eventually("VF 63 is released from quarantine", || answers(&last, &first));
}

#[test]
fn running_port_accepts_a_changed_number_of_vfs() {
    let world = FullPortHost::new(2, "sleep");
    let first = world.attach(0);
    for _ in 0..2 {
        assert_eq!(world.offer(MOST), Ok(64));
        let last = world.attach(63);
        assert!(first.send_tcp(last.ip(), 1 << 20).unwrap().is_intact());
        assert_eq!(world.offer(2), Ok(2));
        assert!(world.ask(ControlRequest::VfShow { vf: "pf0vf63".into() }).is_err());
    }
    let refused = world.offer(MOST + 1).unwrap_err();
    assert!(
        refused.contains("pf0.vfs: 65 is out of range (1-64 ") && refused.contains("add a port"),
        "{refused}"
    );
    let second = world.attach(1);
    assert!(answers(&first, &second), "the other VFs exchange frames");
    assert_eq!(world.show(0).mailbox.resets, world.show(1).mailbox.resets);
}

/// Runs an embedded guest on each of 64 VFs of one port; the guests exchange frames. The cost of each guest is in
/// `docs/performance.md`.
#[test]
fn a_guest_on_each_of_64_vfs_exchanges_frames_with_another() {
    let world = FullPortHost::new(MOST, "sleep");
    let guests: Vec<_> = (0..MOST).map(|vf| world.attach(vf)).collect();
    send_round(&guests, 256 << 10);
    let port = match world.ask(ControlRequest::PortShow { port: "pf0".into() }).unwrap() {
        ControlAnswer::Port(port) => port,
        other => panic!("expected the status of one port: {other:?}"),
    };
    assert!(port.vfs.iter().all(|vf| vf.active && vf.link && vf.peer.is_some()));
    let moved = |vf: &VfStatus| vf.rx.bytes > 256 << 10 && vf.tx.bytes > 256 << 10;
    assert!(port.vfs.iter().all(moved), "a guest has not sent or received enough: {:?}", port.vfs);
    let answers = port.answers.unwrap();
    println!("{} requests, p50 {} ns, max {} ns", answers.requests, answers.p50_ns, answers.max_ns);
}
