//! Runs the compared software switches (peers): one testpmd or Open vSwitch process forwards, and another testpmd
//! process generates and receives the frames. Also the null forwarder, which copies frames without any source: the
//! limit of every forwarder that copies a frame once in and once out. None of them looks at addresses or enforces a
//! policy.

use super::switch::{OpenVswitchConfig, OpenVswitchPort, OpenVswitchProcess};
use super::testpmd::{Testpmd, TestpmdConfig};
use super::work::Workload;
use super::{Contender, ContenderKind, ContenderMeasurement, WARM_UP};
use crate::machine::cycles::CycleCounter;
use crate::machine::huge_pages::HugePages;
use crate::machine::process::LoggedProcess;
use crate::machine::processors::ProcessorAssignment;
use anyhow::{Result, bail, ensure};
use linux_guest::HostDpdk;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Maximum wait for the first frame that a compared software switch (peer) forwards.
const PATIENCE: Duration = Duration::from_secs(30);

/// Configuration of a compared software switch (peer). In the names of its devices, `{n}` is the port, `{dir}` the
/// folder of sockets, `{size}` a frame's length, `{ring}` the descriptors of a ring and `{rsize}` their binary
/// logarithm.
#[derive(Debug)]
pub(super) struct PeerForwarderConfig {
    pub(super) name: &'static str,
    forwarder: PeerForwarderKind,
    /// Device of the testpmd process that generates the frames; `None` if the forwarder creates frames itself.
    generator: Option<&'static str>,
    /// True to pass the ring size to testpmd too, so that testpmd's own rings are as long as the device's.
    tells_ring: bool,
}

impl PeerForwarderConfig {
    /// Returns true if the peer supports a workload. Segmented sends are measured with the null forwarder alone,
    /// because no software switch segments them.
    pub(super) fn does(&self, work: Workload) -> bool {
        match work {
            Workload::Frames(_) => true,
            Workload::LargeRings(_) => self.generator.is_some(),
            Workload::Segmented => self.generator.is_none(),
            Workload::Messages(_) => false,
        }
    }

    /// Returns true if the peer needs to run as root.
    pub(super) fn takes_root(&self) -> bool {
        matches!(self.forwarder, PeerForwarderKind::Switch)
    }
}

/// Program that forwards the frames of a peer.
#[derive(Debug)]
enum PeerForwarderKind {
    /// testpmd forwards the peer's frames, between two devices of this kind.
    Testpmd(&'static str),
    /// Open vSwitch forwards the peer's frames.
    Switch,
}

/// Device option by which testpmd creates a memif server.
const MEMIF: &str =
    "net_memif{n},role=server,id={n},rsize={rsize},bsize=2048,socket={dir}/m{n}.sock,socket-abstract=no";
const VHOST: &str = "net_vhost{n},iface={dir}/v{n}.sock,queues=1";

pub(super) const RECIPES: [PeerForwarderConfig; 6] = [
    PeerForwarderConfig {
        name: "memif, zero copy",
        forwarder: PeerForwarderKind::Testpmd(MEMIF),
        generator: Some(
            "net_memif{n},role=client,id={n},rsize={rsize},bsize=2048,socket={dir}/m{n}.sock,socket-abstract=no,zero-copy=yes",
        ),
        tells_ring: false,
    },
    PeerForwarderConfig {
        name: "memif",
        forwarder: PeerForwarderKind::Testpmd(MEMIF),
        generator: Some(
            "net_memif{n},role=client,id={n},rsize={rsize},bsize=2048,socket={dir}/m{n}.sock,socket-abstract=no",
        ),
        tells_ring: false,
    },
    PeerForwarderConfig {
        name: "vhost-user, packed",
        forwarder: PeerForwarderKind::Testpmd(VHOST),
        generator: Some(
            "net_virtio_user{n},path={dir}/v{n}.sock,queues=1,queue_size={ring},mrg_rxbuf=0,in_order=1,packed_vq=1",
        ),
        tells_ring: true,
    },
    PeerForwarderConfig {
        name: "vhost-user, split",
        forwarder: PeerForwarderKind::Testpmd(VHOST),
        generator: Some(
            "net_virtio_user{n},path={dir}/v{n}.sock,queues=1,queue_size={ring},mrg_rxbuf=0,in_order=0",
        ),
        tells_ring: true,
    },
    PeerForwarderConfig {
        name: "Open vSwitch-DPDK",
        forwarder: PeerForwarderKind::Switch,
        generator: Some(
            "net_virtio_user{n},path={dir}/v{n}.sock,queues=1,queue_size={ring},server=1,mrg_rxbuf=0,in_order=1,packed_vq=1",
        ),
        tells_ring: true,
    },
    PeerForwarderConfig {
        name: "null forwarder",
        forwarder: PeerForwarderKind::Testpmd("net_null{n},size={size},copy=1"),
        generator: None,
        tells_ring: false,
    },
];

/// Names of the peers (testpmd and Open vSwitch) in reports.
pub(super) const NAMES: [&str; RECIPES.len()] = {
    let mut names = [""; RECIPES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = RECIPES[at].name;
        at += 1;
    }
    names
};

/// Compared software switch (peer) as a contender: its processes, which are stopped between slices.
#[derive(Debug)]
pub(super) struct PeerContender {
    recipe: &'static PeerForwarderConfig,
    /// testpmd process that generates and receives frames. Dropped before the forwarder.
    generator: Option<Testpmd>,
    forwarder: PeerForwarderProcess,
    cycles: CycleCounter,
    _folder: TempDir,
}

#[derive(Debug)]
enum PeerForwarderProcess {
    Testpmd(Testpmd),
    Switch(OpenVswitchProcess),
}

impl PeerForwarderProcess {
    fn process(&self) -> &LoggedProcess {
        match self {
            Self::Testpmd(testpmd) => &testpmd.process,
            Self::Switch(switch) => switch.process(),
        }
    }
}

impl PeerContender {
    pub(super) fn start(
        recipe: &'static PeerForwarderConfig,
        dpdk: &HostDpdk,
        huge: &HugePages,
        processors: ProcessorAssignment,
        work: Workload,
    ) -> Result<Self> {
        let folder = TempDir::new()?;
        let start = |devices: &str, forwards: bool, arguments: Vec<String>| {
            let devices = [0, 1].map(|port| device(devices, port, folder.path(), work));
            let huge_pages = huge.is_there();
            TestpmdConfig { dpdk, huge_pages, processors, prefix: prefix(), forwards, devices, arguments }
        };
        let ring = recipe.tells_ring.then_some(work.peer_descriptors());
        let rings = || ring.iter().flat_map(|n| [format!("--txd={n}"), format!("--rxd={n}")]);
        let forwarder = match recipe.forwarder {
            PeerForwarderKind::Testpmd(devices) => {
                let arguments = std::iter::once("--forward-mode=io".to_owned()).chain(rings()).collect();
                PeerForwarderProcess::Testpmd(Testpmd::start(
                    &start(devices, true, arguments),
                    folder.path(),
                )?)
            }
            PeerForwarderKind::Switch => {
                let (ports, folder) = (["v0", "v1"].map(OpenVswitchPort::VhostUser), folder.path());
                let setup = OpenVswitchConfig {
                    dpdk,
                    huge,
                    processors,
                    folder,
                    ports,
                    offloads: false,
                    namespace: None,
                };
                PeerForwarderProcess::Switch(OpenVswitchProcess::start(&setup)?)
            }
        };
        let generator = recipe.generator.map(|devices| {
            let arguments = ["--forward-mode=flowgen".to_owned(), format!("--txpkts={}", work.size())];
            let arguments = arguments.into_iter().chain(rings()).collect();
            Testpmd::start(&start(devices, false, arguments), folder.path())
        });
        let generator = generator.transpose()?;
        let cycles = CycleCounter::of(forwarder.process().id());
        let peer = Self { recipe, generator, forwarder, cycles, _folder: folder };
        peer.wait()?;
        peer.stop(true)?;
        Ok(peer)
    }

    /// Waits until the peer has forwarded a frame.
    fn wait(&self) -> Result<()> {
        let begun = Instant::now();
        while self.received()? == 0 {
            let name = self.recipe.name;
            ensure!(
                begun.elapsed() < PATIENCE,
                "{name} forwarded no frame within the timeout; its log:\n{}",
                self.forwarder.process().log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Returns the number of frames that the peer has forwarded since its start.
    fn received(&self) -> Result<u64> {
        match (&self.generator, &self.forwarder) {
            (Some(counter), _) | (None, PeerForwarderProcess::Testpmd(counter)) => counter.received(),
            (None, PeerForwarderProcess::Switch(_)) => {
                bail!("Open vSwitch does not count frames itself, so its generator must be testpmd")
            }
        }
    }

    fn stop(&self, stopped: bool) -> Result<()> {
        let generator = self.generator.as_ref().map(|generator| &generator.process);
        for process in generator.into_iter().chain([self.forwarder.process()]) {
            process.stop(stopped)?;
        }
        Ok(())
    }
}

impl Contender for PeerContender {
    fn name(&self) -> &str {
        self.recipe.name
    }

    fn mode(&self) -> ContenderKind {
        if self.generator.is_some() { ContenderKind::Peer } else { ContenderKind::Raw }
    }

    fn slice(&mut self, length: Duration) -> Result<ContenderMeasurement> {
        self.stop(false)?;
        std::thread::sleep(WARM_UP);
        // An answer takes a while, so cycles and time are both read right after one.
        let (first, before, begun) = (self.received()?, self.cycles.read(), Instant::now());
        std::thread::sleep(length);
        let (last, after, took) = (self.received()?, self.cycles.read(), begun.elapsed());
        let cycles = before.zip(after).map(|(before, after)| after - before);
        self.stop(true)?;
        Ok(ContenderMeasurement::new(last - first, took, cycles))
    }
}

/// Fills in the placeholders in the description of a peer's device.
fn device(pattern: &str, port: u8, folder: &Path, work: Workload) -> String {
    let ring = work.peer_descriptors();
    [
        ("{n}", port.to_string()),
        ("{dir}", folder.display().to_string()),
        ("{size}", work.size().to_string()),
        ("{ring}", ring.to_string()),
        ("{rsize}", ring.ilog2().to_string()),
    ]
    .iter()
    .fold(pattern.to_owned(), |text, (word, value)| text.replace(word, value))
}

/// Returns a DPDK file prefix that no other program on this machine uses.
pub(super) fn prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("softiov-bench-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
