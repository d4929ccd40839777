//! Private memory of a card: for a burst of frames, and for one packet outside bursts.

use crate::buffers::BufferChain;
use crate::frames::BurstMemory;
use crate::staging::StagedPacket;
use alloc::boxed::Box;

/// Private memory for the frames and packets that pass through a card.
#[derive(Debug, Clone)]
pub struct FrameMemory {
    pub(crate) frames: BurstMemory,
    /// Bytes of a packet of a transmit queue, behind headroom.
    pub(crate) packet: StagedPacket,
    /// Buffers of a packet whose bytes have not been copied yet.
    pub(crate) buffers: BufferChain,
}

impl FrameMemory {
    /// Creates private memory for packets of up to `bytes` bytes. A longer packet allocates more.
    #[must_use]
    pub fn new(bytes: usize) -> Box<Self> {
        Box::new(Self {
            frames: BurstMemory::new(),
            packet: StagedPacket::with_room(bytes),
            buffers: BufferChain::default(),
        })
    }
}
