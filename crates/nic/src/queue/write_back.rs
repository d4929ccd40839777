//! Write-back of a transmit queue's descriptors. The card collects finished descriptors in a batch, and writes them
//! back in one bus request (two where the ring wraps), at the end of a visit to the queue at the latest. WTHRESH would
//! permit to wait longer, so TXDCTL.SWFLSH finds nothing to flush.
//!
//! Receive descriptors are written back in `receive` (`rings`); only their saved form is such a batch.

use super::BURST;
use super::io::QueueIo;
use crate::damaged::InvalidStateError;
use alloc::vec::Vec;
use i82576::descriptor::{SIZE, tx};
use pcie::{Bus, DmaFault, HintedMemory, Iova, MemoryHint};
use rings::Ring;
use serde::{Deserialize, Serialize};

/// Write-back method of a queue: the descriptors, or the head alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteBackMethod {
    /// Offset of the transmit queue's head register.
    pub register: u32,
    /// Address of the head write-back (TDWBAL), which replaces the write-back of descriptors.
    pub memory: Option<Iova>,
}

/// Consecutive finished descriptors of a ring, as they will be written to memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "SavedBatch", try_from = "SavedBatch")]
pub(crate) struct WriteBackBatch {
    raw: [[u8; SIZE]; BURST],
    count: usize,
    /// Ring index of the batch's first descriptor. If the batch is empty, ring index of the next descriptor that will
    /// be finished.
    at: u32,
    /// True if a descriptor of the batch requests a report to software (RS). Otherwise the batch writes nothing to
    /// memory.
    speaks: bool,
    /// True if the queue has written back descriptors since its last interrupt.
    spoke: bool,
    /// True if an access to the descriptor ring has failed. The queue stops until software sets the ring up again.
    halted: bool,
    /// Hint by which the bus finds the memory of the transmit ring faster.
    hint: MemoryHint,
}

/// Saved form of a [`WriteBackBatch`]: finished descriptors that are not written back yet.
#[derive(Serialize, Deserialize)]
struct SavedBatch {
    raw: Vec<[u8; SIZE]>,
    at: u32,
    speaks: bool,
    spoke: bool,
    halted: bool,
}

impl From<WriteBackBatch> for SavedBatch {
    fn from(batch: WriteBackBatch) -> Self {
        let WriteBackBatch { raw, count, at, speaks, spoke, halted, .. } = batch;
        Self { raw: raw[..count].to_vec(), at, speaks, spoke, halted }
    }
}

impl TryFrom<SavedBatch> for WriteBackBatch {
    type Error = InvalidStateError;

    fn try_from(saved: SavedBatch) -> Result<Self, InvalidStateError> {
        let SavedBatch { raw: waiting, at, speaks, spoke, halted } = saved;
        let (raw, count) = burst(&waiting, [0; SIZE])?;
        Ok(Self { raw, count, at, speaks, spoke, halted, hint: MemoryHint(0) })
    }
}

/// Copies saved descriptors into an array of burst length. Returns the array and the number of copied descriptors.
///
/// # Errors
/// [`InvalidStateError`] if they are more than a burst.
pub(in crate::queue) fn burst<T: Copy>(
    saved: &[T],
    empty: T,
) -> Result<([T; BURST], usize), InvalidStateError> {
    let mut all = [empty; BURST];
    let place = all
        .get_mut(..saved.len())
        .ok_or(InvalidStateError("a queue has more than 32 descriptors with a pending write-back"))?;
    place.copy_from_slice(saved);
    Ok((all, saved.len()))
}

impl WriteBackBatch {
    /// Creates an empty batch of descriptors at a ring index.
    #[must_use]
    pub(crate) fn at(index: u32) -> Self {
        Self::of(index, false, false)
    }

    /// Creates an empty batch at a ring index. `spoke`: descriptors were written back since the queue's last interrupt.
    /// `halted`: the ring has faulted.
    #[must_use]
    pub(crate) fn of(index: u32, spoke: bool, halted: bool) -> Self {
        let raw = [[0; SIZE]; BURST];
        Self { raw, count: 0, at: index, speaks: false, spoke, halted, hint: MemoryHint(0) }
    }

    /// Returns true if descriptors were written back since the queue's last interrupt.
    #[must_use]
    pub(crate) fn spoke(&self) -> bool {
        self.spoke
    }

    /// Returns true if the batch of descriptors is full.
    #[must_use]
    pub(crate) fn is_full(&self) -> bool {
        self.count == BURST
    }

    /// Returns the ring index of the first descriptor that is not written back: the value of the head register.
    #[must_use]
    pub(crate) fn head(&self) -> u32 {
        self.at
    }

    /// Returns the number of descriptors in the batch.
    #[must_use]
    pub(crate) fn waiting(&self) -> u32 {
        self.count as u32
    }

    /// Stops all accesses to the descriptor ring.
    pub(crate) fn halt(&mut self) {
        self.halted = true;
    }

    /// Returns true if the transmit ring has faulted.
    #[must_use]
    pub(crate) fn is_halted(&self) -> bool {
        self.halted
    }

    /// Adds the next descriptor to the batch. `speaks` is true if the descriptor requests a report to software (RS). A
    /// full batch must be flushed first.
    #[inline(always)]
    pub(crate) fn push(&mut self, raw: [u8; SIZE], speaks: bool) {
        if let Some(slot) = self.raw.get_mut(self.count) {
            *slot = raw;
            self.count += 1;
            self.speaks |= speaks;
        }
    }

    /// Adds transmit descriptors up to the batch's room. Those that request a report (RS) get their done bit (DD).
    pub(crate) fn push_sent(&mut self, sent: &[[u8; SIZE]]) {
        let (mut count, mut reports) = (0, 0);
        for (slot, raw) in self.raw[self.count..].iter_mut().zip(sent) {
            let report = tx::report_of(raw);
            *slot = tx::reported(*raw, report);
            (count, reports) = (count + 1, reports | report);
        }
        self.count += count;
        self.speaks |= reports != 0;
    }

    /// Writes the batch back to `ring`, if the queue has one that has not faulted. Returns true if an interrupt is due.
    ///
    /// # Errors
    /// [`DmaFault`] if the ring is not in the function's memory. The queue stops until software sets the ring up again.
    pub(crate) fn finish<B: Bus>(
        &mut self,
        io: &mut QueueIo<'_, B>,
        ring: Option<Ring>,
        way: WriteBackMethod,
    ) -> Result<bool, DmaFault> {
        if let Some(ring) = ring.filter(|_| !self.halted) {
            let flushed = self.flush(io, &ring, way);
            self.halted |= flushed.is_err();
            flushed?;
        }
        Ok(core::mem::take(&mut self.spoke))
    }

    /// Writes back the descriptors or the head, and empties the batch.
    ///
    /// # Errors
    /// [`DmaFault`] if the address is not in the function's memory; software never sees these descriptors.
    pub(crate) fn flush<B: Bus>(
        &mut self,
        io: &mut QueueIo<'_, B>,
        ring: &Ring,
        way: WriteBackMethod,
    ) -> Result<(), DmaFault> {
        let (count, from) = (self.count, self.at);
        if self.move_on(ring) {
            match way.memory {
                Some(address) => io.bus.dma_write(io.function, address, &self.at.to_le_bytes())?,
                None => self.write(io, ring, (from, count))?,
            }
            self.spoke = true;
        }
        // Last: software that reads the new head must find the descriptors in memory.
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
                let space = HintedMemory { function: io.function, hint: &mut self.hint };
                io.bus.write_descriptors(space, ring.address(at), raw.as_flattened(), SIZE)?;
            }
        }
        Ok(())
    }

    /// Empties the batch and moves the head past its descriptors. Returns true if one of them requests a report (RS).
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
