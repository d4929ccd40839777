//! Private memory of a call of the card: frames and descriptors that pass through. No later call reads it.

use crate::plain::BurstDescriptors;
use crate::tx_ring::PacketDescriptors;
use alloc::boxed::Box;
use alloc::vec::Vec;
use rings::FrameMemory;

/// Private memory of a call for its frames and descriptors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scratch {
    /// True if every frame is sent alone, and none in a burst.
    pub(crate) careful: bool,
    /// VFs with receive descriptors that were filled and not yet given back, a bit each. None between two calls.
    pub(crate) reached: u64,
    /// Private memory of frames and packets, once some have passed; `None` while it is lent to `rings`.
    pub(crate) places: Option<Box<FrameMemory>>,
    /// Transmit descriptors of a burst of frames.
    pub(crate) plain: BurstDescriptors,
    /// Descriptors of the packet that was taken last.
    pub(crate) gathered: PacketDescriptors,
    /// Bytes of a received frame with its check sequence.
    pub(crate) checked: Vec<u8>,
}
