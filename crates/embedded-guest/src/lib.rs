//! A guest in this process: the driver of a VF, of either family, with a TCP/IP stack on top, over a vfio-user
//! socket or any other [`VfDriverHal`].
//!
//! For the host that serves the socket it is an ordinary VMM: it shares memory, passes eventfds and accesses
//! registers by message. It answers pings, receives test flows and verifies every byte of them, and executes its
//! owner's commands: ping, send, read counters.
//!
//! ```no_run
//! # use embedded_guest::{EmbeddedGuestConfig, EmbeddedGuest};
//! # use std::net::Ipv4Addr;
//! # use std::time::Duration;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let alice = Ipv4Addr::new(10, 0, 0, 1);
//! let bob = Ipv4Addr::new(10, 0, 0, 2);
//! let start = |socket: &str, name: &str, ip| {
//!     EmbeddedGuest::start(EmbeddedGuestConfig { socket: socket.into(), name: name.into(), ip })
//! };
//! let _alice = start("/run/softiov/pf0vf0/vf.sock", "alice", alice)?;
//! let bob = start("/run/softiov/pf0vf1/vf.sock", "bob", bob)?;
//! bob.wait_link(Duration::from_secs(5));
//! println!("{:?}", bob.ping(alice, 3)?.median());
//! println!("{} Mbit/s", bob.send_tcp(alice, 1 << 20)?.mbps());
//! # Ok(())
//! # }
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `device` | the VF driver as the stack's network device |
//! | `checksum` | the checksums that the card does not handle |
//! | `guest` | the thread: the loop, pings, flows |
//!
//! IPv6, routes beyond the guest's own /24, UDP and VLAN interfaces are not supported.
#![forbid(unsafe_code)]

mod checksum;
mod device;
mod guest;

pub use device::DroppedFrameCounts;
pub use driver::any_vf::{DeviceFamily, QueuePairCounters};
pub use guest::flow::{TestFlowError, TestFlowResult};
pub use guest::ping::PingStatistics;
pub use guest::pulse::PathInterruptionMeasurement;

use device::VfNetworkDevice;
use driver::AnyVf;
use driver::any_vf::{AnyVfConfig, AnyVfError};
use driver::vf::AccumulatedStatistics;
use guest::{GuestCommand, GuestThread};
use host::poll::{MonotonicClock, ThreadWaker};
use i82576::MacAddress;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vfio_client::{RegisterAccessCounts, VfDriverHal, VfioUserHal, VfioUserHalError};

/// Size of the memory that guest and card share, in bytes: 512 buffers of 2 KB for each queue pair, and the driver's
/// other memory.
const MEMORY: u64 = 8 << 20;
/// Timeout of the guest's wait for the PF's driver.
const PF_PATIENCE: Duration = Duration::from_secs(5);
/// Period of attempts to reach the PF's driver, and of checks of the link while a caller waits for it.
const RETRY: Duration = Duration::from_millis(20);

/// Configuration of an embedded guest.
#[derive(Debug, Clone)]
pub struct EmbeddedGuestConfig {
    /// Path of the VF's vfio-user socket.
    pub socket: PathBuf,
    /// Name of the guest's thread.
    pub name: String,
    /// IP address of the guest, in a /24.
    pub ip: Ipv4Addr,
}

/// Reason why an embedded guest cannot start, or cannot answer its owner's command.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedGuestError {
    /// The VF cannot be reached over its bus.
    #[error(transparent)]
    Hal(#[from] VfioUserHalError),
    /// The driver cannot start the VF.
    #[error("the embedded guest's VF driver failed: {0}")]
    Vf(#[from] AnyVfError),
    /// The PF gave the VF an address that is no valid unicast address.
    #[error("the VF's MAC address {0} is not a valid unicast address")]
    Address(MacAddress),
    /// The system refuses a thread, epoll or an eventfd for the guest.
    #[error("the embedded guest's system call failed: {0}")]
    System(#[from] std::io::Error),
    /// The guest has ended, because its card is gone.
    #[error("the embedded guest has ended: the connection to its VF was lost")]
    Ended,
    /// The TCP test flow ended without a message from its receiver about received and wrong bytes.
    #[error(transparent)]
    Flow(#[from] TestFlowError),
}

/// Counters of an embedded guest, its driver and its VF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedGuestStats {
    /// Counters that the card keeps for the VF.
    pub card: AccumulatedStatistics,
    /// Counters of the VF driver, per pair of rings.
    pub queues: Vec<QueuePairCounters>,
    /// Numbers of frames that the guest's network device dropped.
    pub refused: DroppedFrameCounts,
    /// Number of interrupts that the guest took, merged ones included.
    pub interrupts: u64,
    /// Numbers of register accesses by the guest's driver.
    pub accesses: RegisterAccessCounts,
}

/// Handle of a running embedded guest. Dropping the handle stops the guest and its VF.
#[derive(Debug)]
pub struct EmbeddedGuest {
    name: String,
    ip: Ipv4Addr,
    mac: MacAddress,
    family: DeviceFamily,
    link: Arc<AtomicBool>,
    commands: mpsc::Sender<GuestCommand>,
    waker: ThreadWaker,
    thread: Option<JoinHandle<()>>,
}

impl EmbeddedGuest {
    /// Attaches to the VF's socket, starts the VF, and starts a thread that runs the guest. The link may come up later.
    ///
    /// # Errors
    /// [`EmbeddedGuestError`].
    pub fn start(config: EmbeddedGuestConfig) -> Result<Self, EmbeddedGuestError> {
        let mut wanted = AnyVfConfig::default();
        wanted.i82576.seed = MonotonicClock.now_ns();
        let (mut hal, mut vf) = probe(&config, &wanted)?;
        vf.start(&mut hal)?;
        Self::start_on(hal, vf, config.name, config.ip)
    }

    /// Starts a thread that runs a guest on a started VF, on any bus. `ip` is the guest's address, in a /24.
    ///
    /// # Errors
    /// [`EmbeddedGuestError`].
    pub fn start_on<B: VfDriverHal>(
        bus: B,
        vf: impl Into<AnyVf>,
        name: String,
        ip: Ipv4Addr,
    ) -> Result<Self, EmbeddedGuestError> {
        let vf = vf.into();
        let (mac, family) = (vf.mac(), vf.family());
        if !mac.is_valid_unicast() {
            return Err(EmbeddedGuestError::Address(mac));
        }
        let port = VfNetworkDevice::new(bus, vf);
        let (commands, receiver) = mpsc::channel();
        let waker = ThreadWaker::new()?;
        let link = Arc::new(AtomicBool::new(false));
        let guest = GuestThread::new(port, ip, receiver, waker.clone(), Arc::clone(&link))?;
        let thread = std::thread::Builder::new().name(name.clone()).spawn(move || guest.run())?;
        Ok(Self { name, ip, mac, family, link, commands, waker, thread: Some(thread) })
    }

    /// Returns the name of the guest.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the guest's IP address.
    #[must_use]
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// Returns the device family of the guest's VF.
    #[must_use]
    pub fn family(&self) -> DeviceFamily {
        self.family
    }

    /// Returns the Ethernet address that the PF gave the VF when the guest started.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Returns true if the guest's link was up at its last check.
    #[must_use]
    pub fn link_up(&self) -> bool {
        self.link.load(Ordering::Acquire)
    }

    /// Waits until the guest's link is up or the time `patience` has passed. Returns true if the link is up.
    #[must_use]
    pub fn wait_link(&self, patience: Duration) -> bool {
        let start = Instant::now();
        while !self.link_up() && start.elapsed() < patience {
            std::thread::sleep(RETRY);
        }
        self.link_up()
    }

    /// Pings address `to`, each request after the answer to the one before, and returns the result of all pings.
    ///
    /// # Errors
    /// [`EmbeddedGuestError::Ended`].
    pub fn ping(&self, to: Ipv4Addr, count: u16) -> Result<PingStatistics, EmbeddedGuestError> {
        self.ask(|answer| GuestCommand::Ping { to, count, answer })
    }

    /// Sends echo requests to address `to` at this period, until the returned measurement is dropped.
    ///
    /// # Errors
    /// [`EmbeddedGuestError::Ended`].
    pub fn pulse(
        &self,
        to: Ipv4Addr,
        every: Duration,
    ) -> Result<PathInterruptionMeasurement, EmbeddedGuestError> {
        let pulse = PathInterruptionMeasurement::new(MonotonicClock.now_ns());
        let command = GuestCommand::Pulse { to, every, pulse: pulse.clone() };
        self.commands.send(command).map_err(|_| EmbeddedGuestError::Ended)?;
        self.waker.wake();
        Ok(pulse)
    }

    /// Sends `bytes` bytes over TCP to another embedded guest, and returns the receiver's verdict on them.
    ///
    /// # Errors
    /// [`EmbeddedGuestError::Ended`]; [`EmbeddedGuestError::Flow`] without a verdict. Lost or changed bytes are no
    /// error: see [`TestFlowResult::is_intact`].
    pub fn send_tcp(&self, to: Ipv4Addr, bytes: u64) -> Result<TestFlowResult, EmbeddedGuestError> {
        Ok(self.ask(|answer| GuestCommand::Send { to, bytes, answer })??)
    }

    /// Returns the counters of the guest, its driver and its VF.
    ///
    /// # Errors
    /// [`EmbeddedGuestError::Ended`].
    pub fn stats(&self) -> Result<EmbeddedGuestStats, EmbeddedGuestError> {
        self.ask(|answer| GuestCommand::Stats { answer })
    }

    fn ask<T>(&self, command: impl FnOnce(mpsc::Sender<T>) -> GuestCommand) -> Result<T, EmbeddedGuestError> {
        let (sender, receiver) = mpsc::channel();
        self.commands.send(command(sender)).map_err(|_| EmbeddedGuestError::Ended)?;
        self.waker.wake();
        // A guest that ends drops the sender.
        receiver.recv().map_err(|_| EmbeddedGuestError::Ended)
    }
}

impl Drop for EmbeddedGuest {
    fn drop(&mut self) {
        // A guest that has ended does not receive this, which is no error.
        let _ = self.commands.send(GuestCommand::Stop);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // Its panic has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// Attaches to the VF's socket and probes the VF. Repeats both while the PF's driver is unavailable. Each attempt uses
/// a new connection, since the driver of a failed attempt does not free its memory.
fn probe(
    config: &EmbeddedGuestConfig,
    wanted: &AnyVfConfig,
) -> Result<(VfioUserHal, AnyVf), EmbeddedGuestError> {
    let start = Instant::now();
    loop {
        let mut hal = VfioUserHal::attach(&config.socket, MEMORY)?;
        let family = hal.family();
        match AnyVf::probe(&mut hal, family, wanted) {
            Ok(vf) => return Ok((hal, vf)),
            Err(error) if error.is_pf_unavailable() && start.elapsed() < PF_PATIENCE => {}
            Err(error) => return Err(error.into()),
        }
        drop(hal);
        std::thread::sleep(RETRY);
    }
}
