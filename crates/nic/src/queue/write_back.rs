//! Descriptors that the card is done with and has not given back yet: they go back in one bus request a burst
//! (two where the ring wraps), at the end of a poll at the latest. That is sooner than WTHRESH asks for, so
//! there is nothing that TXDCTL.SWFLSH would have to flush. Left out: which descriptors those are.

use super::BURST;
use super::io::QueueIo;
use crate::damaged::Damaged;
use alloc::vec::Vec;
use i82576::descriptor::{SIZE, tx};
use pcie::{Bus, DmaFault, Hint, Iova, Space};
use rings::Ring;
use serde::{Deserialize, Serialize};

/// Where a queue tells how far it is.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// Offset of the head register.
    pub register: u32,
    /// Where the head is written in memory; descriptors are then left alone.
    pub memory: Option<Iova>,
}

/// Consecutive descriptors of a ring, as they will read in memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "SavedBatch", try_from = "SavedBatch")]
pub struct Batch {
    raw: [[u8; SIZE]; BURST],
    count: usize,
    /// Ring index of the first, or of the next one if there is none.
    at: u32,
    /// One of them says something to software; without that, memory is left alone.
    speaks: bool,
    /// Something was given back that software does not know of yet.
    spoke: bool,
    /// The ring itself faulted; it stays silent until it is set up anew.
    halted: bool,
    /// The window of the ring.
    hint: Hint,
}

/// A batch as it is saved: what waits, and nothing of what went before.
#[derive(Serialize, Deserialize)]
struct SavedBatch {
    raw: Vec<[u8; SIZE]>,
    at: u32,
    speaks: bool,
    spoke: bool,
    halted: bool,
}

impl From<Batch> for SavedBatch {
    fn from(batch: Batch) -> Self {
        let Batch { raw, count, at, speaks, spoke, halted, .. } = batch;
        Self { raw: raw[..count].to_vec(), at, speaks, spoke, halted }
    }
}

impl TryFrom<SavedBatch> for Batch {
    type Error = Damaged;

    fn try_from(saved: SavedBatch) -> Result<Self, Damaged> {
        let SavedBatch { raw: waiting, at, speaks, spoke, halted } = saved;
        let (raw, count) = burst(&waiting, [0; SIZE])?;
        Ok(Self { raw, count, at, speaks, spoke, halted, hint: Hint(0) })
    }
}

/// Saved descriptors in a place for a burst, and how many they are.
pub(in crate::queue) fn burst<T: Copy>(saved: &[T], empty: T) -> Result<([T; BURST], usize), Damaged> {
    let mut all = [empty; BURST];
    let place = all.get_mut(..saved.len()).ok_or(Damaged("more descriptors wait than a burst has"))?;
    place.copy_from_slice(saved);
    Ok((all, saved.len()))
}

impl Batch {
    /// Nothing, at a ring index.
    #[must_use]
    pub fn at(index: u32) -> Self {
        Self::of(index, false, false)
    }

    /// An empty batch at a ring index. `spoke`: descriptors were given back without an interrupt yet. `halted`: the ring has faulted.
    #[must_use]
    pub fn of(index: u32, spoke: bool, halted: bool) -> Self {
        let raw = [[0; SIZE]; BURST];
        Self { raw, count: 0, at: index, speaks: false, spoke, halted, hint: Hint(0) }
    }

    /// Returns true if descriptors were given back without an interrupt yet.
    #[must_use]
    pub fn spoke(&self) -> bool {
        self.spoke
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

    /// The ring is not to be touched any more.
    pub fn halt(&mut self) {
        self.halted = true;
    }

    /// Whether the ring has faulted.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.halted
    }

    /// Adds the next descriptor; `speaks` if software waits for it. A full batch must be flushed first.
    #[inline(always)]
    pub fn push(&mut self, raw: [u8; SIZE], speaks: bool) {
        if let Some(slot) = self.raw.get_mut(self.count) {
            *slot = raw;
            self.count += 1;
            self.speaks |= speaks;
        }
    }

    /// Adds transmit descriptors, as many as there is room for, those that ask for a report as done.
    pub fn push_sent(&mut self, sent: &[[u8; SIZE]]) {
        let (mut count, mut reports) = (0, 0);
        for (slot, raw) in self.raw[self.count..].iter_mut().zip(sent) {
            let report = tx::report_of(raw);
            *slot = tx::reported(*raw, report);
            (count, reports) = (count + 1, reports | report);
        }
        self.count += count;
        self.speaks |= reports != 0;
    }

    /// Gives back what is done, if the queue has a `ring`; answers whether an interrupt is due.
    ///
    /// # Errors
    /// [`DmaFault`] if the ring is not in the function's memory; it then stays silent until it is set up anew.
    pub fn finish<B: Bus>(
        &mut self,
        io: &mut QueueIo<'_, B>,
        ring: Option<Ring>,
        way: Way,
    ) -> Result<bool, DmaFault> {
        if let Some(ring) = ring.filter(|_| !self.halted) {
            let flushed = self.flush(io, &ring, way);
            self.halted |= flushed.is_err();
            flushed?;
        }
        Ok(core::mem::take(&mut self.spoke))
    }

    /// Gives the descriptors back, or tells the head instead, and moves on.
    ///
    /// # Errors
    /// [`DmaFault`] if that is not in the function's memory; the descriptors are then lost.
    pub fn flush<B: Bus>(&mut self, io: &mut QueueIo<'_, B>, ring: &Ring, way: Way) -> Result<(), DmaFault> {
        let (count, from) = (self.count, self.at);
        if self.move_on(ring) {
            match way.memory {
                Some(address) => io.bus.dma_write(io.function, address, &self.at.to_le_bytes())?,
                None => self.write(io, ring, (from, count))?,
            }
            self.spoke = true;
        }
        io.file.set(way.register, self.at);
        Ok(())
    }

    fn write<B: Bus>(
        &mut self,
        io: &mut QueueIo<'_, B>,
        ring: &Ring,
        (from, count): (u32, usize),
    ) -> Result<(), DmaFault> {
        let before_wrap = ring.contiguous(from, count as u32) as usize;
        let (one, two) = self.raw[..count].split_at(before_wrap);
        for (at, raw) in [(from, one), (0, two)] {
            if !raw.is_empty() {
                let space = Space { function: io.function, hint: &mut self.hint };
                io.bus.write_descriptors(space, ring.address(at), raw.as_flattened(), SIZE)?;
            }
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
}
