//! Contender: the usual connection of a virtual machine without a card, a tap on a bridge of the host's kernel. Frames
//! enter and leave at the taps' descriptors, with a system call for each. There is no forwarding process: the kernel
//! forwards a frame in the system call that writes it. So each processor has one tap, whose frames it generates,
//! forwards and receives.
//!
//! The bridge is in a network namespace of its own, without offloads.

use super::work::Workload;
use super::{Contender, ContenderKind, ContenderMeasurement, WARM_UP};
use crate::machine::processors::ProcessorAssignment;
use anyhow::{Context, Result, anyhow, ensure};
use host::namespace::enter_new_network;
use host::tap::{InterfaceName, Tap, TapReceiveResult, TapSendResult};
use i82576::MacAddress;
use std::fs::File;
use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Name of the Linux bridge in reports.
pub(super) const NAME: &str = "Linux bridge + tap";

/// Maximum number of pending frames in one direction, fewer than a tap's queue holds (1,000).
const WINDOW: u64 = 192;
/// Number of frames that one end of the bridge writes before it reads the frames of the other end.
const BURST: u64 = 32;
/// Time after which pending frames on the bridge count as lost.
const LOST: Duration = Duration::from_millis(20);
/// Longest wait until the bridge passes the first frame.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of the longest frame for the taps' MTU of 1,500.
const LONGEST: usize = 1514;

/// Linux bridge with two tap devices.
#[derive(Debug)]
pub(super) struct LinuxBridge {
    ends: [BridgeTap; 2],
    processors: ProcessorAssignment,
    /// Open file of the network namespace, which keeps the bridge and its taps alive.
    _namespace: File,
}

/// Tap at one end of the bridge, with its counters.
#[derive(Debug)]
struct BridgeTap {
    tap: Tap,
    /// Frame that the benchmark writes to this tap repeatedly.
    frame: Vec<u8>,
    written: AtomicU64,
    read: AtomicU64,
}

impl LinuxBridge {
    /// Creates the bridge, and waits until frames pass over it.
    pub(super) fn start(processors: ProcessorAssignment, size: usize) -> Result<Self> {
        ensure!(size <= LONGEST, "frame size {size} is too large for a tap (at most {LONGEST} bytes)");
        // A separate thread enters the namespace, so that the calling one stays outside.
        let made = thread::spawn(move || make(size)).join();
        let (ends, namespace) =
            made.map_err(|_| anyhow!("the thread that creates the bridge panicked"))??;
        let bridge = Self { ends, processors, _namespace: namespace };
        let begun = Instant::now();
        while bridge.exchange(WARM_UP)?.0 == 0 {
            ensure!(begun.elapsed() < PATIENCE, "no frame passed the Linux bridge within the timeout");
        }
        Ok(bridge)
    }

    /// Makes both ends of the bridge exchange frames as fast as they arrive. Returns the number of arrived frames, and
    /// the measured time.
    fn exchange(&self, length: Duration) -> Result<(u64, Duration)> {
        let begun = Instant::now();
        let ProcessorAssignment { generator, forwarder } = self.processors;
        let [one, other] = &self.ends;
        let arrived: Result<u64> = thread::scope(|scope| {
            let sides = [(one, other, generator), (other, one, forwarder)].map(|(own, far, processor)| {
                scope
                    .spawn(move || ProcessorAssignment::held(processor, || own.exchange(far, begun, length))?)
            });
            let arrived = sides.map(|side| {
                side.join().map_err(|_| anyhow!("a thread that exchanges frames over the bridge panicked"))
            });
            arrived.into_iter().map(|arrived| Ok(arrived??)).sum()
        });
        Ok((arrived?, begun.elapsed()))
    }
}

impl BridgeTap {
    fn new(name: &str, frame: Vec<u8>) -> Result<Self> {
        let tap = Tap::open(&name.parse::<InterfaceName>()?)?;
        Ok(Self { tap, frame, written: AtomicU64::new(0), read: AtomicU64::new(0) })
    }

    /// Writes frames for the far end of the bridge, and reads the far end's frames. Returns the number of read frames.
    fn exchange(&self, far: &Self, begun: Instant, length: Duration) -> io::Result<u64> {
        let (mut arrived, mut last) = (0, begun);
        while begun.elapsed() < length {
            self.write(far)?;
            let now = self.read(far)?;
            arrived += now;
            if now > 0 {
                last = Instant::now();
            } else if last.elapsed() > LOST {
                self.written.store(far.read.load(Ordering::Relaxed), Ordering::Relaxed);
                last = Instant::now();
            }
        }
        Ok(arrived)
    }

    /// Writes a burst of frames into the tap, unless more than [`WINDOW`] frames would be pending at the far end.
    fn write(&self, far: &Self) -> io::Result<()> {
        let written = self.written.load(Ordering::Relaxed);
        if written.saturating_sub(far.read.load(Ordering::Relaxed)) + BURST > WINDOW {
            return Ok(());
        }
        for count in 0..BURST {
            if self.tap.send(&self.frame)? != TapSendResult::Sent {
                break;
            }
            self.written.store(written + count + 1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn read(&self, far: &Self) -> io::Result<u64> {
        let mut buffer = [0; LONGEST];
        let mut arrived = 0;
        for _ in 0..WINDOW {
            let TapReceiveResult::Frame(length, _) = self.tap.recv(&mut buffer)? else { break };
            // Frames of the kernel do not count.
            arrived += u64::from(buffer[..length] == far.frame);
        }
        self.read.fetch_add(arrived, Ordering::Relaxed);
        Ok(arrived)
    }
}

impl Contender for LinuxBridge {
    fn name(&self) -> &str {
        NAME
    }

    fn mode(&self) -> ContenderKind {
        ContenderKind::Peer
    }

    fn slice(&mut self, length: Duration) -> Result<ContenderMeasurement> {
        self.exchange(WARM_UP)?;
        let (frames, took) = self.exchange(length)?;
        Ok(ContenderMeasurement::new(frames, took, None))
    }
}

/// Creates two taps and a bridge in a new network namespace, which this thread stays in.
fn make(size: usize) -> Result<([BridgeTap; 2], File)> {
    enter_new_network().context("cannot create a network namespace without root or CAP_SYS_ADMIN")?;
    let namespace = File::open("/proc/thread-self/ns/net")?;
    let address = |end: u8| MacAddress([2, 0, 0, 0, 0x20, end]);
    let end = |own: u8| -> Result<BridgeTap> {
        BridgeTap::new(&format!("tap{own}"), Workload::Frames(size).frame(address(own), address(1 - own)))
    };
    let ends = [end(0)?, end(1)?];
    // Ports forward immediately, and the bridge sends no multicast queries, which would count as frames.
    ip("link add bridge type bridge forward_delay 0 mcast_snooping 0")?;
    for (at, end) in ends.iter().enumerate() {
        ip(&format!("link set tap{at} master bridge"))?;
        end.tap.set_up()?;
    }
    ip("link set bridge up")?;
    Ok((ends, namespace))
}

fn ip(words: &str) -> Result<()> {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.context("cannot run `ip`, which creates the bridge: install Debian's iproute2")?;
    ensure!(
        output.status.success(),
        "`ip {words}` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
