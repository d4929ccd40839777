//! A ring of received frames: 2 KB buffers that stay with their slots, frames copied out to the caller, slots posted again
//! in batches.
//!
//! What the card writes back is checked before it is used: the card may be at the far end of a socket.
//!
//! Left out: header split, zero copy.

use super::{AHEAD, ALIGNMENT, BUFFER, LONG, MAX_BATCH, after, distance};
use crate::hal::{Access, DmaHal, DmaRegion, OutOfDmaMemory};

/// Bytes of the longest descriptor of any family.
pub(crate) const LONGEST: usize = 32;

/// A descriptor as the card writes it back, as much of it as its size says.
pub(crate) type Raw = [u8; LONGEST];

/// How a family's receive descriptors look.
pub(crate) trait Layout: Copy {
    /// Bytes of a descriptor, [`LONGEST`] at most.
    fn size(self) -> usize;

    /// A descriptor as the driver posts it, as much of it as its size says.
    fn posted(self, buffer: u64) -> Raw;

    /// Bytes in the buffer, and whether it is the frame's last; `None` while the card has not given the descriptor back.
    fn filled(self, raw: &Raw) -> Option<(usize, bool)>;
}

/// Why a frame that was there could not be had. It is gone, and its buffers go back to the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RxError {
    /// The caller's buffer is too short.
    #[error("a frame of {0} bytes does not fit the buffer")]
    TooLong(usize),
    /// The card wrote back what it should not.
    #[error("the card wrote back a malformed descriptor")]
    Malformed,
}

/// What the driver counts of reception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RxCounters {
    /// Frames handed to the caller.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Buffers that they and the lost ones filled.
    pub buffers: u64,
    /// Frames with a wrong checksum, among them.
    pub bad_checksums: u64,
    /// Frames lost to [`RxError`].
    pub errors: u64,
    /// Doorbells rung.
    pub doorbells: u64,
}

#[derive(Debug)]
pub(crate) struct RxRing<L> {
    descriptors: DmaRegion,
    buffers: DmaRegion,
    layout: L,
    count: u32,
    /// Slots posted at a time, for one doorbell.
    batch: u32,
    /// The register with the tail.
    doorbell: u32,
    /// The slot that the card fills next, as far as the driver has looked.
    next: u32,
    /// The slot that is posted next: the tail.
    post: u32,
    running: bool,
    counters: RxCounters,
}

impl<L: Layout> RxRing<L> {
    /// `count` slots, of which `doorbell` is told.
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
            batch: batch.into(),
            doorbell,
            next: 0,
            post: 0,
            running: false,
            counters: RxCounters::default(),
        })
    }

    /// Where the card finds the first descriptor, and how many there are.
    pub(crate) fn place(&self) -> (u64, u16) {
        (self.descriptors.iova, self.count as u16)
    }

    pub(crate) fn counters(&self) -> RxCounters {
        self.counters
    }

    /// Frames that were taken had a wrong checksum.
    pub(crate) fn count_bad_checksum(&mut self, bad: bool) {
        self.counters.bad_checksums += u64::from(bad);
    }

    /// Posts every slot but one. The card must think the ring empty.
    pub(crate) fn start<H: DmaHal>(&mut self, hal: &mut H) {
        (self.next, self.post) = (0, 0);
        self.running = true;
        self.refill(hal);
    }

    /// Gives no frame any more.
    pub(crate) fn stop(&mut self) {
        self.running = false;
    }

    /// Slots that are the card's or hold frames.
    fn posted(&self) -> u32 {
        distance(self.next, self.post, self.count)
    }

    /// Posts every free slot but one, a doorbell per batch.
    pub(crate) fn refill<H: DmaHal>(&mut self, hal: &mut H) {
        while self.running && self.posted() < self.count - 1 {
            self.post_batch(hal);
        }
    }

    fn post_batch<H: DmaHal>(&mut self, hal: &mut H) {
        let (size, free) = (self.layout.size(), self.count - 1 - self.posted());
        let slots = free.min(self.batch).min(self.count - self.post);
        let mut raw = [0; MAX_BATCH as usize * LONGEST];
        for (slot, bytes) in (self.post..self.post + slots).zip(raw.chunks_exact_mut(size)) {
            bytes.copy_from_slice(&self.layout.posted(self.buffer(slot))[..size]);
        }
        hal.dma_write(self.descriptor(self.post), &raw[..slots as usize * size]);
        self.post = after(self.post, slots, self.count);
        self.counters.doorbells += 1;
        hal.write(self.doorbell, self.post);
    }

    fn buffer(&self, slot: u32) -> u64 {
        self.buffers.iova + u64::from(slot) * BUFFER as u64
    }

    fn descriptor(&self, slot: u32) -> u64 {
        self.descriptors.iova + u64::from(slot) * self.layout.size() as u64
    }

    /// Reads a slot's descriptor: bytes in the buffer, and whether it is the frame's last, if the card has given it back.
    #[inline(always)]
    fn look<H: DmaHal>(&self, hal: &H, slot: u32, raw: &mut Raw) -> Option<(usize, bool)> {
        hal.dma_read(self.descriptor(slot), &mut raw[..self.layout.size()]);
        self.layout.filled(raw)
    }

    /// The next whole frame, copied to the front of `into`, and its last descriptor as it stands to `last`; answers the frame's
    /// length, or `None` if there is none.
    #[inline(always)]
    pub(crate) fn receive<H: DmaHal>(
        &mut self,
        hal: &mut H,
        into: &mut [u8],
        last: &mut Raw,
    ) -> Result<Option<usize>, RxError> {
        if !self.running || self.posted() == 0 {
            return Ok(None);
        }
        let Some(first) = self.look(hal, self.next, last) else { return Ok(None) };
        let (slots, taken) = match first {
            (length, true) => {
                if length >= LONG {
                    self.prefetch(hal);
                }
                (1, self.copy_one(hal, length, into))
            }
            _ => {
                let Some(slots) = self.find_end(hal, last) else { return Ok(None) };
                (slots, self.copy(hal, slots, into))
            }
        };
        self.next = after(self.next, slots, self.count);
        self.counters.buffers += u64::from(slots);
        if self.count - 1 - self.posted() >= self.batch {
            self.post_batch(hal);
        }
        match taken {
            Ok(length) => {
                self.counters.frames += 1;
                self.counters.bytes += length as u64;
                Ok(Some(length))
            }
            Err(error) => {
                self.counters.errors += 1;
                Err(error)
            }
        }
    }

    /// How many slots the next frame fills, which are more than one, if all of it is there.
    #[cold]
    fn find_end<H: DmaHal>(&self, hal: &H, last: &mut Raw) -> Option<u32> {
        for slots in 2..=self.posted() {
            if self.look(hal, after(self.next, slots - 1, self.count), last)?.1 {
                return Some(slots);
            }
        }
        None
    }

    /// Has the buffer fetched that is [`AHEAD`] of the next, if the card has given it back: one that it still writes to would be
    /// taken from it.
    #[inline(always)]
    fn prefetch<H: DmaHal>(&self, hal: &H) {
        let slot = after(self.next, AHEAD, self.count);
        if self.posted() > AHEAD
            && let Some((length, _)) = self.look(hal, slot, &mut [0; LONGEST])
        {
            hal.prefetch(self.buffer(slot), length, Access::Read);
        }
    }

    /// Copies a frame of one slot; returns its length.
    #[inline(always)]
    fn copy_one<H: DmaHal>(&self, hal: &H, length: usize, into: &mut [u8]) -> Result<usize, RxError> {
        if length > BUFFER {
            return Err(RxError::Malformed);
        }
        hal.dma_read(self.buffer(self.next), into.get_mut(..length).ok_or(RxError::TooLong(length))?);
        Ok(length)
    }

    /// Copies a frame of several slots; returns its length.
    #[cold]
    fn copy<H: DmaHal>(&self, hal: &H, slots: u32, into: &mut [u8]) -> Result<usize, RxError> {
        let mut length = 0;
        for step in 0..slots {
            let slot = after(self.next, step, self.count);
            let (bytes, _) = self.look(hal, slot, &mut [0; LONGEST]).ok_or(RxError::Malformed)?;
            if bytes > BUFFER {
                return Err(RxError::Malformed);
            }
            if let Some(piece) = into.get_mut(length..length + bytes) {
                hal.dma_read(self.buffer(slot), piece);
            }
            length += bytes;
        }
        if length <= into.len() { Ok(length) } else { Err(RxError::TooLong(length)) }
    }
}
