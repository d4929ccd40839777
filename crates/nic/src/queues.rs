//! The queues of the card (`queue`): sixteen of each direction, and the buffer in which received frames wait for
//! descriptors (`buffer`).

use crate::buffer::PacketBuffer;
use crate::queue::receive::ReceiveQueue;
use crate::queue::transmit::TransmitQueue;
use alloc::boxed::Box;
use alloc::vec::Vec;
use i82576::QueueIndex;
use i82576::ids::QUEUES;

/// Value for each of the card's sixteen queues. The array's length is part of its type, which saves bounds checks.
pub(crate) type PerQueue<T> = Box<[T; QUEUES]>;

/// Converts a list of sixteen values, one for each queue in order, to an array.
pub(crate) fn per_queue<T>(all: Vec<T>) -> PerQueue<T> {
    let Ok(all) = all.into_boxed_slice().try_into() else { unreachable!("a port has sixteen queues") };
    all
}

/// Queues of the card, and the received frames that wait for descriptors.
#[derive(Debug, Clone)]
pub(crate) struct CardQueues {
    /// Receive queues: descriptors fetched ahead, and those filled and not written back.
    pub(crate) rx: PerQueue<ReceiveQueue>,
    /// Frames that wait for receive descriptors.
    pub(crate) buffer: PacketBuffer,
    /// Transmit queues: descriptors fetched ahead, contexts, and packets with pending segments.
    pub(crate) tx: PerQueue<TransmitQueue>,
    /// Transmit queues that may have something to send, a bit each.
    pub(crate) ready: u16,
    /// Transmit queue that the next poll visits first, so that no queue is always first.
    pub(crate) first: u8,
}

impl CardQueues {
    /// Creates queues without descriptors and frames.
    pub(crate) fn new() -> Self {
        Self {
            rx: per_queue(QueueIndex::all().map(ReceiveQueue::new).collect()),
            buffer: PacketBuffer::new(),
            tx: per_queue(QueueIndex::all().map(TransmitQueue::new).collect()),
            ready: 0,
            first: 0,
        }
    }
}
