//! Tests of crashes while a port handles a request: the successor process sends the request's one reply. Tests kill the
//! port before and after each save of the client's state, and while it sends a reply.

use super::*;
use crate::port::clients::journal::{ClientMessageProgress, SavedClient, SavedDmaWindow, SavedEventfd};
use crate::port::clients::keeper::FdSaver;
use crate::port::clients::successor::ClientStateSaver;
use crate::port::engine::family::PortCard;
use host::eventfd::EventFd;
use host::memory::FileIdentity;
use host::socket::{ReplyLog, SocketSendResult};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vfio_user::wire::Command;

/// VFIO region number of a VF's MSI-X table.
const TABLE: u32 = 3;
/// VFIO region number of a VF's configuration space.
const CONFIG: u32 = 7;
const MEMORY: u64 = 1 << 20;
const NEVER: usize = usize::MAX;

/// Saver of a client's state that makes the port crash before or after a chosen save.
#[derive(Debug)]
struct CrashingStateSaver {
    inner: Box<dyn ClientStateSaver>,
    /// Number of crash moments to pass before the port crashes. Each save has two, one before and one after it.
    left: Arc<AtomicUsize>,
}

impl CrashingStateSaver {
    /// Passes a crash moment, at which the port crashes if no moments are left.
    fn pass_moment(&self) {
        match self.left.load(Ordering::Relaxed) {
            NEVER => {}
            0 => resume_unwind(Box::new("crash")),
            more => self.left.store(more - 1, Ordering::Relaxed),
        }
    }
}

impl ClientStateSaver for CrashingStateSaver {
    fn progress(&self) -> ClientMessageProgress {
        self.inner.progress()
    }
    fn is_touched(&self) -> bool {
        self.inner.is_touched()
    }
    fn step(&mut self, progress: ClientMessageProgress) {
        self.pass_moment();
        self.inner.step(progress);
        self.pass_moment();
    }
    fn begin(&mut self) -> [u64; 3] {
        self.inner.begin()
    }
    fn arrived(&mut self) {
        self.inner.arrived();
    }
    fn end(&mut self) {
        self.inner.end();
    }
    fn keeper(&self, count: usize) -> FdSaver {
        self.inner.keeper(count)
    }
    fn mapped(&mut self, window: &SavedDmaWindow, identity: Option<FileIdentity>) {
        self.inner.mapped(window, identity);
    }
    fn mapped_again(&mut self, window: &SavedDmaWindow, identity: FileIdentity) {
        self.inner.mapped_again(window, identity);
    }
    fn unmapped(&mut self, iova: u64, size: u64) {
        self.inner.unmapped(iova, size);
    }
    fn unmapped_all(&mut self) {
        self.inner.unmapped_all();
    }
    fn eventfd(&mut self, irq: SavedEventfd) {
        self.inner.eventfd(irq);
    }
    fn partial_kept(&mut self, numbers: Vec<u64>) {
        self.inner.partial_kept(numbers);
    }
    fn partial_fds(&self) -> usize {
        self.inner.partial_fds()
    }
    fn take_partial_fds(&mut self) -> Vec<u64> {
        self.inner.take_partial_fds()
    }
    fn release_held(&mut self) {
        self.inner.release_held();
    }
    fn note_configuration(&self, card: &mut dyn PortCard) {
        self.inner.note_configuration(card);
    }
    fn noted(&self) -> SavedClient {
        self.inner.noted()
    }
    fn kept(&self, number: u64) -> Option<OwnedFd> {
        self.inner.kept(number)
    }
    fn kept_pages(&self) -> Option<OwnedFd> {
        self.inner.kept_pages()
    }
    fn held_fds(&self, other: BorrowedFd<'_>) -> std::io::Result<Option<Vec<OwnedFd>>> {
        self.inner.held_fds(other)
    }
    fn needed(&self) -> Vec<u64> {
        self.inner.needed()
    }
}

/// Port with a client on its last VF, which the test can make crash while it handles the client's request.
struct CrashingPortFixture {
    world: PortFixture,
    left: Arc<AtomicUsize>,
    client: UnixStream,
    memory: OwnedFd,
    eventfd: EventFd,
    /// Bytes that the client has received of its next reply.
    received: Vec<u8>,
}

impl CrashingPortFixture {
    /// Opens the port, and connects a client that has negotiated the version.
    fn open() -> Self {
        let mut world = PortFixture::open();
        let left = Arc::new(AtomicUsize::new(NEVER));
        let OpenPort { clients, engine, succession, .. } = &mut world.port;
        let mut slot = clients.remove_last(engine, world.clock.now.get()).unwrap();
        let worker = engine.reach(slot.function).worker().clone();
        let inner = succession.of_client(slot.function, worker);
        slot.own.successor = Box::new(CrashingStateSaver { inner, left: Arc::clone(&left) });
        clients.add(slot).unwrap();
        let client = UnixStream::connect(&world.config.vfs[1].socket).unwrap();
        client.set_nonblocking(true).unwrap();
        let memory = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, MEMORY).unwrap();
        let eventfd = EventFd::new().unwrap();
        let mut scene = Self { world, left, client, memory, eventfd, received: Vec::new() };
        scene.ask(1, Command::Version, b"\0\0\x01\0{}\0");
        scene
    }

    fn progress(&self) -> ClientMessageProgress {
        self.world.port.clients.slots()[1].own.successor.progress()
    }

    fn send(&self, id: u16, command: Command, body: &[u8]) {
        let fds = match command {
            Command::DmaMap => vec![self.memory.as_fd()],
            Command::DeviceSetIrqs => vec![self.eventfd.as_fd()],
            _ => Vec::new(),
        };
        let copy = StreamSocket::adopt(OwnedFd::from(self.client.try_clone().unwrap())).unwrap();
        copy.send(&message(id, command as u16, body), &fds).unwrap();
    }

    /// Runs the port until the client has its next reply, and returns the reply's id and body; or `None` if the port
    /// crashes before.
    fn reply(&mut self) -> Option<(u16, Vec<u8>)> {
        for _ in 0..5_000 {
            catch_unwind(AssertUnwindSafe(|| self.world.round())).ok()?;
            let mut buffer = [0; 8192];
            if let Ok(count) = self.client.read(&mut buffer) {
                assert!(count > 0, "the client was disconnected");
                self.received.extend_from_slice(&buffer[..count]);
            }
            let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|n| self.received[at + n]));
            if self.received.len() >= 16 && self.received.len() >= word(4) as usize {
                let (id, size, error) = (word(0) as u16, word(4) as usize, word(12));
                assert_eq!(error, 0, "request {id} was refused");
                let body = self.received[16..size].to_vec();
                self.received.drain(..size);
                return Some((id, body));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        panic!("the port sends no reply");
    }

    /// Sends a request as the client, and returns the body of the reply.
    fn ask(&mut self, id: u16, command: Command, body: &[u8]) -> Vec<u8> {
        self.send(id, command, body);
        let (answered, body) = self.reply().expect("the port has not crashed");
        assert_eq!(answered, id);
        body
    }

    /// Sends a request whose reply fills a page of the reply file up to 6 bytes, so that the next reply begins on
    /// another page.
    fn fill_page(&mut self) {
        let after = 16 + 16;
        let used = self.progress().extent.end % 4096;
        let count = (4090 - after - used) as u32;
        assert_eq!(self.ask(2, Command::RegionRead, &read(count)).len() as u32, 16 + count);
        assert_eq!(self.progress().extent.end % 4096, 4090);
    }

    /// Replaces the crashed port by its successor process. Checks that the successor sends the one reply to the
    /// request, and that the client can continue.
    fn check_successor(&mut self, id: u16, what: &str) {
        self.world.succeed();
        assert_eq!(self.reply().expect("the successor has not crashed").0, id, "{what}");
        assert_eq!(self.ask(id + 1, Command::RegionRead, &read(4)).len(), 20, "{what}");
        assert!(self.received.is_empty(), "{what}: more bytes");
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn read(count: u32) -> Vec<u8> {
    words(&[0, 0, CONFIG, count])
}

fn window(sizes: [u32; 2], rest: &[u64]) -> Vec<u8> {
    let rest = rest.iter().flat_map(|word| word.to_le_bytes());
    words(&sizes).into_iter().chain(rest).collect()
}

/// Handles one request again and again in new ports, each of which crashes one moment later than the previous one.
/// Moments are before and after each save. Returns the number of crashes.
fn kill_at_each_moment(command: Command, body: &[u8], prepare: impl Fn(&mut CrashingPortFixture)) -> usize {
    for moment in 0.. {
        let mut scene = CrashingPortFixture::open();
        prepare(&mut scene);
        scene.left.store(moment, Ordering::Relaxed);
        scene.send(7, command, body);
        let what = format!("{command:?}, death at moment {moment}");
        match scene.reply() {
            Some((id, _)) => {
                assert_eq!(id, 7, "{what}");
                return moment;
            }
            None => scene.check_successor(7, &what),
        }
    }
    unreachable!("a request ends");
}

#[test]
fn client_request_is_answered_once_if_its_port_crashes() {
    let map = window([32, 3], &[0, 0, MEMORY]);
    let requests = [
        (Command::RegionRead, read(4)),
        (Command::RegionWrite, [words(&[0, 0, TABLE, 16]), vec![0x5a; 16]].concat()),
        (Command::DmaMap, map.clone()),
        (Command::DmaUnmap, window([24, 0], &[0, MEMORY])),
        (Command::DeviceSetIrqs, words(&[20, 0x24, 2, 1, 1])),
        (Command::DeviceReset, Vec::new()),
    ];
    for (command, body) in requests {
        for fills in [false, true] {
            let deaths = kill_at_each_moment(command, &body, |scene| {
                if command == Command::DmaUnmap {
                    scene.ask(3, Command::DmaMap, &map);
                }
                if fills {
                    scene.fill_page();
                }
            });
            // Before and after three saves: the request is handled, it is consumed, the reply is sent.
            assert!(deaths >= 6, "{command:?}, next page {fills}: {deaths} deaths");
        }
    }
}

#[test]
fn unmap_of_many_windows_is_answered_once_if_its_port_crashes() {
    let unmap = window([24, 0], &[0, 120 * 4096]);
    let deaths = kill_at_each_moment(Command::DmaUnmap, &unmap, |scene| {
        for page in 0..120 {
            scene.ask(3, Command::DmaMap, &window([32, 3], &[0, page * 4096, 4096]));
        }
    });
    // A turn unmaps some 95 windows, and ends with a save. Then the request ends as for one window.
    assert!(deaths >= 8, "{deaths} deaths");
}

#[test]
fn next_process_sends_the_rest_of_a_partly_sent_reply() {
    for sent in [1, 15, 16, 17, 35, 36] {
        let mut scene = CrashingPortFixture::open();
        scene.fill_page();
        scene.left.store(3, Ordering::Relaxed);
        scene.send(7, Command::RegionRead, &read(4));
        assert!(scene.reply().is_none(), "the port dies before it sends");
        let ClientMessageProgress { stream, replies, extent, held, .. } = scene.progress();
        let kept = |number| scene.world.vault.copy(&format!("pf0.#{number}")).unwrap();
        let (mut log, owed, _) = ReplyLog::adopt(kept(replies), extent, held).unwrap();
        assert_eq!(owed.len(), 36);
        let socket = StreamSocket::adopt(kept(stream)).unwrap();
        assert_eq!(log.send(&socket, sent).unwrap(), SocketSendResult::Bytes(sent));
        scene.check_successor(7, &format!("{sent} bytes sent"));
    }
}

#[test]
fn next_process_answers_requests_sent_before_its_start() {
    let mut scene = CrashingPortFixture::open();
    for id in 7..12 {
        scene.send(id, Command::RegionRead, &read(4));
    }
    scene.world.succeed();
    for id in 7..12 {
        assert_eq!(scene.reply().expect("the successor has not crashed").0, id);
    }
    assert!(scene.received.is_empty(), "no more bytes");
}
