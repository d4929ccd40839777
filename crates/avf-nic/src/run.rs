//! A run: descriptors at hand that each are a whole frame, without a tag or a context. They are read together, and such a frame
//! goes from its buffer to the plane without being gathered first.
//!
//! Left out: every other packet (`transmit`).

use crate::transmit::TxQueue;
use avf::descriptor::tx::{self, Buffer, Data, SIZE};
use avf::ids::{LONGEST, MIN_FRAME, SHORTEST};
use pcie::{Access, Bus, DmaFault, FRAMES_AHEAD, Function};

/// Descriptors that are read at a time.
const MOST: usize = 32;

/// Descriptors of a ring from its head on, as they were read. The first `taken` of them are frames that have left.
pub(crate) struct AtHand {
    raw: [[u8; SIZE]; MOST],
    at: u64,
    count: usize,
    taken: usize,
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
        Ok(Self { raw, at, count, taken: 0 })
    }

    /// The buffer of the next frame; `None` at the end of what was read, and before a packet that is more than a descriptor.
    #[inline]
    pub(crate) fn next(&self) -> Option<Buffer> {
        let buffer = tx::alone(self.raw[..self.count].get(self.taken)?)?;
        (MIN_FRAME..=LONGEST).contains(&usize::from(buffer.length)).then_some(buffer)
    }

    /// Has the bus fetch the frame that comes [`FRAMES_AHEAD`] after the next one.
    #[inline]
    pub(crate) fn prefetch<B: Bus>(&self, length: usize, own: Function, bus: &mut B) {
        if let Some(raw) = self.raw[..self.count].get(self.taken + FRAMES_AHEAD) {
            bus.prefetch(own, (tx::address(raw), length), Access::Read);
        }
    }

    /// What the next frame's descriptor says of its headers.
    pub(crate) fn data(&self) -> Data {
        self.raw.get(self.taken).map(Data::parse).unwrap_or_default()
    }

    /// The next frame's bytes are here.
    #[inline]
    pub(crate) fn take(&mut self) {
        self.taken += 1;
    }

    /// Frames that were taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// Tells the driver of those descriptors of the taken frames that ask for it. What lies between two of them is written
    /// as it was read: the driver may not use it again before it is told.
    pub(crate) fn report<B: Bus>(&mut self, own: Function, bus: &mut B) -> Result<(), DmaFault> {
        let taken = &mut self.raw[..self.taken];
        let reports = |raw: &[u8; SIZE]| tx::alone(raw).is_some_and(|buffer| buffer.report_status);
        let (Some(first), Some(last)) = (taken.iter().position(reports), taken.iter().rposition(reports))
        else {
            return Ok(());
        };
        let told = &mut taken[first..=last];
        for raw in told.iter_mut().filter(|raw| reports(raw)) {
            raw[SIZE / 2..].copy_from_slice(&tx::done());
        }
        let at = self.at.wrapping_add((first * SIZE) as u64);
        bus.dma_write_descriptors(own, at, told.as_flattened(), SIZE)
    }
}

/// Copies a frame out of its buffer, and pads it with zeros to the shortest frame. Returns its length; `None` if the buffer
/// cannot be read.
#[inline(always)]
pub(crate) fn fetch<B: Bus>(buffer: &Buffer, own: Function, into: &mut [u8], bus: &mut B) -> Option<usize> {
    let length = usize::from(buffer.length);
    bus.dma_read(own, buffer.address, into.get_mut(..length)?).ok()?;
    if length < SHORTEST {
        into.get_mut(length..SHORTEST)?.fill(0);
    }
    Some(length.max(SHORTEST))
}
