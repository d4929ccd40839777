//! Tests embedded guests that map the card's doorbell pages, on the live host. The crates `daemon` and `nic` test other
//! clients' pages and a hostile guest's stores; `bench` measures the cost of waiting.

use daemon::RunningHost;
use daemon::config::HostConfig;
use daemon::control::client::ask;
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use daemon::control::status::VfStatus;
use embedded_guest::{EmbeddedGuest, EmbeddedGuestConfig};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(240);

/// Running host with a port of two VFs, and guests on the first VFs. The guests are dropped first.
struct MappedDoorbellHost {
    guests: Vec<EmbeddedGuest>,
    host: RunningHost,
    _folder: TempDir,
}

impl MappedDoorbellHost {
    fn new(wait: &str, guests: u8) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("[[port]]\nvfs = 2\nwait = \"{wait}\"\n");
        let config = HostConfig::check(HostConfig::parse(&text).unwrap(), folder.path()).unwrap();
        let host = RunningHost::start(config).unwrap();
        let attach = |vf: u8| {
            let name = format!("pf0vf{vf}");
            let socket = folder.path().join(&name).join("vf.sock");
            let ip = Ipv4Addr::new(10, 82, 0, vf + 1);
            let guest = EmbeddedGuest::start(EmbeddedGuestConfig { socket, name, ip }).unwrap();
            assert!(guest.wait_link(PATIENCE), "the link of {} did not come up in time", guest.name());
            guest
        };
        Self { guests: (0..guests).map(attach).collect(), host, _folder: folder }
    }

    fn vf(&self, vf: u8) -> VfStatus {
        match ask(self.host.control_socket(), ControlRequest::VfShow { vf: format!("pf0vf{vf}") }).unwrap() {
            ControlAnswer::Vf(status) => *status,
            _ => panic!("expected the status of one VF"),
        }
    }

    /// Returns the number of register accesses that reached the host, and the number of packets, of both VFs together.
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

#[test]
fn mapped_doorbells_avoid_nearly_all_vfio_user_messages() {
    let mut rates = Vec::new();
    for wait in ["sleep", "mapped"] {
        let world = MappedDoorbellHost::new(wait, 2);
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
fn next_guest_of_a_vf_gets_mapped_pages_without_old_data() {
    let mut world = MappedDoorbellHost::new("mapped", 2);
    for _ in 0..3 {
        drop(world.guests.pop());
        let socket = world.vf(1).socket.clone();
        let config = EmbeddedGuestConfig { socket, name: "pf0vf1".into(), ip: Ipv4Addr::new(10, 82, 0, 2) };
        world.guests.push(EmbeddedGuest::start(config).unwrap());
        assert!(world.guests[1].wait_link(PATIENCE));
        assert!(world.guests[0].send_tcp(world.guests[1].ip(), 1 << 20).unwrap().is_intact());
    }
}

#[test]
fn port_reset_is_visible_in_mapped_registers() {
    let world = MappedDoorbellHost::new("mapped", 2);
    for _ in 0..3 {
        let resets = world.vf(0).mailbox.resets;
        ask(world.host.control_socket(), ControlRequest::PortReset { port: "pf0".into() }).unwrap();
        let began = Instant::now();
        while world.vf(0).mailbox.resets == resets || world.ping().is_none() {
            assert!(began.elapsed() < PATIENCE, "the guests did not exchange a ping in time");
        }
    }
}
