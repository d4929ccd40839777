//! Plain frames for the bursts of `rings`: the descriptors that come next, and those whose frames have left. Left out: every other
//! packet.

use super::TransmitQueue;
use crate::queue::BURST;
use crate::queue::io::QueueIo;
use i82576::descriptor::SIZE;
use pcie::{Bus, DmaFault, Hint};
use rings::Ring;

impl TransmitQueue {
    /// Returns up to `most` descriptors that come next, fetched in a burst; none while a packet waits, or
    /// is dropped up to its end, and none if the ring cannot be read: [`TransmitQueue::take`] finds out. The ring was opened
    /// after the queue's registers were written the last time.
    ///
    /// # Errors
    /// [`DmaFault`] if descriptors cannot be given back; the queue then stays silent until it is set up anew.
    pub(crate) fn next_plain<B: Bus>(
        &mut self,
        io: &mut QueueIo<'_, B>,
        ring: &Ring,
        most: usize,
    ) -> Result<&[[u8; SIZE]], DmaFault> {
        let next = self.next(ring);
        let available = ring.available(next);
        if available == 0 || self.skipping || self.done.is_halted() || !self.held.is_empty() {
            return Ok(&[]);
        }
        let Ok(at) = self.fetch(io, ring, next) else { return Ok(&[]) };
        if self.done.is_full()
            && let Err(fault) = self.done.flush(io, ring, self.way(io.file))
        {
            self.done.halt();
            return Err(fault);
        }
        let room = BURST - self.done.waiting() as usize;
        let count = (self.fetched as usize).saturating_sub(at).min(available as usize).min(most).min(room);
        Ok(&self.burst[at..at + count])
    }

    /// Passes the first `count` descriptors of [`TransmitQueue::next_plain`].
    pub(crate) fn pass_plain(&mut self, ring: &Ring, count: usize) {
        let at = self.next(ring).wrapping_sub(self.fetched_at) as usize % BURST;
        self.done.push_sent(&self.burst[at..(at + count).min(BURST)]);
        self.effort = (count.min(1), 0);
    }

    /// The hint where the queue's buffers are.
    pub(crate) fn buffers(&mut self) -> &mut Hint {
        &mut self.buffers
    }
}
