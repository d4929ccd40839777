//! What testpmd is told to be each peer: one that forwards, and one that generates and takes the frames. And the null
//! forwarder, which copies frames from nowhere to nowhere: the limit of everyone who copies a frame once in and once
//! out. None of them looks at an address or enforces a policy.

use super::testpmd::{Start, Testpmd};
use super::{Contender, Mode, Slice, WARM_UP};
use crate::machine::cycles::Cycles;
use crate::machine::huge_pages::HugePages;
use crate::machine::processors::Processors;
use anyhow::{Result, ensure};
use linux_guest::HostDpdk;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long the first frame may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a peer is made. In devices, `{n}` is the port and `{dir}` the folder of sockets, `{size}` a frame's length.
#[derive(Debug)]
pub(super) struct Recipe {
    pub(super) name: &'static str,
    forwarder: &'static str,
    /// None: frames come from nowhere.
    generator: Option<&'static str>,
    descriptors: Option<u16>,
}

const MEMIF: &str =
    "net_memif{n},role=server,id={n},rsize=10,bsize=2048,socket={dir}/m{n}.sock,socket-abstract=no";
const VHOST: &str = "net_vhost{n},iface={dir}/v{n}.sock,queues=1";

pub(super) const RECIPES: [Recipe; 5] = [
    Recipe {
        name: "memif, zero copy",
        forwarder: MEMIF,
        generator: Some(
            "net_memif{n},role=client,id={n},rsize=10,bsize=2048,socket={dir}/m{n}.sock,socket-abstract=no,zero-copy=yes",
        ),
        descriptors: None,
    },
    Recipe {
        name: "memif",
        forwarder: MEMIF,
        generator: Some(
            "net_memif{n},role=client,id={n},rsize=10,bsize=2048,socket={dir}/m{n}.sock,socket-abstract=no",
        ),
        descriptors: None,
    },
    Recipe {
        name: "vhost-user, packed",
        forwarder: VHOST,
        generator: Some(
            "net_virtio_user{n},path={dir}/v{n}.sock,queues=1,queue_size=1024,mrg_rxbuf=0,in_order=1,packed_vq=1",
        ),
        descriptors: Some(1024),
    },
    Recipe {
        name: "vhost-user, split",
        forwarder: VHOST,
        generator: Some(
            "net_virtio_user{n},path={dir}/v{n}.sock,queues=1,queue_size=1024,mrg_rxbuf=0,in_order=0",
        ),
        descriptors: Some(1024),
    },
    Recipe {
        name: "null forwarder",
        forwarder: "net_null{n},size={size},copy=1",
        generator: None,
        descriptors: None,
    },
];

/// A peer: its programs, stopped between slices.
#[derive(Debug)]
pub(super) struct Peer {
    recipe: &'static Recipe,
    /// The generator before the forwarder, which ends last.
    generator: Option<Testpmd>,
    forwarder: Testpmd,
    cycles: Cycles,
    _folder: TempDir,
}

impl Peer {
    pub(super) fn start(
        recipe: &'static Recipe,
        dpdk: &HostDpdk,
        huge: &HugePages,
        processors: Processors,
        size: usize,
    ) -> Result<Self> {
        let folder = TempDir::new()?;
        let start = |devices: &str, forwards: bool, arguments: Vec<String>| {
            let devices = [0, 1].map(|port| device(devices, port, folder.path(), size));
            let huge_pages = huge.is_there();
            Start { dpdk, huge_pages, processors, prefix: prefix(), forwards, devices, arguments }
        };
        let rings = || recipe.descriptors.iter().flat_map(|n| [format!("--txd={n}"), format!("--rxd={n}")]);
        let arguments = std::iter::once("--forward-mode=io".to_owned()).chain(rings()).collect();
        let forwarder = Testpmd::start(&start(recipe.forwarder, true, arguments), folder.path())?;
        let generator = recipe.generator.map(|devices| {
            let arguments = ["--forward-mode=flowgen".to_owned(), format!("--txpkts={size}")];
            let arguments = arguments.into_iter().chain(rings()).collect();
            Testpmd::start(&start(devices, false, arguments), folder.path())
        });
        let generator = generator.transpose()?;
        let cycles = Cycles::of(forwarder.process.id());
        let peer = Self { recipe, generator, forwarder, cycles, _folder: folder };
        peer.wait()?;
        peer.stop(true)?;
        Ok(peer)
    }

    /// Until frames arrive.
    fn wait(&self) -> Result<()> {
        let begun = Instant::now();
        while self.counter().received()? == 0 {
            let name = self.recipe.name;
            ensure!(begun.elapsed() < PATIENCE, "{name} moves no frame:\n{}", self.forwarder.process.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Who counts what has arrived.
    fn counter(&self) -> &Testpmd {
        self.generator.as_ref().unwrap_or(&self.forwarder)
    }

    fn stop(&self, stopped: bool) -> Result<()> {
        for program in self.generator.iter().chain([&self.forwarder]) {
            program.process.stop(stopped)?;
        }
        Ok(())
    }
}

impl Contender for Peer {
    fn name(&self) -> &str {
        self.recipe.name
    }

    fn mode(&self) -> Mode {
        if self.generator.is_some() { Mode::Peer } else { Mode::Raw }
    }

    fn slice(&mut self, length: Duration) -> Result<Slice> {
        self.stop(false)?;
        std::thread::sleep(WARM_UP);
        let before = self.cycles.read();
        let counter = self.generator.as_ref().unwrap_or(&self.forwarder);
        let (first, begun) = (counter.received()?, Instant::now());
        std::thread::sleep(length);
        let (last, took) = (counter.received()?, begun.elapsed());
        let cycles = before.zip(self.cycles.read()).map(|(before, after)| after - before);
        self.stop(true)?;
        Ok(Slice { frames: last - first, took, cycles })
    }
}

fn device(pattern: &str, port: u8, folder: &Path, size: usize) -> String {
    let folder = folder.display().to_string();
    pattern.replace("{n}", &port.to_string()).replace("{dir}", &folder).replace("{size}", &size.to_string())
}

/// A file prefix that no other program has.
fn prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("softiov-bench-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
