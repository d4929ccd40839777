//! Tests the crash and the upgrade of a host under front ends of virtio VFs in the test's process. After a crash frames are lost
//! or delivered again within the bounds of decision 37 only, and after an upgrade none is.

use crate::process::{PATIENCE, ServeProcess, eventually, softiov};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir};
use vhost_client::{VirtioNet, VirtioNetConfig};
use virtio::VirtioFeatures;
use virtio::net::NetHeader;

/// Number of crashes in a test.
const CRASHES: u32 = 4;
/// Number of frames that the receiver gets between two crashes.
const FRAMES: u32 = 3_001;
/// Maximum number of frames that one crash may repeat, and of those that it may lose (decision 37).
const MOST: u32 = 64;
/// Maximum number of frames on their way. A crash that loses [`MOST`] of them does not stop the sender.
const WINDOW: u32 = 96;
/// Number of descriptors of each ring. The receiver has room for the window, [`MOST`] more frames and [`MOST`] repeated ones.
const DESCRIPTORS: u16 = 256;
/// EtherType for experiments (IEEE 802).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// Host with two guests, of which the first sends numbered frames to the second.
struct NumberedFlow {
    serve: ServeProcess,
    _folder: TempDir,
    sender: VirtioNet,
    receiver: VirtioNet,
    sent: u32,
    /// Numbers of the received frames.
    received: Vec<u32>,
    /// Number after the highest received one.
    expected: u32,
}

impl NumberedFlow {
    fn start(features: VirtioFeatures) -> Self {
        let (serve, _folder) = serve_port(2);
        let [sender, receiver] = [0, 1].map(|vf| attach(&serve, vf, features));
        Self { serve, _folder, sender, receiver, sent: 0, received: Vec::new(), expected: 0 }
    }

    /// Moves frames until the receiver has got all numbers below `end`, or later ones.
    fn run_to(&mut self, end: u32) {
        let deadline = Instant::now() + PATIENCE;
        while self.expected < end {
            assert!(Instant::now() < deadline, "frame {} is missing: {}", self.expected, self.serve.log());
            while self.sent < end.min(self.expected + WINDOW)
                && self.sender.transmit(&frame(self.sent), &NetHeader::default())
            {
                self.sent += 1;
            }
            self.sender.flush();
            self.receive();
        }
    }

    /// Takes the frames that are in the receiver's ring.
    fn receive(&mut self) {
        let Self { receiver, received, expected, .. } = self;
        while receiver.receive_burst(32, |frame| {
            let mut bytes = [0; 128];
            let length = frame.copy_to(&mut bytes).unwrap();
            assert_eq!((length, &bytes[12..14]), (60, &ETHERTYPE[..]));
            let number = u32::from_be_bytes(bytes[14..18].try_into().unwrap());
            received.push(number);
            *expected = (*expected).max(number + 1);
        }) > 0
        {}
        assert_eq!((self.receiver.broken(), self.sender.broken()), (None, None));
    }

    /// Kills the host with frames on their way, before or after the first of them arrives, and has both guests connect to the
    /// next host.
    fn crash(&mut self, has_arrived: bool) {
        let host = running_host(&self.serve);
        for _ in 0..MOST {
            assert!(self.sender.transmit(&frame(self.sent), &NetHeader::default()));
            self.sent += 1;
        }
        self.sender.flush();
        let (before, deadline) = (self.received.len(), Instant::now() + PATIENCE);
        while has_arrived && self.received.len() == before && Instant::now() < deadline {
            self.receive();
        }
        kill_process(host, Signal::KILL).unwrap();
        eventually("the host has ended", || !self.serve.hosts().contains(&host));
        // The receiver first, since a frame for a VF without a guest is dropped.
        for (vf, guest) in [(1, &mut self.receiver), (0, &mut self.sender)] {
            let socket = socket(&self.serve, vf);
            eventually("a guest connects to the next host", || guest.reconnect(&socket).is_ok());
        }
    }

    /// Upgrades the host with frames on their way. Neither guest connects again.
    fn upgrade(&mut self) {
        let host = running_host(&self.serve);
        for _ in 0..MOST {
            assert!(self.sender.transmit(&frame(self.sent), &NetHeader::default()));
            self.sent += 1;
        }
        self.sender.flush();
        // On a busy machine a successor may be too late; then the host resumes, and the upgrade is repeated.
        eventually("the host is replaced", || {
            let said = softiov(self.serve.folder(), &["upgrade"]);
            said.status == Some(0) && !self.serve.hosts().contains(&host)
        });
    }

    /// Checks that each of the `crashes` has lost and repeated at most [`MOST`] frames, and that no frame was overtaken.
    fn check(self, crashes: u32) {
        let (mut repeated, mut turns) = (0, 0);
        let mut seen = vec![false; self.sent as usize];
        for (at, number) in self.received.iter().enumerate() {
            repeated += u32::from(std::mem::replace(&mut seen[*number as usize], true));
            turns += u32::from(at > 0 && self.received[at - 1] >= *number);
        }
        let lost = seen.iter().filter(|seen| !**seen).count();
        let found = format!("{lost} lost, {repeated} repeated, {turns} times back after {crashes} crashes");
        assert!(
            lost <= (crashes * MOST) as usize && repeated <= crashes * MOST && turns <= crashes,
            "{found}"
        );
    }
}

/// Starts a host with a virtio port of `vfs` VFs, and returns it with the folder of its configuration.
fn serve_port(vfs: u8) -> (ServeProcess, TempDir) {
    let folder = tempdir().unwrap();
    let config = folder.path().join("softiov.toml");
    let mut text = format!("[[port]]\nfamily = \"virtio\"\nvfs = {vfs}\n");
    // A VF with an address sends and receives before its guest's first frame.
    for vf in 0..vfs {
        text += &format!("[[port.vf]]\nindex = {vf}\nmac = \"02:00:00:00:00:0{vf}\"\n");
    }
    fs::write(&config, text).unwrap();
    (ServeProcess::start(&folder, &["--config", config.to_str().unwrap()]), folder)
}

fn attach(serve: &ServeProcess, vf: u8, features: VirtioFeatures) -> VirtioNet {
    let config = VirtioNetConfig { features, descriptors: DESCRIPTORS };
    VirtioNet::attach(&socket(serve, vf), &config).unwrap()
}

/// Waits until exactly one host runs, and returns it.
fn running_host(serve: &ServeProcess) -> Pid {
    let mut hosts = Vec::new();
    eventually("one host runs", || {
        hosts = serve.hosts();
        hosts.len() == 1
    });
    hosts[0]
}

fn socket(serve: &ServeProcess, vf: u8) -> PathBuf {
    serve.folder().join(format!("pf0vf{vf}/vf.sock"))
}

/// Returns a frame from VF 0 to VF 1.
fn frame(number: u32) -> [u8; 60] {
    frame_between(0, 1, number)
}

fn frame_between(source: u8, destination: u8, number: u32) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source]);
    frame[12..14].copy_from_slice(&ETHERTYPE);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Kills hosts under a flow between two guests that accept these features.
fn survive_crashes(features: VirtioFeatures) {
    let mut flow = NumberedFlow::start(features);
    for crash in 1..=CRASHES {
        flow.run_to(crash * FRAMES);
        flow.crash(crash % 2 == 0);
    }
    let end = flow.sent + FRAMES;
    flow.run_to(end);
    // Nothing is lost without a crash.
    let last: Vec<_> = flow.received[flow.received.len() - (FRAMES - WINDOW) as usize..].to_vec();
    assert_eq!(last, (end - (FRAMES - WINDOW)..end).collect::<Vec<_>>());
    flow.check(CRASHES);
}

#[test]
fn packed_rings_survive_a_killed_host() {
    survive_crashes(VirtioFeatures::RING_PACKED);
}

#[test]
fn split_rings_survive_a_killed_host() {
    survive_crashes(VirtioFeatures::NONE);
}

/// Upgrades hosts under a flow between two guests that accept these features, and then kills one: the positions that an upgrade
/// has saved are of no use to the host after a crash.
fn survive_upgrades(features: VirtioFeatures) {
    let mut flow = NumberedFlow::start(features);
    let keeper = format!("/proc/{}/fd", flow.serve.keeper());
    let keepers = || fs::read_dir(&keeper).unwrap().count();
    let before = keepers();
    for upgrade in 1..=CRASHES {
        flow.run_to(upgrade * FRAMES);
        flow.upgrade();
    }
    flow.run_to(flow.sent + FRAMES);
    eventually("the keeper has what it had before", || keepers() == before);
    assert_eq!(flow.received, (0..flow.sent).collect::<Vec<_>>(), "each frame arrives once, in order");
    flow.crash(true);
    flow.run_to(flow.sent + FRAMES);
    flow.check(1);
}

#[test]
fn packed_rings_lose_no_frame_in_an_upgrade() {
    survive_upgrades(VirtioFeatures::RING_PACKED);
}

#[test]
fn split_rings_lose_no_frame_in_an_upgrade() {
    survive_upgrades(VirtioFeatures::NONE);
}

/// Waits until the log of a host process has this number of lines about a host that serves, and returns the time.
fn wait_serving(serve: &ServeProcess, hosts: usize) -> Instant {
    let deadline = Instant::now() + PATIENCE;
    while serve.log().matches("the host is serving").count() < hosts {
        assert!(Instant::now() < deadline, "host {hosts} serves: {}", serve.log());
        thread::sleep(Duration::from_micros(500));
    }
    Instant::now()
}

/// Connects the guest of a VF to the next host, and sends frames to its neighbour until all guests receive. `waiting` counts the
/// guests that do not yet. Returns the times at which the guest was connected, and received its first frame.
fn come_back(vf: u8, guest: &mut VirtioNet, socket: &Path, waiting: &AtomicUsize) -> [Instant; 2] {
    let deadline = Instant::now() + PATIENCE;
    while guest.reconnect(socket).is_err() {
        assert!(Instant::now() < deadline, "VF {vf} connects to the next host");
        thread::sleep(Duration::from_millis(1));
    }
    let (connected, mut live) = (Instant::now(), None);
    // A frame for a neighbour whose receive ring is not live is dropped, so the guest sends until its neighbour receives too.
    while live.is_none() || waiting.load(Ordering::Acquire) > 0 {
        assert!(Instant::now() < deadline, "VF {vf} and its neighbour receive a frame");
        guest.transmit(&frame_between(vf, vf ^ 1, 0), &NetHeader::default());
        guest.flush();
        thread::sleep(Duration::from_micros(100));
        if guest.receive_burst(32, |_| ()) > 0 && live.is_none() {
            live = Some(Instant::now());
            waiting.fetch_sub(1, Ordering::AcqRel);
        }
    }
    [connected, live.unwrap()]
}

/// Kills a host with eight guests, whose front ends connect again at once. All of them exchange frames again. Prints the
/// times of the last guest; none is judged, since a busy machine delays each step.
#[test]
fn eight_guests_continue_after_a_killed_host() {
    let (serve, _folder) = serve_port(8);
    let features = |vf| if vf % 4 < 2 { VirtioFeatures::NONE } else { VirtioFeatures::RING_PACKED };
    let mut guests: Vec<_> = (0..8).map(|vf| attach(&serve, vf, features(vf))).collect();
    for crash in 1..=CRASHES {
        let host = running_host(&serve);
        let killed = Instant::now();
        kill_process(host, Signal::KILL).unwrap();
        let waiting = AtomicUsize::new(guests.len());
        let (serving, times) = thread::scope(|scope| {
            let start = |(vf, guest)| {
                let (socket, waiting) = (socket(&serve, vf), &waiting);
                scope.spawn(move || come_back(vf, guest, &socket, waiting))
            };
            let threads: Vec<_> = (0..).zip(&mut guests).map(start).collect();
            let serving = wait_serving(&serve, 1 + crash as usize);
            (serving, threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>())
        });
        let last = |state: usize| times.iter().map(|times| times[state]).max().unwrap() - killed;
        println!(
            "crash {crash}: after {:.1?} the next host serves, after {:.1?} it has all rings, after {:.1?} all guests receive",
            serving - killed,
            last(0),
            last(1),
        );
    }
}
