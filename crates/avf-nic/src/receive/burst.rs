//! Receive descriptors in bursts: posted ones are read ahead, and those of frames go back together, at the end of a call of the
//! card at the latest. Left out: what is in them (`avf::descriptor::rx`), and how a frame is laid out (`receive`).

use super::Room;
use avf::control::RxContext;
use avf::descriptor::rx::{Form, SHORT, SIZE, WriteBack, buffer};
use pcie::{Access, Bus, DmaFault, FRAMES_AHEAD, Function as BusFunction};

/// Descriptors that are read at a time.
const BURST: usize = 32;

/// Descriptors that follow each other in a ring, as bytes. Up to `filled` they are as the driver is to find them, and up to
/// `given` in its memory. The others are as the driver has posted them.
#[derive(Debug, Clone)]
pub(super) struct Burst {
    raw: [u8; BURST * SIZE],
    /// Where the first is in the driver's memory.
    at: u64,
    end: usize,
    filled: usize,
    given: usize,
}

impl Default for Burst {
    fn default() -> Self {
        Self { raw: [0; BURST * SIZE], at: 0, end: 0, filled: 0, given: 0 }
    }
}

impl Burst {
    /// Whether a posted descriptor is at hand.
    #[inline(always)]
    pub(super) fn has_one(&self) -> bool {
        self.filled < self.end
    }

    /// Puts bytes into the buffer of the next descriptor at hand. What is said of the bytes is their descriptor, but for the
    /// length.
    #[inline(always)]
    pub(super) fn put<B: Bus>(
        &mut self,
        form: Form,
        own: BusFunction,
        (bytes, said): (&[u8], WriteBack),
        bus: &mut B,
    ) -> Result<(), DmaFault> {
        let ahead = self.filled + FRAMES_AHEAD * form.size();
        if let Some(raw) = self.raw[..self.end].get(ahead..) {
            bus.prefetch(own, (buffer(raw), bytes.len()), Access::Write);
        }
        let Some(slot) = self.raw.get_mut(self.filled..self.filled + form.size()) else { return Ok(()) };
        bus.dma_write(own, buffer(slot), bytes)?;
        let raw = WriteBack { length: bytes.len() as u16, ..said }.emit(form);
        if form.size() == SIZE {
            slot.copy_from_slice(&raw);
        } else {
            slot.copy_from_slice(&raw[..SHORT]);
        }
        self.filled += form.size();
        Ok(())
    }

    /// Puts bytes into the next posted buffer, of which there is one at least; returns where the ring's head is then.
    pub(super) fn fill<B: Bus>(
        &mut self,
        context: &RxContext,
        room: &Room,
        own: BusFunction,
        (bytes, said): (&[u8], WriteBack),
        bus: &mut B,
    ) -> Result<u32, DmaFault> {
        if !self.has_one() {
            self.give_back(context, own, bus)?;
            self.read(context, room, own, bus)?;
        }
        self.put(context.form, own, (bytes, said), bus)?;
        Ok(room.next())
    }

    fn read<B: Bus>(
        &mut self,
        context: &RxContext,
        room: &Room,
        own: BusFunction,
        bus: &mut B,
    ) -> Result<(), DmaFault> {
        let size = context.form.size();
        let end = (room.contiguous() as usize).min(BURST) * size;
        (self.end, self.filled, self.given) = (0, 0, 0);
        self.at = context.base.wrapping_add(u64::from(room.head) * size as u64);
        bus.dma_read(own, self.at, &mut self.raw[..end])?;
        self.end = end;
        Ok(())
    }

    /// Puts what is filled into the driver's memory; answers whether there was anything.
    pub(super) fn give_back<B: Bus>(
        &mut self,
        context: &RxContext,
        own: BusFunction,
        bus: &mut B,
    ) -> Result<bool, DmaFault> {
        let (from, to) = (self.given, self.filled);
        if from == to {
            return Ok(false);
        }
        self.given = to;
        let at = self.at.wrapping_add(from as u64);
        bus.dma_write_descriptors(own, at, &self.raw[from..to], context.form.size())?;
        Ok(true)
    }
}
