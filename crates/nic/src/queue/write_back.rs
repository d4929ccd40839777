//! Descriptors that the card is done with and has not given back yet: they go back in one bus request a burst
//! (two where the ring wraps). Left out: which descriptors those are.

use super::BURST;
use super::ring::Ring;
use i82576::descriptor::SIZE;
use pcie::{Bus, DmaFault, Function, Iova};

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
    pub fn waiting(&self) -> u32 {
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
        let (count, from) = (self.count, self.at);
        if self.move_on(ring) {
            let before_wrap = ring.contiguous(from, count as u32) as usize;
            let (one, two) = self.raw[..count].split_at(before_wrap);
            bus.dma_write(function, ring.address(from), one.as_flattened())?;
            if !two.is_empty() {
                bus.dma_write(function, ring.address(0), two.as_flattened())?;
            }
            self.spoke = true;
        }
        Ok(())
    }

    /// Moves on and, instead of giving descriptors back, writes the head to `address`.
    ///
    /// # Errors
    /// [`DmaFault`] if that is not in the function's memory.
    pub fn flush_head<B: Bus>(
        &mut self,
        ring: &Ring,
        function: Function,
        bus: &mut B,
        address: Iova,
    ) -> Result<(), DmaFault> {
        if self.move_on(ring) {
            bus.dma_write(function, address, &self.at.to_le_bytes())?;
            self.spoke = true;
        }
        Ok(())
    }

    /// Empties the batch; answers whether software is to be told.
    fn move_on(&mut self, ring: &Ring) -> bool {
        let count = core::mem::take(&mut self.count) as u32;
        let speaks = core::mem::take(&mut self.speaks);
        if !ring.contains(self.at) {
            return false;
        }
        self.at = ring.advance(self.at, count);
        speaks
    }

    /// Whether software has something new to look at since it was last asked.
    pub fn announce(&mut self) -> bool {
        core::mem::take(&mut self.spoke)
    }
}
