//! Frames that ask for nothing, taken in runs: descriptors at hand of which each is a whole frame, as most are. Left out:
//! every other packet, and what the switch makes of a frame.

use super::TransmitQueue;
use crate::file::RegisterFile;
use crate::queue::BURST;
use crate::queue::ring::Ring;
use core::ops::{Range, RangeInclusive};
use i82576::descriptor::tx::{self, Buffer};
use i82576::ids::{FCS, MAX_FRAME};
use pcie::{Access, Bus, DmaFault, FRAMES_AHEAD, Function};
use plane::frame::HEADER;

/// Bytes that a frame may have, check sequence excluded.
const FRAME_BYTES: RangeInclusive<u16> = HEADER as u16..=(MAX_FRAME - FCS) as u16;

impl TransmitQueue {
    /// The places of the descriptors that come next, of which a burst is fetched if none is at hand; none while a packet
    /// waits, or is dropped up to its end. The ring was opened after the queue's registers were written the last time.
    ///
    /// # Errors
    /// [`DmaFault`] if the ring is not in the function's memory; it then stays silent until it is set up anew.
    pub(crate) fn at_hand<B: Bus>(
        &mut self,
        ring: &Ring,
        function: Function,
        bus: &mut B,
    ) -> Result<Range<usize>, DmaFault> {
        let next = self.next(ring);
        let available = ring.available(next);
        if available == 0 || self.skipping || self.done.is_halted() || !self.held.is_empty() {
            return Ok(0..0);
        }
        let fetched = self.fetch(ring, next, function, bus);
        if fetched.is_err() {
            self.done.halt();
        }
        let at = fetched?;
        Ok(at..self.fetched.min(at as u32 + available) as usize)
    }

    /// The buffer of the descriptor at a place, if it is a frame by itself that asks for nothing, as most are.
    #[must_use]
    #[inline]
    pub(crate) fn plain(&self, at: usize) -> Option<Buffer> {
        tx::plain(&self.burst[at % BURST]).filter(|buffer| FRAME_BYTES.contains(&buffer.length))
    }

    /// Has the bus fetch the frame that comes [`FRAMES_AHEAD`] after the one at a place.
    #[inline(always)]
    pub(crate) fn prefetch<B: Bus>(&self, at: usize, length: usize, function: Function, bus: &mut B) {
        let at = at + FRAMES_AHEAD;
        if at < self.fetched as usize {
            bus.prefetch(function, (tx::address(&self.burst[at % BURST]), length), Access::Read);
        }
    }

    /// Copies the frame of such a descriptor, which is the next one, to the start of `place`, and passes the descriptor.
    #[inline(always)]
    pub(crate) fn take_plain<B: Bus>(
        &mut self,
        at: usize,
        buffer: &Buffer,
        open: (&Ring, Function),
        file: &mut RegisterFile,
        bus: &mut B,
        place: &mut [u8],
    ) -> Result<(), DmaFault> {
        let (ring, function) = open;
        let copied = bus.dma_read(function, buffer.address, place);
        let passed = self.pass(file, ring, function, bus, self.burst[at % BURST], buffer.report_status);
        self.effort = (1, if copied.is_ok() { place.len() } else { 0 });
        if passed.is_err() {
            self.done.halt();
        }
        passed.and(copied)
    }
}
