//! Tests the crash of a host under front ends of virtio VFs in the test's process: frames are lost or delivered again within the
//! bounds of decision 37 only.

use crate::process::{PATIENCE, ServeProcess, eventually};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::time::Instant;
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
        let folder = tempdir().unwrap();
        let config = folder.path().join("softiov.toml");
        // A VF with an address sends and receives before its guest's first frame.
        let vfs = [0, 1].map(|vf| format!("[[port.vf]]\nindex = {vf}\nmac = \"02:00:00:00:00:0{vf}\"\n"));
        std::fs::write(&config, format!("[[port]]\nfamily = \"virtio\"\nvfs = 2\n{}", vfs.concat())).unwrap();
        let serve = ServeProcess::start(&folder, &["--config", config.to_str().unwrap()]);
        let config = VirtioNetConfig { features, descriptors: DESCRIPTORS };
        let [sender, receiver] = [0, 1].map(|vf| VirtioNet::attach(&socket(&serve, vf), &config).unwrap());
        Self { serve, _folder: folder, sender, receiver, sent: 0, received: Vec::new(), expected: 0 }
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
        let mut hosts = Vec::new();
        eventually("one host runs", || {
            hosts = self.serve.hosts();
            hosts.len() == 1
        });
        for _ in 0..MOST {
            assert!(self.sender.transmit(&frame(self.sent), &NetHeader::default()));
            self.sent += 1;
        }
        self.sender.flush();
        let (before, deadline) = (self.received.len(), Instant::now() + PATIENCE);
        while has_arrived && self.received.len() == before && Instant::now() < deadline {
            self.receive();
        }
        let host: Pid = hosts[0];
        kill_process(host, Signal::KILL).unwrap();
        eventually("the host has ended", || !self.serve.hosts().contains(&host));
        // The receiver first, since a frame for a VF without a guest is dropped.
        for (vf, guest) in [(1, &mut self.receiver), (0, &mut self.sender)] {
            let socket = socket(&self.serve, vf);
            eventually("a guest connects to the next host", || guest.reconnect(&socket).is_ok());
        }
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

fn socket(serve: &ServeProcess, vf: u8) -> PathBuf {
    serve.folder().join(format!("pf0vf{vf}/vf.sock"))
}

/// Returns a frame from VF 0 to VF 1.
fn frame(number: u32) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0]);
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
