//! The queues of the card: sixteen of each direction, and the buffer where received frames wait for descriptors. Left out: what a
//! queue does (`queue`), and what waits (`buffer`).

use crate::buffer::PacketBuffer;
use crate::queue::receive::ReceiveQueue;
use crate::queue::transmit::TransmitQueue;
use alloc::boxed::Box;
use alloc::vec::Vec;
use i82576::Queue;
use i82576::ids::QUEUES;

/// A value for each queue. That their number is part of the type saves a check wherever one is asked for.
pub(crate) type PerQueue<T> = Box<[T; QUEUES]>;

/// Returns the values of all sixteen queues, in their order.
pub(crate) fn per_queue<T>(all: Vec<T>) -> PerQueue<T> {
    let Ok(all) = all.into_boxed_slice().try_into() else { unreachable!("there are sixteen queues") };
    all
}

/// The queues, and what waits for them.
#[derive(Debug, Clone)]
pub(crate) struct Queues {
    /// The receive queues: descriptors fetched ahead, and filled and not given back.
    pub(crate) rx: PerQueue<ReceiveQueue>,
    /// Frames that wait for their queues to get descriptors.
    pub(crate) buffer: PacketBuffer,
    /// The transmit queues: descriptors fetched ahead, contexts, and packets of which segments wait.
    pub(crate) tx: PerQueue<TransmitQueue>,
    /// Transmit queues that may have something to send, a bit each.
    pub(crate) ready: u16,
    /// Transmit queue at which the next round starts, so that none is always first.
    pub(crate) first: u8,
}

impl Queues {
    /// Queues that hold nothing.
    pub(crate) fn new() -> Self {
        Self {
            rx: per_queue(Queue::all().map(ReceiveQueue::new).collect()),
            buffer: PacketBuffer::new(),
            tx: per_queue(Queue::all().map(TransmitQueue::new).collect()),
            ready: 0,
            first: 0,
        }
    }
}
