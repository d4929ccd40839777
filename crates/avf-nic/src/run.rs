//! A run: descriptors at hand that each are a whole frame and ask for nothing. They are read together, and such a frame goes
//! from its buffer to the plane without being gathered first. What a frame needs beyond that is asked where it always was.
//!
//! Left out: every other packet (`transmit`).

use crate::transmit::TxQueue;
use alloc::vec::Vec;
use avf::descriptor::tx::{self, Buffer, SIZE};
use avf::ids::{LONGEST, MIN_FRAME, SHORTEST};
use pcie::{Bus, DmaFault, Function};

/// Descriptors that are read at a time.
const MOST: usize = 32;

/// Descriptors of a ring from its head on, as they were read.
pub(crate) struct AtHand {
    raw: [[u8; SIZE]; MOST],
    count: usize,
}

impl AtHand {
    /// Reads up to `budget` descriptors of a queue that runs, as far as the ring's end.
    pub(crate) fn read<B: Bus>(
        queue: &TxQueue,
        budget: usize,
        own: Function,
        bus: &mut B,
    ) -> Result<Self, DmaFault> {
        let mut raw = [[0; SIZE]; MOST];
        let (at, left) = queue.ready();
        let count = left.min(budget).min(MOST);
        if count > 0 {
            bus.dma_read(own, at, raw[..count].as_flattened_mut())?;
        }
        Ok(Self { raw, count })
    }

    /// The buffers of the run: it ends before the first packet that is not a plain frame.
    pub(crate) fn run(&self) -> impl Iterator<Item = Buffer> {
        let fits = |buffer: &Buffer| (MIN_FRAME..=LONGEST).contains(&usize::from(buffer.length));
        self.raw[..self.count].iter().map_while(move |raw| tx::plain(raw).filter(fits))
    }
}

/// Puts a frame behind `headroom` bytes, as long as Ethernet wants it.
pub(crate) fn fetch<B: Bus>(
    buffer: &Buffer,
    headroom: usize,
    own: Function,
    into: &mut Vec<u8>,
    bus: &mut B,
) -> Result<(), DmaFault> {
    let end = headroom + usize::from(buffer.length);
    into.resize(end.max(headroom + SHORTEST), 0);
    bus.dma_read(own, buffer.address, &mut into[headroom..end])?;
    into[end..].fill(0);
    Ok(())
}
