//! Tests of the rounds of a port whose clock the test moves by hand. The test moves the clock past deadlines instead
//! of sleeping. Blocking calls run on other threads, so a round that needs one is repeated, at the same time, until
//! the call has ended.

mod deaths;

use super::*;
use crate::config::{HostConfig, PortConfig};
use crate::confine::ThreadSandboxes;
use crate::file_calls::FileCalls;
use crate::flight::files::FlightRecordingSender;
use crate::port::{
    ParentAddressRegistry, PortHandle, PortThreadCommand, PreparedPort, SharedPortResources, WireRegistry,
    XdpPrograms,
};
use crate::vault::FileDescriptorStore;
use host::socket::StreamSocket;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use tempfile::TempDir;

mod floods;
mod held_addresses;
mod interrupts;
mod pauses;
mod queued;
mod requests;
mod shares;
mod simulation;
mod stations;

/// Clock that stands still until the test moves it.
#[derive(Debug, Default)]
struct ManualClock {
    now: Cell<Time>,
    /// Time by which each reading of the test's clock moves the clock.
    tick: Cell<Duration>,
    readings: Cell<usize>,
}

impl TimeSource for ManualClock {
    fn now(&self) -> Time {
        self.readings.set(self.readings.get() + 1);
        self.now.set(self.now.get() + self.tick.get());
        self.now.get()
    }
}

/// Port of two VFs without an uplink, with the resources that it needs. The test runs the rounds of the port's loop.
struct PortFixture {
    port: OpenPort,
    inbox: PortCommandInbox,
    handle: PortHandle,
    clock: ManualClock,
    vault: FileDescriptorStore,
    /// Threads and resources that all ports of the host share.
    host: (ThreadSandboxes, SharedPortResources),
    config: PortConfig,
    _folder: TempDir,
}

impl PortFixture {
    fn open() -> Self {
        Self::open_with("[[port]]\nvfs = 2\n")
    }

    fn open_with(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = HostConfig::parse(config).unwrap();
        let config = HostConfig::check(file, folder.path()).unwrap();
        let threads = ThreadSandboxes::prepare(&config).unwrap();
        let common = SharedPortResources {
            wires: WireRegistry::default(),
            parents: ParentAddressRegistry::default(),
            programs: XdpPrograms::default(),
            files: FileCalls::default(),
            flights: FlightRecordingSender::default(),
            clock: Arc::new(HostClock),
        };
        let (vault, (inbox, handle)) = (FileDescriptorStore::default(), PortCommandInbox::new().unwrap());
        let port = PreparedPort::open(&config.ports[0], &vault, &inbox, &threads, &common).unwrap();
        let port = port.inherit(&config.ports[0]);
        let clock = ManualClock::default();
        clock.now.set(HostClock.now());
        let (host, config) = ((threads, common), config.ports[0].clone());
        let mut world = Self { port, inbox, handle, clock, vault, host, config, _folder: folder };
        // `OpenPort::run` begins with this save too.
        world.port.succession.note_software(world.port.engine.card_mut());
        world.round();
        world
    }

    /// Replaces the port by its successor, as in the host's successor process. The old port ends without a pause, as in
    /// a crash.
    fn succeed(&mut self) {
        let (threads, common) = &self.host;
        let successor = PreparedPort::open(&self.config, &self.vault, &self.inbox, threads, common).unwrap();
        self.port = successor.inherit(&self.config);
        self.clock.now.set(HostClock.now());
    }

    /// Polls the kernel, and runs one round of the port's loop. Returns the time that the port would sleep.
    fn round(&mut self) -> Option<Duration> {
        self.port.wait(&self.inbox, Some(Duration::ZERO), &self.clock).unwrap();
        self.port.carry_out_commands(&self.inbox, &self.clock);
        self.port.round(&self.clock)
    }

    /// Moves the clock by `time`, and runs one round of the port's loop. Returns the time that the port would sleep.
    fn round_after(&mut self, time: Duration) -> Option<Duration> {
        self.clock.now.set(self.clock.now.get() + time);
        self.round()
    }

    /// Runs rounds of the port's loop until the worker threads have made `done` true. The clock stands still.
    fn round_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..5_000 {
            self.round();
            if done(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("the condition was not met within 5,000 rounds");
    }

    /// Connects a client to VF 0, and waits until the client is saved for the successor process.
    fn connect(&mut self) -> UnixStream {
        let client = UnixStream::connect(&self.config.vfs[0].socket).unwrap();
        client.set_nonblocking(true).unwrap();
        self.round_until(|world| world.slot().own.successor.progress().stream != 0);
        client
    }

    fn slot(&self) -> &crate::port::clients::slot::OfferedFunction {
        &self.port.clients.slots()[0]
    }

    fn port_time(&self) -> Time {
        self.clock.now.get()
    }

    fn is_connected(&self) -> bool {
        self.slot().connection().is_some()
    }
}

/// Returns a vfio-user message with this id, command and body.
fn message(id: u16, command: u16, body: &[u8]) -> Vec<u8> {
    let size = 16 + body.len() as u32;
    let head = [&id.to_le_bytes()[..], &command.to_le_bytes(), &size.to_le_bytes(), &[0; 8]].concat();
    [&head[..], body].concat()
}

fn is_at_end(client: &mut UnixStream) -> bool {
    match client.read(&mut [0; 64]) {
        Ok(0) => true,
        Ok(_) => panic!("the port sent this client data"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "connection reset");
            false
        }
    }
}

#[test]
fn idle_port_sleeps_without_a_deadline() {
    let mut world = PortFixture::open();
    assert_eq!(world.round(), None);
    assert_eq!(world.round_after(Duration::from_secs(3600)), None);
}

#[test]
fn offences_of_vfs_are_checked_once_a_second() {
    let mut world = PortFixture::open();
    let judged = world.port.clients.watched();
    world.round_after(Duration::from_millis(999));
    assert_eq!(world.port.clients.watched(), judged);
    world.round_after(Duration::from_millis(1));
    assert_eq!(world.port.clients.watched(), world.clock.now.get());
}

#[test]
fn client_that_pauses_in_a_message_is_disconnected_after_30_s() {
    let mut world = PortFixture::open();
    let mut client = world.connect();
    client.write_all(&message(1, 1, &[0; 4])[..9]).unwrap();
    world
        .round_until(|world| world.slot().connection().is_some_and(|c| c.stall(world.port_time()).is_some()));
    assert_eq!(world.round(), Some(Duration::from_secs(30)), "the port wakes at the client's deadline");
    assert_eq!(world.round_after(Duration::from_secs(29)), Some(Duration::from_secs(1)));
    client.write_all(&[0]).unwrap();
    assert_eq!(world.round(), Some(Duration::from_secs(30)), "one more byte restarts the timeout");
    world.round_after(Duration::from_millis(29_999));
    assert!(world.is_connected() && !is_at_end(&mut client));
    world.round_after(Duration::from_millis(1));
    assert!(!world.is_connected() && is_at_end(&mut client));
}

#[test]
fn stopped_port_disconnects_silent_clients_in_bounded_time() {
    let mut world = PortFixture::open();
    let mut client = world.connect();
    assert!(world.handle.send(PortThreadCommand::Stop));
    assert_eq!(
        world.round(),
        Some(Duration::from_millis(50)),
        "the port wakes to disconnect the silent client"
    );
    world.round_after(Duration::from_millis(49));
    assert!(world.is_connected() && !is_at_end(&mut client));
    let drain = world.round_after(Duration::from_millis(1));
    assert!(!world.is_connected() && is_at_end(&mut client));
    assert_eq!(drain, Some(Duration::from_millis(10)), "the port drains the socket");
    world.round_after(Duration::from_millis(199));
    assert!(!world.port.has_ended());
    world.round_after(Duration::from_millis(1));
    assert!(world.port.has_ended(), "the port does not wait for a client that keeps its end open");
}

#[test]
fn port_serves_a_client_for_at_most_one_time_slice() {
    let mut world = PortFixture::open();
    let mut client = world.connect();
    let version = message(0, 1, b"\0\0\x01\0{}\0");
    let unknown = (1..4).flat_map(|id| message(id, 99, &[]));
    let messages: Vec<u8> = version.into_iter().chain(unknown).collect();
    client.write_all(&messages).unwrap();
    // A turn is 20 us, and the clock is read before each message.
    world.clock.tick.set(Duration::from_micros(6));
    let handled = |world: &PortFixture| world.slot().connection().map_or(0, |c| c.counters().messages);
    world.round();
    let first = handled(&world);
    assert!((1..4).contains(&first), "{first} messages handled in a time slice");
    world.round();
    assert!(handled(&world) > first, "the next round continues");
}

#[test]
fn port_that_never_sleeps_measures_its_load() {
    let mut world = PortFixture::open_with("[[port]]\nfamily = \"virtio\"\nvfs = 1\nworkers = 2\n");
    let mut client = UnixStream::connect(&world.config.vfs[0].socket).unwrap();
    world.round_until(PortFixture::is_connected);
    world.round_until(|world| !world.port.clients.have_more());
    assert!(world.port.assign(world.port_time()));
    world.port.divide().unwrap();
    // A vhost-user message without payload that asks for the features (vhost-user, "Front-end message types").
    let question = [1_u32, 1, 0].map(u32::to_le_bytes).concat();
    client.write_all(&question.repeat(64)).unwrap();
    world.port.due = Some(world.port_time());
    // A turn of a client is 20 us, so its other messages wait for later rounds.
    world.clock.tick.set(Duration::from_millis(2));
    assert_eq!((world.round(), world.port.clients.have_more()), (Some(Duration::ZERO), true));
    assert!(world.port.due.is_none_or(|due| due > world.port_time()), "the old deadline has passed");
    let end = world.port_time() + Duration::from_millis(10);
    assert!(world.port.assign(end));
    world.port.divide().unwrap();
    let workers = world.port.engine.card_mut().worker_status(1);
    assert_ne!(workers[0].busy_permille, 0);
    assert!(workers[0].busy_ns >= 2_000_000, "{workers:?}");
}

#[test]
fn failure_to_move_kicks_ends_their_client_alone() {
    let mut world = PortFixture::open_with("[[port]]\nfamily = \"virtio\"\nvfs = 2\nworkers = 2\n");
    let mut clients = [0, 1].map(|vf: usize| {
        let client = UnixStream::connect(&world.config.vfs[vf].socket).unwrap();
        client.set_nonblocking(true).unwrap();
        client
    });
    let is_connected = |world: &PortFixture, vf: usize| world.port.clients.slots()[vf].connection().is_some();
    world.round_until(|world| is_connected(world, 0) && is_connected(world, 1));
    world.port.clients.fail_kicks(1);
    assert!(!world.port.assign(world.port_time()), "the card is divided after the next round");
    assert_eq!([is_connected(&world, 0), is_connected(&world, 1)], [true, false]);
    world.round_after(Duration::from_secs(1));
    assert!(!is_at_end(&mut clients[0]) && is_at_end(&mut clients[1]));
}

#[test]
fn iteration_of_an_idle_port_reads_the_clock_at_most_4_times() {
    let mut world = PortFixture::open();
    world.clock.readings.set(0);
    world.port.round(&world.clock);
    assert!(world.clock.readings.get() <= 4, "{} readings", world.clock.readings.get());
}

#[test]
fn new_card_notifies_vf_drivers_at_doubling_intervals() {
    let mut world = PortFixture::open();
    let mut client = world.connect();
    world.succeed();
    assert!(world.is_connected(), "the successor resumes the client");
    let mut wait = Duration::from_millis(5);
    let mut sleep = world.round().filter(|sleep| !sleep.is_zero()).or_else(|| world.round());
    // The wait doubles up to 3 s (`LAST_INTERVAL`).
    while 2 * wait <= Duration::from_secs(3) {
        assert_eq!(sleep, Some(wait));
        sleep = world.round_after(wait);
        wait *= 2;
    }
    assert_eq!(sleep, None, "the calls end");
    assert!(world.is_connected() && !is_at_end(&mut client));
}

#[test]
fn vf_driver_is_not_notified_after_an_idle_ports_hand_over() {
    let mut world = PortFixture::open();
    let mut client = world.connect();
    let now = world.port_time();
    assert!(world.port.note_all(now));
    world.succeed();
    world.round_until(|world| !world.port.clients.have_more());
    assert_eq!(world.round(), None);
    assert!(world.is_connected() && !is_at_end(&mut client));
}

#[test]
fn withdrawn_vf_releases_descriptors_of_pending_requests() {
    let mut world = PortFixture::open();
    let kept =
        |vault: &FileDescriptorStore| (1..64).filter(|n| vault.copy(&format!("pf0.#{n}")).is_some()).count();
    let client = UnixStream::connect(&world.config.vfs[1].socket).unwrap();
    let client = StreamSocket::adopt(client.into()).unwrap();
    client.send(&message(1, 1, b"\0\0\x01\0{}\0"), &[]).unwrap();
    world.round_until(|world| world.port.clients.slots()[1].own.successor.progress().agreed.is_some());
    let before = kept(&world.vault);
    let memory = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&memory, 4096).unwrap();
    let map = [32_u32, 3, 0, 0, 0, 0, 4096, 0].map(u32::to_le_bytes).concat();
    client.send(&message(2, 2, &map), &[memory.as_fd()]).unwrap();
    world.round();
    while kept(&world.vault) == before {
        std::thread::sleep(Duration::from_millis(1));
    }
    world.port.withdraw(1, world.clock.now.get());
    world.round_until(|world| kept(&world.vault) == 0);
}

#[test]
fn port_reset_completes_without_advancing_the_clock() {
    let mut world = PortFixture::open();
    let (answer, reset) = std::sync::mpsc::channel();
    assert!(world.handle.send(PortThreadCommand::Reset(answer)));
    // The PF driver waits for 21 ms in a reset. The reset must finish although the clock stands still.
    world.round();
    assert!(reset.recv().unwrap().is_ok());
    world.round_after(Duration::from_secs(1));
    assert_eq!(world.round(), None, "the card has no deadline left");
}
