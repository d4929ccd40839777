//! A live port: one thread owns the card, its PF driver, its functions' clients and its uplink, so that nothing on
//! a frame's way needs a lock. Commands arrive as messages.
//!
//! The thread sleeps until a socket, the uplink, a command or a deadline wakes it, and then goes round:
//! messages of clients, the PF driver's visit, the card's poll. The PF driver takes no interrupts; it is
//! visited every round, so a VF's request waits for one round at the most.

mod bus;
mod connection;
mod device;
mod hal;
mod run;
mod side;
mod slot;
mod status;
mod uplink;

pub use uplink::UplinkError;

use crate::config::PortConfig;
use crate::control::status::PortStatus;
use crate::policy::{Change, ChangeError, PortChange};
use bus::LiveBus;
use driver::pf::{PfError, PolicyError, PortPolicyError};
use host::poll::{Interest, Poller, Waker};
use host::socket::BindError;
use i82576::{MacAddress, Time, VfIndex};
use iovm::{AssignmentError, DiscoverError, EnableError};
use nic::Nic;
use pcie::Rid;
use side::Side;
use slot::Slot;
use std::sync::mpsc;
use thiserror::Error;
use uplink::Uplink;

/// Why a port cannot be started.
#[derive(Debug, Error)]
pub enum PortError {
    /// A function's socket.
    #[error("{name}: {source}")]
    Socket {
        /// The function.
        name: String,
        /// Why.
        source: BindError,
    },
    /// The uplink.
    #[error(transparent)]
    Uplink(#[from] UplinkError),
    /// epoll or eventfd.
    #[error("cannot wait for events: {0}")]
    System(#[from] std::io::Error),
    /// The card and its drivers disagree: a defect of this program.
    #[error("the card does not come up: {0}")]
    Card(String),
}

macro_rules! card_errors {
    ($($error:ty),*) => { $(impl From<$error> for PortError {
        fn from(error: $error) -> Self {
            Self::Card(error.to_string())
        }
    })* };
}
card_errors!(PfError, PolicyError, PortPolicyError, DiscoverError, EnableError, AssignmentError);

/// Why a VF or a port was not changed, or a port not reset.
#[derive(Debug, Error)]
pub enum RefusedChange {
    /// It makes no sense, or the card cannot do it, or not now.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// It is not the host's.
    #[error("a guest drives this port's PF: policy and resets are that guest's")]
    Guests,
    /// The card and the PF driver disagree: a defect of this program.
    #[error("the card does not come back: {0}")]
    Card(#[from] PfError),
}

/// What a port can be asked to do. Each answer goes to the sender given.
#[derive(Debug)]
pub enum Command {
    /// Tell how things are.
    Status(mpsc::Sender<PortStatus>),
    /// Change a VF, then tell how things are, or why nothing was changed.
    Change(VfIndex, Change, mpsc::Sender<Result<PortStatus, RefusedChange>>),
    /// Change the port, then tell how things are, or why nothing was changed.
    ChangePort(PortChange, mpsc::Sender<Result<PortStatus, RefusedChange>>),
    /// Reset the port under its VFs, then tell how things are, or why it was not done.
    Reset(mpsc::Sender<Result<PortStatus, RefusedChange>>),
    /// End.
    Stop,
}

/// A port that is set up and does not run yet.
#[derive(Debug)]
pub struct Port {
    name: String,
    mac: MacAddress,
    nic: Nic,
    side: Side,
    bus: LiveBus,
    uplink: Uplink,
    slots: Vec<Slot>,
    poller: Poller,
    waker: Waker,
    commands: mpsc::Receiver<Command>,
    /// What a receive reads into.
    buffer: Box<[u8]>,
    /// When the VFs were last judged.
    watched: Time,
    /// [`host::memory::poison_events`] when it was last looked at.
    poisoned: u64,
}

/// Bus 0, device 1: where the PF would be on a board. Nobody routes by it here.
const PF_RID: Rid = Rid(0x0008);
/// One receive from a client: a guest's doorbells by the hundred, or a part of a long transfer.
const RECEIVE_BUFFER: usize = 64 * 1024;

/// Tokens of the poller: a listener and a connection for each function, and two more.
const LISTENERS: u64 = 0;
const CONNECTIONS: u64 = 100;
const WAKER: u64 = 200;
const UPLINK: u64 = 201;

/// The other end of a port: commands go in here.
#[derive(Debug, Clone)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    waker: Waker,
}

impl Handle {
    /// Sends a command; `false` if the port has ended.
    #[must_use]
    pub fn send(&self, command: Command) -> bool {
        let sent = self.commands.send(command).is_ok();
        self.waker.wake();
        sent
    }
}

impl Port {
    /// Brings up card, drivers, sockets and uplink.
    ///
    /// # Errors
    /// [`PortError`]; what was made is taken down again.
    pub fn open(config: PortConfig) -> Result<(Self, Handle), PortError> {
        let waker = Waker::new()?;
        let uplink = Uplink::open(&config, &waker)?;
        let slots = Slot::open_all(&config)?;
        let (nic, side) = Side::bring_up(&config, uplink.link())?;
        let poller = Poller::new()?;
        poller.add(&waker, WAKER, Interest::READ)?;
        if let Some(tap) = uplink.tap() {
            poller.add(tap, UPLINK, Interest::READ)?;
        }
        for (slot, token) in slots.iter().zip(LISTENERS..) {
            poller.add(&slot.listener, token, Interest::READ)?;
        }
        let (sender, commands) = mpsc::channel();
        let handle = Handle { commands: sender, waker: waker.clone() };
        let port = Self {
            name: config.name,
            mac: config.mac,
            nic,
            side,
            bus: LiveBus::new(),
            uplink,
            slots,
            poller,
            waker,
            commands,
            buffer: vec![0; RECEIVE_BUFFER].into(),
            watched: Time::ZERO,
            poisoned: host::memory::poison_events(),
        };
        Ok((port, handle))
    }
}
