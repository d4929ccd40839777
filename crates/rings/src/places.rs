//! Private memory of a card: a burst of frames, and one packet that travels alone.

use crate::buffers::Buffers;
use crate::frames::Frames;
use crate::staging::Staging;
use alloc::boxed::Box;

/// Private memory for the frames and packets that pass through a card.
#[derive(Debug, Clone)]
pub struct Places {
    pub(crate) frames: Frames,
    /// Bytes of a packet of a transmit queue, behind headroom.
    pub(crate) packet: Staging,
    /// Buffers of a packet whose bytes have not been copied yet.
    pub(crate) buffers: Buffers,
}

impl Places {
    /// Creates private memory for packets of up to `bytes` bytes. A longer packet allocates more.
    #[must_use]
    pub fn new(bytes: usize) -> Box<Self> {
        Box::new(Self {
            frames: Frames::new(),
            packet: Staging::with_room(bytes),
            buffers: Buffers::default(),
        })
    }
}
