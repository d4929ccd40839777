//! Memory for the frames and chains that pass through the card in one call. No later call reads its contents.

use crate::receive::ReceivedHeaders;
use crate::transmit::FetchedTransmitChains;
use alloc::boxed::Box;
use pcie::burst::{BURST, HEADERS};
use rings::FrameMemory;

/// Memory for the frames of one call of the card.
#[derive(Debug)]
pub(crate) struct FrameScratchMemory {
    /// True if every frame is sent alone, and none in a burst.
    pub(crate) careful: bool,
    /// VFs with filled receive buffers that their drivers have not got back, a bit each. None between two calls.
    pub(crate) reached: u64,
    /// Memory of crate `rings` for frames and packets; `None` before the first frame, and while `rings` uses it.
    pub(crate) places: Option<Box<FrameMemory>>,
    /// Chains of the transmit ring that is being visited.
    pub(crate) sent: Box<FetchedTransmitChains>,
    /// Headers of the frames that a receive ring gets in a burst.
    pub(crate) headers: Box<ReceivedHeaders>,
}

impl Default for FrameScratchMemory {
    fn default() -> Self {
        Self {
            careful: false,
            reached: 0,
            places: None,
            sent: Box::default(),
            headers: Box::new([[0; HEADERS]; BURST]),
        }
    }
}
