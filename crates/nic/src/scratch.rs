//! What lasts no longer than a call: the places where frames and descriptors are while they pass through, and what a
//! poll notes for its own end. Left out: everything that a next call has to know ([`State`](crate::State)).

use crate::conditions::Conditions;
use crate::queue::receive::Opened;
use crate::queue::transmit::Descriptors;
use crate::sizes::PACKET;
use alloc::boxed::Box;
use i82576::Time;
use i82576::ids::QUEUES;
use pcie::Function;
use rings::Places;

/// A receive queue in a poll.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receiving {
    /// Whose memory its ring and buffers are in.
    pub(crate) function: Function,
    /// Its ring and buffers; `None` if it receives nothing.
    pub(crate) opened: Option<Opened>,
}

impl Receiving {
    const NOTHING: Self = Self { function: Function::Pf, opened: None };
}

/// A poll's notes, and its places.
#[derive(Debug, Clone)]
pub(crate) struct Scratch {
    /// The moment of the poll under way.
    pub(crate) now: Time,
    /// What holds for all of it.
    pub(crate) conditions: Conditions,
    /// What was found out for one frame serves others, and what is usual is not looked at closely.
    pub(crate) shortcuts: bool,
    /// Most frames need no more than a glance.
    pub(crate) glances: bool,
    /// Receive queues that got a frame in this poll, a bit each.
    pub(crate) rx_touched: u16,
    /// Those of them that got one which interrupts at once.
    pub(crate) rx_urgent: u16,
    /// Receive queues whose place in [`Self::receiving`] is as their registers have it, a bit each.
    pub(crate) opened: u16,
    /// The receive queues, sixteen, as far as they were looked at in this poll.
    pub(crate) receiving: [Receiving; QUEUES],
    /// Private memory of frames and packets; `None` while it is lent to `rings`.
    pub(crate) places: Option<Box<Places>>,
    /// Requests for memory that were refused since they were counted.
    pub(crate) faults: u64,
    /// The descriptors of the packet that is taken from a transmit queue.
    pub(crate) descriptors: Descriptors,
}

impl Scratch {
    /// Nothing is under way.
    pub(crate) fn new() -> Self {
        Self {
            now: Time::ZERO,
            conditions: Conditions::default(),
            shortcuts: true,
            glances: false,
            rx_touched: 0,
            rx_urgent: 0,
            opened: 0,
            receiving: [Receiving::NOTHING; QUEUES],
            places: Some(Places::new(PACKET)),
            faults: 0,
            descriptors: Descriptors::default(),
        }
    }
}
