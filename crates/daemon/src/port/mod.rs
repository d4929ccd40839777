//! A live port: one thread owns the card, its PF driver, its functions' clients and its uplink, so that nothing on
//! a frame's way needs a lock. Commands arrive as messages.
//!
//! The thread sleeps until a socket, the uplink, a command or a deadline wakes it, and then goes round:
//! messages of clients, the PF driver's visit, the card's poll. The PF driver takes no interrupts; it is
//! visited every round, so a VF's request waits for one round at the most. Nothing that may block or take long runs on
//! this thread (`errand`).

mod adopt;
mod answers;
mod bus;
mod carried;
mod commands;
mod connection;
mod device;
mod ending;
mod errand;
mod family;
mod flight;
mod functions;
mod hal;
mod inheritance;
mod journal;
mod keeping;
mod open;
mod order;
mod pages;
mod refit;
mod run;
mod side;
mod slot;
mod status;
mod tell;
mod totals;
mod uplink;
mod waiting;

pub(crate) use hal::{Card, now};
pub use journal::JournalError;
pub use order::{OpenVf, Order, VfOrder};
pub use refit::{Refit, Refitted};
pub use uplink::UplinkError;
pub(crate) use uplink::{Maker, Programs, Stages, Uplink, Wires};

use crate::capture::Capture;
use crate::config::file::LinkLocal;
use crate::control::functions::Functions;
use crate::control::status::PortStatus;
use crate::flight::files::Files;
use crate::flight::recording::Taken;
use crate::settings::SettingError;
use crate::vault::PortVault;
use answers::{Answers, Heard};
use bus::LiveBus;
use carried::Carried;
use driver::pf::{PfError, ResizeError};
use ending::HungUp;
use errand::Done;
use family::Family;
use host::confine::ConfineError;
use host::cpus::{Cpus, ForeignCpu};
use host::poll::{Poller, Waker};
use host::socket::BindError;
use i82576::{MacAddress, Time};
use iovm::{AssignmentError, DiscoverError, EnableError};
use journal::{Journal, Rest};
use pcie::{Rid, VfIndex};
use policy::PolicyError;
use slot::Slot;
use std::sync::{Arc, mpsc};
use thiserror::Error;
use waiting::Naps;

/// What the ports of a host have together.
#[derive(Debug, Clone)]
pub(crate) struct Common {
    pub(crate) wires: Wires,
    /// The programs for interfaces, which are loaded before anything is given up.
    pub(crate) programs: Programs,
    /// Where recordings of VFs go that are quarantined.
    pub(crate) flights: Files,
}

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
    /// Its processors.
    #[error("cpus: {0}")]
    Cpus(#[from] ForeignCpu),
    /// The notes for a successor.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// epoll, eventfd or a thread.
    #[error("cannot wait for events: {0}")]
    System(#[from] std::io::Error),
    /// A thread of its own.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// The table of mappings is shared out.
    #[error("this process has too many functions to map the memory of their clients; run a second host")]
    NoMappings,
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
card_errors!(PfError, PolicyError, DiscoverError, EnableError, AssignmentError);

/// Why a VF or a port was not changed, or a port not reset.
#[derive(Debug, Error)]
pub enum RefusedChange {
    /// It makes no sense, or the card cannot do it, or not now.
    #[error("{name}.{error}")]
    Setting {
        /// The VF or port.
        name: String,
        /// The setting, and what is wrong.
        error: SettingError,
    },
    /// It is not the host's.
    #[error("a guest drives this port's PF: policy and resets are that guest's")]
    Guests,
    /// There is no client to let go.
    #[error("no virtual machine is connected to it")]
    NoClient,
    /// The PF cannot change its number of VFs now.
    #[error("{name}.vfs: {error}")]
    Resize {
        /// The port.
        name: String,
        /// Why.
        error: ResizeError,
    },
    /// The journal has no room for the VFs that the port is to offer.
    #[error("{name}.vfs: {error}")]
    Room {
        /// The port.
        name: String,
        /// How many VFs it has room for.
        error: JournalError,
    },
    /// epoll.
    #[error("cannot wait for a new VF's clients: {0}")]
    System(#[from] std::io::Error),
    /// epoll, or the processors that the thread is to run on are not there any more.
    #[error("{name}.{key}: {source}")]
    Refit {
        /// The port.
        name: String,
        /// What was to be changed.
        key: &'static str,
        /// What the kernel says.
        source: std::io::Error,
    },
    /// The card and the drivers disagree: a defect of this program.
    #[error("the card does not follow: {0}")]
    Card(String),
}

impl From<PfError> for RefusedChange {
    fn from(error: PfError) -> Self {
        Self::Card(error.to_string())
    }
}

impl From<AssignmentError> for RefusedChange {
    fn from(error: AssignmentError) -> Self {
        Self::Card(error.to_string())
    }
}

/// What a port can be asked to do. Each answer goes to the sender given.
#[derive(Debug)]
pub enum Command {
    /// Tell how things are.
    Status(mpsc::Sender<PortStatus>),
    /// Tell what a VF did last; nothing if there is no such VF.
    Flight(VfIndex, mpsc::Sender<Option<Taken>>),
    /// Tell of its functions as PCI devices.
    Functions(mpsc::Sender<Functions>),
    /// Have somebody see what becomes of frames.
    Capture(Capture),
    /// Tell whether an order could be carried out now.
    Check(Order, mpsc::Sender<Result<(), RefusedChange>>),
    /// Carry out an order, with the VFs that come with it, or tell why nothing was changed.
    Carry(Order, Vec<OpenVf>, mpsc::Sender<Result<(), RefusedChange>>),
    /// Go on with another uplink, link or processors. The answer is what takes that back; or why it was not done, and what
    /// was given.
    Refit(Box<Refit>, mpsc::Sender<Refitted>),
    /// Offer only this many VFs from now on; the clients of the others come to their end.
    Withdraw(usize, mpsc::Sender<()>),
    /// Reset the port under its VFs, then tell how things are, or why it was not done.
    Reset(mpsc::Sender<Result<PortStatus, RefusedChange>>),
    /// Let a VF's client go, then tell how things are, or that there is none.
    Disconnect(VfIndex, mpsc::Sender<Result<PortStatus, RefusedChange>>),
    /// Set everything aside and wait, for so long, for what comes next: [`Command::Resume`], which is also what the end
    /// of that time means, or [`Command::Leave`]. The answer says whether everything is set aside.
    Pause(std::time::Duration, mpsc::Sender<bool>),
    /// Go on: there is no successor.
    Resume,
    /// End without a word: a successor has everything.
    Leave,
    /// End: tell the guests, let every client go.
    Stop,
    /// Fail as by a defect.
    #[cfg(test)]
    Panic,
}

/// A port that is set up and does not run yet.
#[derive(Debug)]
pub struct Port {
    name: String,
    mac: MacAddress,
    card: Box<dyn Family>,
    bus: LiveBus,
    uplink: Uplink,
    link_local: LinkLocal,
    /// The processors that the thread is held to; none named is any.
    cpus: Cpus,
    /// Those that the host may run on.
    anywhere: Cpus,
    slots: Vec<Slot>,
    /// Clients that have been let go, and have not left yet.
    hung_up: Vec<HungUp>,
    phase: Phase,
    poller: Poller,
    naps: Naps,
    heard: Heard,
    /// How fast the PF driver answers.
    answers: Answers,
    /// What clients' requests have made others do.
    done: mpsc::Receiver<Done>,
    /// Counters of predecessors.
    carried: Carried,
    /// What a receive reads into.
    buffer: Box<[u8]>,
    /// When the VFs were last judged.
    watched: Time,
    /// [`host::memory::poison_events`] when it was last looked at.
    poisoned: u64,
    /// What a successor needs.
    journal: Arc<Journal>,
    rest: Rest,
    vault: PortVault,
    /// Where recordings of VFs go that are quarantined.
    flights: Files,
    /// The port is an heir that has not served a round yet.
    unproven: bool,
}

/// Where a port is between its beginning and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    /// Every client is let go, and none is taken any more.
    Ending,
    /// A successor goes on with everything.
    Left,
}

/// How a port's thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every client is let go.
    Ended,
    /// A successor has the port.
    HandedOver,
    /// It could not go on, and has logged why; whoever opens the port again goes on with its clients.
    Failed,
}

/// Bus 0, device 1: where the PF would be on a board. Nobody routes by it here.
pub const PF_RID: Rid = Rid(0x0008);
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

    /// Wakes the port.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }
}

/// Where a port finds its commands. It outlives a port that fails.
#[derive(Debug)]
pub struct Inbox {
    commands: mpsc::Receiver<Command>,
    waker: Waker,
}

impl Inbox {
    /// An empty one, and the way into it.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> std::io::Result<(Self, Handle)> {
        let (sender, commands) = mpsc::channel();
        let waker = Waker::new()?;
        let handle = Handle { commands: sender, waker: waker.clone() };
        Ok((Self { commands, waker }, handle))
    }
}
