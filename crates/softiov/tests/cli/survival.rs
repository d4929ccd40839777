//! Tests every way in which a host's process ends, while embedded guests of the test's process use its VFs. The host
//! cannot distinguish them from virtual machines.

use crate::process::{PATIENCE, ServeProcess, copy_program, eventually, softiov};
use embedded_guest::{EmbeddedGuest, EmbeddedGuestConfig};
use rustix::process::{Pid, Signal, kill_process};
use std::iter;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Time after which an idle host has saved all of its state for a successor process.
const REST: Duration = Duration::from_millis(500);
/// Number of bytes in a long TCP flow, which outlasts the replacement of the host.
pub(crate) const LONG: u64 = 256 << 20;

pub(crate) fn address(vf: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 1 + vf)
}

pub(crate) fn attach(folder: &Path, vf: u8) -> EmbeddedGuest {
    attach_as(folder, &format!("pf0vf{vf}"), vf)
}

/// Attaches an embedded guest to the first VF of a port. `number` gives its IP address.
pub(crate) fn attach_to(folder: &Path, port: u8, number: u8) -> EmbeddedGuest {
    attach_as(folder, &format!("pf{port}vf0"), number)
}

/// Attaches an embedded guest to the VF `name`, and waits for its link. `number` gives its IP address.
pub(crate) fn attach_as(folder: &Path, name: &str, number: u8) -> EmbeddedGuest {
    let socket = folder.join(name).join("vf.sock");
    let guest =
        EmbeddedGuest::start(EmbeddedGuestConfig { socket, name: name.to_owned(), ip: address(number) })
            .unwrap();
    assert!(guest.wait_link(PATIENCE), "the link of {} stays down", guest.name());
    guest
}

/// Host with two embedded guests that exchange TCP flows.
struct EmbeddedTestbed {
    serve: ServeProcess,
    guests: [EmbeddedGuest; 2],
    _folder: tempfile::TempDir,
}

impl EmbeddedTestbed {
    fn start() -> Self {
        Self::waiting("sleep")
    }

    /// Starts a host with two guests for each doorbell mode, when the iterator reaches the mode: as messages, and
    /// mapped.
    fn start_each() -> impl Iterator<Item = Self> {
        ["sleep", "mapped"].into_iter().map(Self::waiting)
    }

    fn waiting(wait: &str) -> Self {
        Self::with(&format!("wait = \"{wait}\""))
    }

    /// Starts a host with two guests of the family AVF, each on a worker of its own.
    fn on_workers() -> Self {
        Self::with("family = \"avf\"\nwait = \"mapped\"\nworkers = 2\ndispatcher = \"spread\"")
    }

    /// Starts a host with two guests on a port with these settings.
    fn with(settings: &str) -> Self {
        let folder = tempdir().unwrap();
        let config = folder.path().join("softiov.toml");
        std::fs::write(&config, format!("[[port]]\n{settings}\n")).unwrap();
        let serve = ServeProcess::start(&folder, &["--config", config.to_str().unwrap()]);
        let guests = [0, 1].map(|vf| attach(serve.folder(), vf));
        let world = Self { serve, guests, _folder: folder };
        world.exchange();
        world
    }

    fn exchange(&self) {
        let [a, b] = &self.guests;
        for (from, to) in [(a, 1), (b, 0)] {
            assert!(from.send_tcp(address(to), 1 << 20).is_ok());
        }
    }

    /// Waits until exactly one host serves, and returns its pid.
    fn host(&self) -> Pid {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = softiov(self.serve.folder(), &["vf", "list"]);
            match self.serve.hosts()[..] {
                [host] if said.status == Some(0) => return host,
                _ => assert!(Instant::now() < deadline, "no host: {}", self.serve.log()),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the number of resets of all VFs together, as the status counts them.
    fn resets(&self) -> u64 {
        let said = softiov(self.serve.folder(), &["vf", "list", "--json"]);
        let count = |text: &str| text.trim().trim_end_matches(',').parse::<u64>().unwrap();
        let resets = said.out.lines().filter_map(|line| line.trim().strip_prefix("\"resets\":"));
        resets.map(count).sum()
    }

    /// Waits until the host's counters stay the same: frames that guests sent may still be pending on a busy machine.
    fn settle(&self) {
        let told = || softiov(self.serve.folder(), &["vf", "list", "--json"]).out;
        let mut before = told();
        eventually("nothing moves", || {
            std::thread::sleep(REST);
            let now = told();
            std::mem::replace(&mut before, now.clone()) == now
        });
    }

    /// Kills the serving host after a pause of `rest`, and waits for its end.
    fn kill_host_after(&self, rest: Duration) {
        let host = self.host();
        std::thread::sleep(rest);
        kill_process(host, Signal::KILL).unwrap();
        let deadline = Instant::now() + PATIENCE;
        while self.serve.hosts().contains(&host) {
            assert!(Instant::now() < deadline, "the host still runs");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn killed_idle_host_is_replaced_without_a_vf_reset() {
    for world in EmbeddedTestbed::start_each() {
        let before = world.resets();
        for _ in 0..5 {
            // All state is stored by then.
            world.settle();
            world.kill_host_after(REST);
            world.exchange();
            assert_eq!(world.resets(), before, "a driver was reset: {}", world.serve.log());
        }
    }
}

#[test]
fn guest_connections_survive_a_killed_host_under_traffic() {
    for world in EmbeddedTestbed::start_each().chain(iter::once_with(EmbeddedTestbed::on_workers)) {
        let [a, _] = &world.guests;
        for round in 0..5 {
            std::thread::scope(|scope| {
                let flow = scope.spawn(|| a.send_tcp(address(1), LONG));
                std::thread::sleep(Duration::from_millis(50 + 37 * round));
                world.kill_host_after(Duration::ZERO);
                let flow = flow.join().unwrap();
                assert!(flow.is_ok(), "{flow:?}\n{}", world.serve.log());
            });
        }
        world.exchange();
    }
}

#[test]
fn host_hand_over_under_traffic_resets_no_vf() {
    for world in EmbeddedTestbed::start_each().chain(iter::once_with(EmbeddedTestbed::on_workers)) {
        let [a, _] = &world.guests;
        let resets = world.resets();
        for _ in 0..5 {
            std::thread::scope(|scope| {
                let flow = scope.spawn(|| a.send_tcp(address(1), LONG));
                std::thread::sleep(Duration::from_millis(50));
                let before = world.host();
                let said = softiov(world.serve.folder(), &["upgrade"]);
                assert_eq!(said.status, Some(0), "{}\n{}", said.err, world.serve.log());
                assert!(said.out.contains("has taken over"), "{}", said.out);
                assert_ne!(world.host(), before);
                assert!(flow.join().unwrap().is_ok());
            });
        }
        world.exchange();
        assert_eq!(world.resets(), resets, "a driver was reset");
    }
}

#[test]
fn sigusr2_restarts_the_host_without_a_vf_reset() {
    let world = EmbeddedTestbed::start();
    let resets = world.resets();
    for _ in 0..3 {
        let before = world.host();
        world.serve.signal(Signal::USR2);
        let deadline = Instant::now() + PATIENCE;
        while world.serve.hosts().contains(&before) {
            assert!(Instant::now() < deadline, "the host stays: {}", world.serve.log());
            std::thread::sleep(Duration::from_millis(1));
        }
        world.exchange();
    }
    assert_eq!(world.resets(), resets, "a driver was reset");
}

#[test]
fn upgrade_to_a_broken_program_keeps_the_running_host() {
    let folder = tempdir().unwrap();
    let program = folder.path().join("softiov");
    copy_program(&program);
    let serve = ServeProcess::spawn(&folder, std::process::Command::new(&program).arg("serve"));
    let guests = [0, 1].map(|vf| attach(serve.folder(), vf));
    let world = EmbeddedTestbed { serve, guests, _folder: folder };
    let host = world.host();
    for (script, why) in
        [("exit 1", "ended at once"), ("exec sleep 60", "did not report within"), ("", "ended")]
    {
        std::fs::remove_file(&program).unwrap();
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let said = softiov(world.serve.folder(), &["upgrade"]);
        assert_eq!(said.status, Some(1), "{script}: {}", said.out);
        assert!(said.err.contains(why), "{script}: {}", said.err);
        world.exchange();
        assert_eq!(world.host(), host, "the same process serves");
    }
}

/// The next host names the ports that the keeper holds descriptors of and that its configuration lacks.
#[test]
fn refused_upgrade_leaves_no_new_port_with_the_keeper() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.toml");
    std::fs::write(&file, "[[port]]\n").unwrap();
    let serve = ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
    let world =
        EmbeddedTestbed { guests: [0, 1].map(|vf| attach(serve.folder(), vf)), serve, _folder: folder };
    let added = "[[port]]\n[[port]]\n[[port]]\nuplink = { replay = \"/missing.pcap\" }\n";
    std::fs::write(&file, added).unwrap();
    let said = softiov(world.serve.folder(), &["upgrade"]);
    assert_eq!(said.status, Some(1), "{}", said.out);
    world.serve.wait_logged("/missing.pcap");
    std::fs::write(&file, "[[port]]\n").unwrap();
    world.kill_host_after(REST);
    world.exchange();
    assert!(!world.serve.log().contains("lacks ports of the previous"), "{}", world.serve.log());
}

#[test]
fn without_a_keeper_an_upgrade_is_refused_with_the_remedy() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &["--no-keeper"]);
    let said = softiov(serve.folder(), &["upgrade"]);
    assert_eq!(said.status, Some(1));
    assert!(said.err.contains("start the host without --no-keeper"), "{}", said.err);
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0));
}

#[test]
fn vf_policy_survives_a_killed_and_an_upgraded_host() {
    let world = EmbeddedTestbed::start();
    let set = |arguments: &[&str]| {
        let said = softiov(world.serve.folder(), &[&["vf", "set", "pf0vf2"], arguments].concat());
        assert_eq!(said.status, Some(0), "{}", said.err);
    };
    set(&["--vlan", "100", "--qos", "3"]);
    set(&["--max-tx-rate", "50", "--volatile"]);
    set(&["--quarantine", "on"]);
    let shown = || softiov(world.serve.folder(), &["vf", "show", "pf0vf2"]).out;
    let wanted = ["vlan 100", "qos 3", "max_tx_rate 50"];
    for round in 0..3 {
        let shown = shown();
        assert!(wanted.iter().all(|wanted| shown.contains(wanted)), "round {round}: {shown}");
        assert!(shown.contains("quarantine"), "round {round}: {shown}");
        match round {
            0 => world.kill_host_after(Duration::ZERO),
            1 => world.kill_host_after(Duration::from_millis(500)),
            _ => assert_eq!(softiov(world.serve.folder(), &["upgrade"]).status, Some(0)),
        }
        world.host();
    }
}

#[test]
fn previous_host_process_is_reaped_after_a_hand_over() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let before = serve.hosts();
    assert_eq!(softiov(serve.folder(), &["upgrade"]).status, Some(0), "{}", serve.log());
    let deadline = Instant::now() + PATIENCE;
    while serve.hosts().len() > 1 {
        assert!(Instant::now() < deadline, "{before:?} is still a child of the keeper: {:?}", serve.hosts());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_ne!(serve.hosts(), before);
}

#[test]
fn host_hand_over_resets_the_keepers_crash_count() {
    let world = EmbeddedTestbed::start();
    for _ in 0..2 {
        (0..3).for_each(|_| world.kill_host_after(Duration::ZERO));
        // The last host is running.
        let before = world.host();
        let said = softiov(world.serve.folder(), &["upgrade"]);
        assert_eq!(said.status, Some(0), "{}\n{}", said.err, world.serve.log());
        assert_ne!(world.host(), before);
    }
    assert!(!world.serve.log().contains("the next start is in"), "{}", world.serve.log());
    world.exchange();
}
