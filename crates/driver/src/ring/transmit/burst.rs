//! Queues bursts of frames to send. Most frames are plain: they fill one slot and request no offload. Plain frames are
//! queued together up to the next report request; the device family's own code queues other frames.

use super::{SHORTEST, TxError, TxPartDescriptor, TxRing, raw};
use crate::hal::{DmaHal, PrefetchPurpose};
use crate::offload::TxOffload;
use crate::ring::{AHEAD, BUFFER, LONG, after};

/// Transmit queue of a device family: its ring, and the family's function that queues any kind of frame.
pub(crate) trait FamilyTxQueue {
    /// Transmit descriptor of the device family.
    type Piece: TxPartDescriptor;
    /// Number of slots that must be free beside the one of a plain frame.
    const RESERVE: usize;

    /// Returns the queue's transmit ring.
    fn ring(&mut self) -> &mut TxRing<Self::Piece>;

    /// Queues a frame of any kind: two pieces, the second perhaps empty, of at most `longest` bytes, with any offload.
    fn transmit_any<H: DmaHal>(
        &mut self,
        hal: &mut H,
        frame: [&[u8]; 2],
        offload: &TxOffload,
        longest: usize,
    ) -> Result<(), TxError>;

    /// Queues frames up to the first refused one. Returns the number of queued frames, and the reason of the refusal.
    #[inline(always)]
    fn transmit_burst<H: DmaHal>(
        &mut self,
        hal: &mut H,
        frames: &[&[u8]],
        offload: &TxOffload,
        longest: usize,
    ) -> (usize, Result<(), TxError>) {
        let plain = *offload == TxOffload::default();
        let longest_plain = longest.min(BUFFER);
        let mut left = frames;
        while !left.is_empty() {
            if plain {
                left = &left[self.ring().queue_plain(hal, left, longest_plain, Self::RESERVE)..];
            }
            let Some((frame, later)) = left.split_first() else { break };
            if let Err(error) = self.transmit_any(hal, [frame, &[]], offload, longest) {
                return (frames.len() - left.len(), Err(error));
            }
            left = later;
        }
        (frames.len(), Ok(()))
    }
}

impl<P: TxPartDescriptor> TxRing<P> {
    /// Queues frames up to the first that is not plain or has no room. Returns the number of queued frames.
    #[inline(always)]
    fn queue_plain<H: DmaHal>(
        &mut self,
        hal: &mut H,
        frames: &[&[u8]],
        longest: usize,
        reserve: usize,
    ) -> usize {
        let mut queued = 0;
        while self.running && queued < frames.len() {
            let wanted = self.run_length(reserve).min(frames.len() - queued);
            let run = self.queue_run(hal, &frames[queued..queued + wanted], longest);
            queued += run;
            if run < wanted || run == 0 {
                break;
            }
        }
        queued
    }

    /// Returns the number of plain frames that can be queued before the next report request, doorbell or end of the
    /// ring.
    #[inline(always)]
    fn run_length(&self, reserve: usize) -> usize {
        let due = (self.batch.div_ceil(2) - self.unreported).min(self.batch - self.waiting);
        let slots = due.min(self.count - self.next) as usize;
        slots.min(self.free().saturating_sub(reserve))
    }

    /// Queues consecutive plain frames up to the first that is not plain. Returns the number of queued frames.
    #[inline(always)]
    fn queue_run<H: DmaHal>(&mut self, hal: &mut H, run: &[&[u8]], longest: usize) -> usize {
        let (mut frames, mut bytes) = (0, 0);
        for frame in run {
            let length = frame.len();
            if length < SHORTEST || length > longest {
                break;
            }
            let slot = self.next + frames;
            // A buffer that the card may still read is not prefetched.
            if length >= LONG && self.free() > (AHEAD + frames) as usize {
                let ahead = after(slot, AHEAD, self.count);
                hal.prefetch(self.buffer(ahead), length, PrefetchPurpose::Write);
            }
            let address = self.buffer(slot);
            hal.dma_write(address, frame);
            self.staged.push(raw(P::plain_words(address, length as u16)));
            (frames, bytes) = (frames + 1, bytes + length);
        }
        self.next = after(self.next, frames, self.count);
        self.count_frames(hal, frames, bytes);
        frames as usize
    }
}
