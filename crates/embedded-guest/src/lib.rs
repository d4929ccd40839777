//! A guest in this process: the driver of a VF, of either family, with a TCP/IP stack on top, over a vfio-user socket or any
//! other [`VfBus`].
//!
//! To the host that serves the socket it is one more VMM: it shares memory, hands over eventfds and accesses
//! registers by message. It answers pings, receives test flows and verifies every byte of them, and does for
//! its owner what a person would type in a virtual machine: ping, send, look at counters.
//!
//! ```no_run
//! # use embedded_guest::{Config, EmbeddedGuest};
//! # use std::net::Ipv4Addr;
//! # use std::time::Duration;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let alice = Ipv4Addr::new(10, 0, 0, 1);
//! let bob = Ipv4Addr::new(10, 0, 0, 2);
//! let start = |socket: &str, name: &str, ip| {
//!     EmbeddedGuest::start(Config { socket: socket.into(), name: name.into(), ip })
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
//! | module | what it gives |
//! |---|---|
//! | `device` | the VF driver as the stack's network device |
//! | `checksum` | which checksums are the card's work |
//! | `guest` | the thread: the loop, pings, flows |
//!
//! Left out: IPv6, routes beyond the guest's own /24, UDP, VLAN interfaces.
#![forbid(unsafe_code)]

mod checksum;
mod device;
mod guest;

pub use device::Refused;
pub use driver::any_vf::{Family, QueueCounters};
pub use guest::flow::{Flow, FlowError};
pub use guest::ping::Pings;
pub use guest::pulse::Pulse;

use device::Port;
use driver::AnyVf;
use driver::any_vf::{AnyVfConfig, AnyVfError};
use driver::vf::Statistics;
use guest::{Command, Guest};
use host::poll::{Clock, Waker};
use i82576::MacAddress;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vfio_client::{Accesses, HalError, VfBus, VfioUserHal};

/// Memory for the card: rings of 256 buffers of 2 KB, two for each queue pair, and room for the rest.
const MEMORY: u64 = 8 << 20;
/// How long the PF's driver may take to be there.
const PF_PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked for, and how often a link is.
const RETRY: Duration = Duration::from_millis(20);

/// Who a guest is.
#[derive(Debug, Clone)]
pub struct Config {
    /// The VF's vfio-user socket.
    pub socket: PathBuf,
    /// What its thread is called.
    pub name: String,
    /// Its address, in a /24.
    pub ip: Ipv4Addr,
}

/// Why a guest cannot start, or does not answer.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// The VF cannot be reached.
    #[error(transparent)]
    Hal(#[from] HalError),
    /// The VF does not start.
    #[error("VF driver: {0}")]
    Vf(#[from] AnyVfError),
    /// The PF gave the VF an address that no station can have.
    #[error("the VF's address {0} is not a station's")]
    Address(MacAddress),
    /// The system refuses a thread, epoll or an eventfd.
    #[error("cannot run the guest: {0}")]
    System(#[from] std::io::Error),
    /// The guest has ended, because its card is gone.
    #[error("the guest has ended: its card is gone")]
    Ended,
    /// The flow was not confirmed.
    #[error(transparent)]
    Flow(#[from] FlowError),
}

/// What a guest has counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// The card's counters of the VF.
    pub card: Statistics,
    /// The driver's, of each pair of rings.
    pub queues: Vec<QueueCounters>,
    /// Frames that came no further than the driver.
    pub refused: Refused,
    /// Interrupts signalled, counting those that came together.
    pub interrupts: u64,
    /// Register accesses.
    pub accesses: Accesses,
}

/// A running guest. Dropping it stops it, and its VF.
#[derive(Debug)]
pub struct EmbeddedGuest {
    name: String,
    ip: Ipv4Addr,
    mac: MacAddress,
    family: Family,
    link: Arc<AtomicBool>,
    commands: mpsc::Sender<Command>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl EmbeddedGuest {
    /// Attaches to the socket, starts the VF, and leaves a thread running it. The link may come up later.
    ///
    /// # Errors
    /// [`GuestError`].
    pub fn start(config: Config) -> Result<Self, GuestError> {
        let mut wanted = AnyVfConfig::default();
        wanted.i82576.seed = Clock.now_ns();
        let (mut hal, mut vf) = probe(&config, &wanted)?;
        vf.start(&mut hal)?;
        Self::start_on(hal, vf, config.name, config.ip)
    }

    /// Leaves a thread running a VF that was started, on whatever bus. `ip` is the guest's address, in a /24.
    ///
    /// # Errors
    /// [`GuestError`].
    pub fn start_on<B: VfBus>(
        bus: B,
        vf: impl Into<AnyVf>,
        name: String,
        ip: Ipv4Addr,
    ) -> Result<Self, GuestError> {
        let vf = vf.into();
        let (mac, family) = (vf.mac(), vf.family());
        if !mac.is_valid_unicast() {
            return Err(GuestError::Address(mac));
        }
        let port = Port::new(bus, vf);
        let (commands, receiver) = mpsc::channel();
        let waker = Waker::new()?;
        let link = Arc::new(AtomicBool::new(false));
        let guest = Guest::new(port, ip, receiver, waker.clone(), Arc::clone(&link))?;
        let thread = std::thread::Builder::new().name(name.clone()).spawn(move || guest.run())?;
        Ok(Self { name, ip, mac, family, link, commands, waker, thread: Some(thread) })
    }

    /// What it was called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its IP address.
    #[must_use]
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// Which VF it has.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// The Ethernet address that the PF gave its VF when the guest started.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Whether its link was up at the last look.
    #[must_use]
    pub fn link_up(&self) -> bool {
        self.link.load(Ordering::Acquire)
    }

    /// Waits until the link is up; answers whether it is.
    #[must_use]
    pub fn wait_link(&self, patience: Duration) -> bool {
        let start = Instant::now();
        while !self.link_up() && start.elapsed() < patience {
            std::thread::sleep(RETRY);
        }
        self.link_up()
    }

    /// Pings `to`, each request after the answer to the one before, and waits for the end of it.
    ///
    /// # Errors
    /// [`GuestError::Ended`].
    pub fn ping(&self, to: Ipv4Addr, count: u16) -> Result<Pings, GuestError> {
        self.ask(|answer| Command::Ping { to, count, answer })
    }

    /// Sends `to` an echo request at this pace, for as long as the answer to this lives.
    ///
    /// # Errors
    /// [`GuestError::Ended`].
    pub fn pulse(&self, to: Ipv4Addr, every: Duration) -> Result<Pulse, GuestError> {
        let pulse = Pulse::new(Clock.now_ns());
        let command = Command::Pulse { to, every, pulse: pulse.clone() };
        self.commands.send(command).map_err(|_| GuestError::Ended)?;
        self.waker.wake();
        Ok(pulse)
    }

    /// Sends `bytes` bytes over TCP to another embedded guest and waits for its verdict on them.
    ///
    /// # Errors
    /// [`GuestError::Ended`]; [`GuestError::Flow`] if there is no verdict. That bytes were lost or changed is no
    /// error: see [`Flow::is_intact`].
    pub fn send_tcp(&self, to: Ipv4Addr, bytes: u64) -> Result<Flow, GuestError> {
        Ok(self.ask(|answer| Command::Send { to, bytes, answer })??)
    }

    /// What it has counted.
    ///
    /// # Errors
    /// [`GuestError::Ended`].
    pub fn stats(&self) -> Result<Stats, GuestError> {
        self.ask(|answer| Command::Stats { answer })
    }

    fn ask<T>(&self, command: impl FnOnce(mpsc::Sender<T>) -> Command) -> Result<T, GuestError> {
        let (sender, receiver) = mpsc::channel();
        self.commands.send(command(sender)).map_err(|_| GuestError::Ended)?;
        self.waker.wake();
        // A guest that ends drops the other half.
        receiver.recv().map_err(|_| GuestError::Ended)
    }
}

impl Drop for EmbeddedGuest {
    fn drop(&mut self) {
        // A guest that has ended hears nothing, and need not.
        let _ = self.commands.send(Command::Stop);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // Its panic has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// Attaches and probes, again while the PF's driver is away. Each attempt is a new client, since a driver keeps
/// its memory.
fn probe(config: &Config, wanted: &AnyVfConfig) -> Result<(VfioUserHal, AnyVf), GuestError> {
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
