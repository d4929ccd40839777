//! Guests that have the pages with doorbells as memory, on the live host. What waiting costs there is printed:
//!
//! ```sh
//! cargo test --release -p embedded-guest --test mapped -- --nocapture
//! ```
//!
//! Left out: the pages of another client, and what a hostile guest stores (`daemon`, `nic`).

use daemon::Host;
use daemon::config::Config as HostConfig;
use daemon::control::client::ask;
use daemon::control::protocol::{Answer, Request};
use daemon::control::status::VfStatus;
use embedded_guest::{Config, EmbeddedGuest};
use std::fs;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);
/// Pings, each after a silence.
const PINGS: usize = 200;
const SILENCE: Duration = Duration::from_millis(20);
/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(2);

/// One world at a time: the thread of a port is found by its name, and others would disturb what is measured.
static ALONE: Mutex<()> = Mutex::new(());

/// A host with guests on its first VFs. The guests go first.
struct World {
    guests: Vec<EmbeddedGuest>,
    host: Host,
    _folder: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl World {
    fn new(wait: &str, guests: u8) -> Self {
        // Who panicked with it has left nothing behind.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let text = format!("[[port]]\nvfs = 2\nwait = \"{wait}\"\n");
        let config = HostConfig::check(HostConfig::parse(&text).unwrap(), folder.path()).unwrap();
        let host = Host::start(config).unwrap();
        let attach = |vf: u8| {
            let name = format!("pf0vf{vf}");
            let socket = folder.path().join(&name).join("vf.sock");
            let ip = Ipv4Addr::new(10, 82, 0, vf + 1);
            let guest = EmbeddedGuest::start(Config { socket, name, ip }).unwrap();
            assert!(guest.wait_link(PATIENCE), "the link of {} comes up", guest.name());
            guest
        };
        Self { guests: (0..guests).map(attach).collect(), host, _folder: folder, _alone: alone }
    }

    fn vf(&self, vf: u8) -> VfStatus {
        match ask(self.host.control_socket(), Request::VfShow { vf: format!("pf0vf{vf}") }).unwrap() {
            Answer::Vf(status) => *status,
            _ => panic!("one VF was asked about"),
        }
    }

    /// Accesses that reached the host, and packets, of both VFs.
    fn counts(&self) -> (u64, u64) {
        let counts = [0, 1].map(|vf| {
            let status = self.vf(vf);
            let trapped = status.interventions;
            let accesses = trapped.reads + trapped.posted_writes + trapped.synchronous_writes;
            (accesses, status.rx.packets + status.tx.packets)
        });
        (counts[0].0 + counts[1].0, counts[0].1 + counts[1].1)
    }

    fn ping(&self) -> Option<Duration> {
        self.guests[0].ping(self.guests[1].ip(), 1).unwrap().median()
    }
}

/// Nanoseconds for which the port's thread has run.
fn port_time() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let port =
        |path: &std::path::PathBuf| fs::read_to_string(path.join("comm")).is_ok_and(|name| name == "pf0\n");
    let path = tasks.into_iter().find(port).expect("a thread called pf0");
    let times = fs::read_to_string(path.join("schedstat")).unwrap();
    times.split(' ').next().and_then(|time| time.parse().ok()).unwrap()
}

#[test]
fn traffic_flows_and_next_to_nothing_traps() {
    let mut rates = Vec::new();
    for wait in ["sleep", "mapped"] {
        let world = World::new(wait, 2);
        let (one, other) = (&world.guests[0], &world.guests[1]);
        let (trapped, packets) = world.counts();
        assert_eq!(one.ping(other.ip(), 50).unwrap().received(), 50);
        let flows = std::thread::scope(|scope| {
            let there = scope.spawn(|| one.send_tcp(other.ip(), 16 << 20).unwrap());
            let back = scope.spawn(|| other.send_tcp(one.ip(), 16 << 20).unwrap());
            [there.join().unwrap(), back.join().unwrap()]
        });
        assert!(flows.iter().all(|flow| flow.is_intact()), "{flows:?}");
        let (trapped_then, packets_then) = world.counts();
        let rate = (trapped_then - trapped) as f64 * 1000.0 / (packets_then - packets) as f64;
        println!("{wait}: {rate:.1} trapped accesses per 1,000 packets");
        rates.push(rate);
    }
    assert!(rates[1] < 5.0 && rates[1] < rates[0], "{rates:?}");
}

#[test]
fn a_client_finds_nothing_of_the_last_ones_pages() {
    let mut world = World::new("mapped", 2);
    for _ in 0..3 {
        drop(world.guests.pop());
        let socket = world.vf(1).socket.clone();
        let config = Config { socket, name: "pf0vf1".into(), ip: Ipv4Addr::new(10, 82, 0, 2) };
        world.guests.push(EmbeddedGuest::start(config).unwrap());
        assert!(world.guests[1].wait_link(PATIENCE));
        assert!(world.guests[0].send_tcp(world.guests[1].ip(), 1 << 20).unwrap().is_intact());
    }
}

#[test]
fn a_reset_of_the_port_is_seen_in_the_pages() {
    let world = World::new("mapped", 2);
    for _ in 0..3 {
        let resets = world.vf(0).mailbox.resets;
        ask(world.host.control_socket(), Request::PortReset { port: "pf0".into() }).unwrap();
        let began = Instant::now();
        while world.vf(0).mailbox.resets == resets || world.ping().is_none() {
            assert!(began.elapsed() < PATIENCE, "both come back");
        }
    }
}

#[test]
fn waiting_costs_what_the_guide_says() {
    for (wait, guests) in [("sleep", 0), ("sleep", 2), ("mapped", 0), ("mapped", 2), ("busy", 2)] {
        let world = World::new(wait, guests);
        std::thread::sleep(Duration::from_millis(200));
        let (began, before) = (Instant::now(), port_time());
        std::thread::sleep(IDLE);
        let share = (port_time() - before) as f64 / began.elapsed().as_nanos() as f64;
        print!("{wait}, {guests} guests: {:.2} % of a processor while idle", share * 100.0);
        if guests == 2 {
            world.ping().expect("an answer");
            let mut times: Vec<_> = (0..PINGS)
                .map(|_| {
                    std::thread::sleep(SILENCE);
                    world.ping().expect("an answer")
                })
                .collect();
            times.sort_unstable();
            print!(
                ", ping after silence {:?} (median), {:?} (99 %)",
                times[PINGS / 2],
                times[PINGS * 99 / 100]
            );
        }
        println!();
    }
}
