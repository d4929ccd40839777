//! Ring of received frames: 2 KB buffers that stay with their slots. A burst is the frames that the card has
//! completed: their descriptors are read together, the caller copies each frame out, and free slots are posted
//! again in batches.
//!
//! Write-backs are checked before use: the card may be a remote process.
//!
//! | module | contents |
//! |---|---|
//! | `layout` | a family's receive descriptors, and errors |
//! | `frame` | a frame of a burst, and the copy out of its buffers |
//!
//! Header split and zero copy are not supported.

mod frame;
mod layout;
#[cfg(test)]
mod tests;

pub(crate) use frame::RxFrame;
pub use layout::RxError;
pub(crate) use layout::{RawRxDescriptor, RxDescriptorLayout};

use super::{AHEAD, ALIGNMENT, BUFFER, LONG, MAX_BATCH, after, batch_of, distance};
use crate::hal::{DESCRIPTOR, DmaAllocation, DmaHal, OutOfDmaMemory, PrefetchPurpose};
use alloc::boxed::Box;
use frame::RxFramePart;

/// Maximum number of slots of a frame: twice the number that the longest frame of a descriptor's 14-bit length field
/// needs.
const MAX_PIECES: usize = 16;

/// The driver's counters of a receive ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RxCounters {
    /// Number of received frames that were passed to the caller.
    pub frames: u64,
    /// Number of bytes in received frames that were passed to the caller.
    pub bytes: u64,
    /// Number of receive buffers that received frames have filled, lost frames included.
    pub buffers: u64,
    /// Number of received frames that were passed to the caller with a wrong checksum.
    pub bad_checksums: u64,
    /// Number of frames lost to [`RxError`].
    pub errors: u64,
    /// Number of doorbells rung for posted buffers.
    pub doorbells: u64,
}

#[derive(Debug)]
pub(crate) struct RxRing<L> {
    descriptors: DmaAllocation,
    buffers: DmaAllocation,
    layout: L,
    count: u32,
    /// Number of receive slots that the driver posts per doorbell.
    batch: u32,
    /// Register offset of the receive ring's tail.
    doorbell: u32,
    /// Receive ring slot of the next received frame.
    next: u32,
    /// Ring slot that the driver posts next, which is the value of the tail.
    post: u32,
    running: bool,
    counters: RxCounters,
    /// Descriptors of a burst, read from the ring or to be posted.
    scratch: Box<[RawRxDescriptor]>,
}

impl<L: RxDescriptorLayout> RxRing<L> {
    /// Creates a ring of `count` slots with its tail in register `doorbell`.
    pub(crate) fn new<H: DmaHal>(
        hal: &mut H,
        layout: L,
        count: u16,
        batch: u16,
        doorbell: u32,
    ) -> Result<Self, OutOfDmaMemory> {
        Ok(Self {
            descriptors: hal.dma_alloc(usize::from(count) * layout.size(), ALIGNMENT)?,
            buffers: hal.dma_alloc(usize::from(count) * BUFFER, BUFFER)?,
            layout,
            count: count.into(),
            batch: batch_of(batch, count),
            doorbell,
            next: 0,
            post: 0,
            running: false,
            counters: RxCounters::default(),
            scratch: alloc::vec![[0; DESCRIPTOR]; MAX_BATCH.into()].into(),
        })
    }

    /// Returns the location of the ring: the device address of its first descriptor, and the number of descriptors.
    pub(crate) fn place(&self) -> (u64, u16) {
        (self.descriptors.iova, self.count as u16)
    }

    pub(crate) fn counters(&self) -> RxCounters {
        self.counters
    }

    /// Posts the buffer of every ring slot but one. The card's ring must be empty.
    pub(crate) fn start<H: DmaHal>(&mut self, hal: &mut H) {
        (self.next, self.post) = (0, 0);
        self.running = true;
        self.refill(hal);
    }

    /// Stops reception: no frame is returned any more.
    pub(crate) fn stop(&mut self) {
        self.running = false;
    }

    /// Returns the number of receive slots that the card owns, or that hold frames.
    fn posted(&self) -> u32 {
        distance(self.next, self.post, self.count)
    }

    /// Posts every free slot but one, with a doorbell per batch.
    pub(crate) fn refill<H: DmaHal>(&mut self, hal: &mut H) {
        while self.running && self.posted() < self.count - 1 {
            self.post_batch(hal);
        }
    }

    fn post_batch<H: DmaHal>(&mut self, hal: &mut H) {
        let (size, free) = (self.layout.size(), self.count - 1 - self.posted());
        let slots = free.min(self.batch).min(self.count - self.post);
        let (layout, first) = (self.layout, self.buffer(self.post));
        let packed = self.scratch.as_flattened_mut();
        for (at, buffer) in (0..).step_by(size).zip((first..).step_by(BUFFER)).take(slots as usize) {
            // The next descriptor overwrites the excess of a shorter one.
            packed[at..at + DESCRIPTOR].copy_from_slice(&layout.posted(buffer));
        }
        let posted = &self.scratch.as_flattened()[..slots as usize * size];
        hal.dma_write(self.descriptor(self.post), posted);
        self.post = after(self.post, slots, self.count);
        self.counters.doorbells += 1;
        hal.write(self.doorbell, self.post);
    }

    #[inline(always)]
    fn buffer(&self, slot: u32) -> u64 {
        self.buffers.iova + u64::from(slot) * BUFFER as u64
    }

    fn descriptor(&self, slot: u32) -> u64 {
        self.descriptors.iova + u64::from(slot) * self.layout.size() as u64
    }

    /// Copies the next frame to the front of `into`; a burst of one. Returns `None` if no frame is complete.
    #[inline]
    pub(crate) fn receive<H: DmaHal>(
        &mut self,
        hal: &mut H,
        into: &mut [u8],
    ) -> Result<Option<L::Received>, RxError> {
        let mut outcome = Ok(None);
        self.receive_burst(hal, 1, |frame| {
            outcome = frame.copy_to(into).map(|_| Some(frame.received()));
        });
        outcome
    }

    /// Passes the next frames to `take`, at most `most`, and posts their slots again in batches. Returns their
    /// number, lost ones included.
    #[inline(always)]
    pub(crate) fn receive_burst<H: DmaHal>(
        &mut self,
        hal: &mut H,
        most: usize,
        mut take: impl FnMut(&mut RxFrame<'_, H, L>),
    ) -> usize {
        let mut taken = 0;
        while self.running && taken < most {
            let room = self.posted().min(self.count - self.next).min(MAX_BATCH.into());
            let wanted = (room as usize).min(most - taken);
            let (at, size) = (self.descriptor(self.next), self.layout.size());
            let completed = hal.read_completed(at, size, &mut self.scratch[..wanted]);
            let frames = self.pass_single_slot_frames(hal, completed, &mut take);
            let spread = frames < completed && self.pass_long_frame(hal, &mut take);
            while self.count - 1 - self.posted() >= self.batch {
                self.post_batch(hal);
            }
            taken += frames + usize::from(spread);
            if !spread && (frames == 0 || completed < wanted) {
                break;
            }
        }
        taken
    }

    /// Passes frames of one slot each to `take`, up to the first longer one, of the descriptors that were read.
    /// Returns their number.
    #[inline(always)]
    fn pass_single_slot_frames<H: DmaHal>(
        &mut self,
        hal: &H,
        completed: usize,
        take: &mut impl FnMut(&mut RxFrame<'_, H, L>),
    ) -> usize {
        let completed = &self.scratch[..completed];
        let (mut frames, mut address) = (0, self.buffer(self.next));
        let (mut bytes, mut errors, mut bad) = (0, 0, 0);
        for raw in completed {
            let (length, true) = self.layout.filled(raw) else { break };
            if length >= LONG {
                self.prefetch(hal, completed, frames);
            }
            let mut frame = RxFrame::new(hal, (self.layout, raw), address, length);
            take(&mut frame);
            if frame.is_lost() {
                errors += 1;
            } else {
                bytes += length as u64;
                bad += u64::from(self.layout.has_bad_checksum(raw));
            }
            (frames, address) = (frames + 1, address + BUFFER as u64);
        }
        self.next = after(self.next, frames as u32, self.count);
        self.counters.buffers += frames as u64;
        self.counters.frames += frames as u64 - errors;
        self.counters.bytes += bytes;
        self.counters.errors += errors;
        self.counters.bad_checksums += bad;
        frames
    }

    /// Prefetches the buffer [`AHEAD`] slots after a slot of the burst, if the card has completed it: prefetching a
    /// buffer that the card still writes would slow the card. At the burst's first slot, also prefetches the buffers in
    /// between.
    #[inline(never)]
    fn prefetch<H: DmaHal>(&self, hal: &H, completed: &[RawRxDescriptor], at: usize) {
        let first = if at == 0 { 1 } else { at + AHEAD as usize };
        for step in first..=at + AHEAD as usize {
            let Some(raw) = completed.get(step) else { return };
            let length = self.layout.filled(raw).0.min(BUFFER);
            hal.prefetch(self.buffer(self.next + step as u32), length, PrefetchPurpose::Read);
        }
    }

    /// Passes the next frame, which fills several slots, to `take`, if it is complete. A frame of more than
    /// [`MAX_PIECES`] slots is lost, so that a card that ends no frame cannot keep the slots.
    #[cold]
    #[inline(never)]
    fn pass_long_frame<H: DmaHal>(&mut self, hal: &H, take: &mut impl FnMut(&mut RxFrame<'_, H, L>)) -> bool {
        let mut raw = [[0; DESCRIPTOR]];
        let (mut pieces, mut count, mut ended) = ([RxFramePart::default(); MAX_PIECES], 0, false);
        while !ended && count < MAX_PIECES {
            let slot = after(self.next, count as u32, self.count);
            let posted = count < self.posted() as usize;
            if !posted || hal.read_completed(self.descriptor(slot), self.layout.size(), &mut raw) == 0 {
                return false;
            }
            let (bytes, last) = self.layout.filled(&raw[0]);
            pieces[count] = RxFramePart { address: self.buffer(slot), bytes };
            (count, ended) = (count + 1, last);
        }
        let mut frame = RxFrame::of_pieces(hal, (self.layout, &raw[0]), &pieces[..count], ended);
        take(&mut frame);
        let (kept, length) = (u64::from(!frame.is_lost()), frame.length() as u64);
        self.next = after(self.next, count as u32, self.count);
        self.counters.buffers += count as u64;
        self.counters.frames += kept;
        self.counters.bytes += kept * length;
        self.counters.errors += 1 - kept;
        self.counters.bad_checksums += kept * u64::from(self.layout.has_bad_checksum(&raw[0]));
        true
    }
}
