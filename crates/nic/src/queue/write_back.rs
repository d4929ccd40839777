//! Descriptors that the card is done with and has not given back yet: they go back in one bus request a burst
//! (two where the ring wraps). Left out: which descriptors those are.

use super::BURST;
use super::ring::Ring;
use i82576::descriptor::SIZE;
use pcie::{Bus, DmaFault, Function};

/// Consecutive descriptors of a ring, as they will read in memory.
#[derive(Debug)]
pub struct Batch {
    raw: [[u8; SIZE]; BURST],
    count: usize,
    /// Ring index of the first, or of the next one if there is none.
    at: u32,
    /// One of them says something to software; without that, memory is left alone.
    speaks: bool,
    /// Something was given back that software does not know of yet.
    spoke: bool,
}

impl Batch {
    /// Nothing, at a ring index.
    #[must_use]
    pub fn at(index: u32) -> Self {
        Self { raw: [[0; SIZE]; BURST], count: 0, at: index, speaks: false, spoke: false }
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// No more fits.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.count == BURST
    }

    /// Ring index of the first descriptor that has not been given back: the head register.
    #[must_use]
    pub fn head(&self) -> u32 {
        self.at
    }

    /// Descriptors that wait.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.count as u32
    }

    /// Adds the next descriptor; `speaks` if software waits for it. A full batch must be flushed first.
    pub fn push(&mut self, raw: [u8; SIZE], speaks: bool) {
        if let Some(slot) = self.raw.get_mut(self.count) {
            *slot = raw;
            self.count += 1;
            self.speaks |= speaks;
        }
    }

    /// Gives the descriptors back and moves on.
    ///
    /// # Errors
    /// [`DmaFault`] if the ring is not in the function's memory; the descriptors are then lost.
    pub fn flush<B: Bus>(&mut self, ring: &Ring, function: Function, bus: &mut B) -> Result<(), DmaFault> {
        let (count, from, speaks) = (self.count, self.at, self.speaks);
        self.skip(ring);
        if speaks && ring.contains(from) {
            let before_wrap = ring.contiguous(from, count as u32) as usize;
            let (one, two) = self.raw[..count].split_at(before_wrap);
            bus.dma_write(function, ring.address(from), one.as_flattened())?;
            if !two.is_empty() {
                bus.dma_write(function, ring.address(0), two.as_flattened())?;
            }
        }
        Ok(())
    }

    /// Moves on without touching memory.
    pub fn skip(&mut self, ring: &Ring) {
        if ring.contains(self.at) {
            self.at = ring.advance(self.at, self.count as u32);
            self.spoke |= self.speaks;
        }
        (self.count, self.speaks) = (0, false);
    }

    /// Whether software has something new to look at since it was last asked.
    pub fn announce(&mut self) -> bool {
        core::mem::take(&mut self.spoke)
    }
}
