//! What lasts no longer than a call: the places where frames and descriptors are while they pass through, and what a
//! poll notes for its own end. Left out: everything that a next call has to know ([`State`](crate::State)).

use crate::forward::MAX_PACKET;
use crate::frame::HEADROOM;
use crate::queue::transmit::{Descriptors, NO_DESCRIPTORS};
use crate::uplink::Tally;
use alloc::boxed::Box;
use alloc::vec;
use i82576::Time;
use i82576::ids::MAX_FRAME;

/// Bytes that a packet may need in its place.
pub(crate) const PACKET: usize = HEADROOM + MAX_PACKET;

/// Where frames are while they pass through.
#[derive(Debug, Clone, Default)]
pub(crate) struct Staging {
    /// A packet of a transmit queue.
    pub(crate) packet: Box<[u8]>,
    /// A frame from the wire, or a segment of the packet.
    pub(crate) frame: Box<[u8]>,
}

/// A poll's notes, and its places.
#[derive(Debug, Clone)]
pub(crate) struct Scratch {
    /// The moment of the poll under way.
    pub(crate) now: Time,
    /// Receive queues that got a frame in this poll, a bit each.
    pub(crate) rx_touched: u16,
    /// Those of them that got one which interrupts at once.
    pub(crate) rx_urgent: u16,
    /// What crossed the wire in this poll; its end adds it to the registers.
    pub(crate) tally: Tally,
    /// Where frames are.
    pub(crate) staging: Staging,
    /// The descriptors of the packet that is taken from a transmit queue.
    pub(crate) descriptors: Descriptors,
}

impl Scratch {
    /// Nothing is under way.
    pub(crate) fn new() -> Self {
        let [packet, frame] = [PACKET, HEADROOM + MAX_FRAME].map(|bytes| vec![0; bytes].into_boxed_slice());
        Self {
            now: Time::ZERO,
            rx_touched: 0,
            rx_urgent: 0,
            tally: Tally::default(),
            staging: Staging { packet, frame },
            descriptors: NO_DESCRIPTORS,
        }
    }
}
