//! Scratch memory for the frames and chains of one call to the card. No later call reads its contents.

use crate::joined::JoinedPackets;
use crate::moderation::InterruptIntervals;
use crate::receive::ReceivedHeaders;
use crate::transmit::FetchedTransmitChains;
use alloc::boxed::Box;
use pcie::burst::{BURST, HEADERS};
use plane::{FrameTrunk, PortSet};
use rings::FrameMemory;
use units::Time;

/// Scratch memory for the frames and chains of one call to the card.
#[derive(Debug)]
pub(crate) struct FrameScratchMemory {
    /// True if every frame is sent alone, and none in a burst.
    pub(crate) careful: bool,
    /// Bit mask of the VFs with filled receive buffers that were not yet returned to their drivers; 0 between two
    /// calls.
    pub(crate) reached: u64,
    /// VFs whose devices are in other parts of the card.
    pub(crate) away: PortSet,
    /// Trunk to the other parts of the card.
    pub(crate) trunk: Option<Box<dyn FrameTrunk>>,
    /// Memory of crate `rings` for frames and packets. `None` before the first frame, and while crate `rings` uses the
    /// memory.
    pub(crate) places: Option<Box<FrameMemory>>,
    /// Chains of the transmit ring that is being visited.
    pub(crate) sent: Box<FetchedTransmitChains>,
    /// Least times between two interrupts of a ring, as configured.
    pub(crate) intervals: InterruptIntervals,
    /// Time of the call to the card.
    pub(crate) now: Time,
    /// Packets that are being joined from TCP segments; none between two calls.
    pub(crate) joined: JoinedPackets,
    /// Headers of the frames that a receive ring gets in a burst.
    pub(crate) headers: Box<ReceivedHeaders>,
}

impl Default for FrameScratchMemory {
    fn default() -> Self {
        Self {
            careful: false,
            reached: 0,
            away: PortSet::NONE,
            trunk: None,
            places: None,
            sent: Box::default(),
            intervals: InterruptIntervals::default(),
            now: Time::ZERO,
            joined: JoinedPackets::default(),
            headers: Box::new([[0; HEADERS]; BURST]),
        }
    }
}
