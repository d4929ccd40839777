//! Private memory of a card: a burst of frames, and a packet of the careful way. Left out: what is done with them.

use crate::buffers::Buffers;
use crate::frames::Frames;
use crate::staging::Staging;
use alloc::boxed::Box;

/// Places for the frames that pass through a card.
#[derive(Debug, Clone)]
pub struct Places {
    pub(crate) frames: Frames,
    /// A packet of a transmit queue, behind headroom.
    pub(crate) packet: Staging,
    /// The buffers of a packet whose bytes have not been copied yet.
    pub(crate) buffers: Buffers,
}

impl Places {
    /// Places without a frame in them, with memory for packets of up to `bytes` bytes. A longer packet takes more.
    #[must_use]
    pub fn new(bytes: usize) -> Box<Self> {
        Box::new(Self {
            frames: Frames::new(),
            packet: Staging::with_room(bytes),
            buffers: Buffers::default(),
        })
    }
}
