//! Memory for the frames and descriptors that pass through the card in one call, and intermediate values of a poll. All
//! that a later call needs is in [`NicState`](crate::NicState).

use crate::conditions::PollSettings;
use crate::queue::receive::ReceiveQueueSetup;
use crate::queue::transmit::{BurstDescriptors, PacketDescriptors};
use crate::sizes::PACKET;
use alloc::boxed::Box;
use i82576::ids::{MAX_VFS, QUEUES};
use i82576::{Time, WorkCost};
use pcie::Function;
use plane::switch::ResetCounts;
use rings::FrameMemory;

/// Owner and decoded registers of a receive queue, kept during a poll.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CachedReceiveQueue {
    /// Function that owns the queue's ring and buffers.
    pub(crate) function: Function,
    /// Decoded ring and buffer settings of the receive queue; `None` if the queue receives nothing.
    pub(crate) opened: Option<ReceiveQueueSetup>,
}

impl CachedReceiveQueue {
    const NOTHING: Self = Self { function: Function::Pf, opened: None };
}

/// Intermediate values of a poll, and memory for its frames and descriptors.
#[derive(Debug, Clone)]
pub(crate) struct PollScratchMemory {
    /// Time of the card's current poll.
    pub(crate) now: Time,
    /// Settings that all frames of the poll share.
    pub(crate) conditions: PollSettings,
    /// True if the card may move frames in bursts and remember decisions for flows. Tests set it to false to compare
    /// such a card with one that sends each frame alone.
    pub(crate) shortcuts: bool,
    /// True if plain frames may be received after a quick check of their first 64 bytes.
    pub(crate) glances: bool,
    /// Receive queues that got a frame in this poll, a bit each.
    pub(crate) rx_touched: u16,
    /// Receive queues that got an urgent frame, which interrupts at once, a bit each.
    pub(crate) rx_urgent: u16,
    /// Receive queues whose registers were decoded into [`Self::receiving`] since their last change, a bit each.
    pub(crate) opened: u16,
    /// Decoded setups of the sixteen receive queues; an element is valid if its bit in `opened` is set.
    pub(crate) receiving: [CachedReceiveQueue; QUEUES],
    /// Memory of crate `rings` for frames and packets in transit; `None` while `rings` uses it.
    pub(crate) places: Option<Box<FrameMemory>>,
    /// Number of refused memory requests that the poll has not counted yet.
    pub(crate) faults: u64,
    /// Cost of the resets of VFs that [`Nic::take_work`](crate::Nic::take_work) has not returned yet.
    pub(crate) work: WorkCost,
    /// Resets of the VFs, for the switch's tables.
    pub(crate) resets: ResetCounts<MAX_VFS>,
    /// Descriptors that a burst of frames takes from a transmit queue.
    pub(crate) upcoming: BurstDescriptors,
    /// Descriptors of the packet that is taken from a transmit queue.
    pub(crate) descriptors: PacketDescriptors,
}

impl PollScratchMemory {
    /// Creates the memory of a card that is between two calls.
    pub(crate) fn new() -> Self {
        Self {
            now: Time::ZERO,
            conditions: PollSettings::default(),
            shortcuts: true,
            glances: false,
            rx_touched: 0,
            rx_urgent: 0,
            opened: 0,
            receiving: [CachedReceiveQueue::NOTHING; QUEUES],
            places: Some(FrameMemory::new(PACKET)),
            faults: 0,
            work: WorkCost::default(),
            resets: ResetCounts::default(),
            upcoming: BurstDescriptors::default(),
            descriptors: PacketDescriptors::default(),
        }
    }
}
