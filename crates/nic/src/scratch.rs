//! Private memory of a call of the card: places of frames and descriptors that pass through, and notes of a poll. All that a later
//! call needs is in [`State`](crate::State).

use crate::conditions::Conditions;
use crate::queue::receive::Opened;
use crate::queue::transmit::{Descriptors, Upcoming};
use crate::sizes::PACKET;
use alloc::boxed::Box;
use i82576::Time;
use i82576::ids::QUEUES;
use pcie::Function;
use rings::Places;

/// Receive queue of a poll.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receiving {
    /// Function whose memory holds its ring and buffers.
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
    /// Time of the poll.
    pub(crate) now: Time,
    /// Settings that all frames of the poll share.
    pub(crate) conditions: Conditions,
    /// Bursts and remembered flows are permitted. Tests compare the card with one that takes each frame the careful way.
    pub(crate) shortcuts: bool,
    /// A glance at a frame's head may be enough.
    pub(crate) glances: bool,
    /// Receive queues that got a frame in this poll, a bit each.
    pub(crate) rx_touched: u16,
    /// Receive queues that got a frame which interrupts at once, a bit each.
    pub(crate) rx_urgent: u16,
    /// Receive queues whose element of [`Self::receiving`] matches their registers, a bit each.
    pub(crate) opened: u16,
    /// The sixteen receive queues; an element counts if its bit in `opened` is set.
    pub(crate) receiving: [Receiving; QUEUES],
    /// Private memory of frames and packets; `None` while it is lent to `rings`.
    pub(crate) places: Option<Box<Places>>,
    /// Refused memory requests that are not counted yet.
    pub(crate) faults: u64,
    /// The descriptors that a burst takes from a transmit queue.
    pub(crate) upcoming: Upcoming,
    /// The descriptors of the packet that is taken from a transmit queue.
    pub(crate) descriptors: Descriptors,
}

impl Scratch {
    /// Creates the memory of a card that is between two calls.
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
            upcoming: Upcoming::default(),
            descriptors: Descriptors::default(),
        }
    }
}
