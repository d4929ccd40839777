//! Takes descriptors of plain frames, without contexts, from a transmit queue for the bursts of `rings`, and writes
//! back those whose frames have left.

use super::TransmitQueue;
use super::upcoming::{BurstDescriptors, second};
use crate::offload::transmit::request;
use crate::queue::BURST;
use crate::queue::io::QueueIo;
use i82576::descriptor::SIZE;
use i82576::descriptor::orders::RawDataDescriptor;
use i82576::descriptor::tx::{AnyTxDescriptor, parse, summed_length};
use offload::OffloadRequest;
use pcie::{Bus, DmaFault, MemoryHint};
use rings::Ring;

impl TransmitQueue {
    /// Returns up to `most` data descriptors of the next plain frames, from one fetched burst. There are none while a
    /// packet waits between segments or is dropped up to its end. If the ring cannot be read there are none:
    /// [`TransmitQueue::take`] then finds the fault. The ring was opened after the queue's registers were written the
    /// last time.
    ///
    /// # Errors
    /// [`DmaFault`] if descriptors cannot be given back; the queue then stays silent until it is set up anew.
    pub(crate) fn next_plain<'a, B: Bus>(
        &'a mut self,
        io: &mut QueueIo<'_, B>,
        ring: &Ring,
        most: usize,
        upcoming: &'a mut BurstDescriptors,
    ) -> Result<&'a [[u8; SIZE]], DmaFault> {
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
        let count = (self.fetched as usize).saturating_sub(at).min(available as usize).min(room);
        let descriptors = &self.burst[at..at + count];
        (upcoming.first, upcoming.copied, upcoming.count) = (at, false, 0);
        if descriptors.first().is_none_or(|first| summed_length(second(first)).is_some()) {
            return Ok(&descriptors[..count.min(most)]);
        }
        upcoming.copied = true;
        upcoming.copy(descriptors, self.contexts);
        Ok(&upcoming.raw[..upcoming.count.min(most)])
    }

    /// Adds the descriptors of the first `count` frames of [`TransmitQueue::next_plain`], which have left, to the
    /// write-back batch. `upcoming` is from the same call.
    pub(crate) fn pass_plain(&mut self, count: usize, upcoming: &BurstDescriptors) {
        let BurstDescriptors { first, ends, .. } = *upcoming;
        if !upcoming.copied {
            return self.done.push_sent(&self.burst[first..(first + count).min(BURST)]);
        }
        let passed = ends.get(count.wrapping_sub(1)).map_or(0, |end| usize::from(*end));
        for raw in self.burst.get(first..first + passed).unwrap_or_default() {
            // One test finds data descriptors.
            if summed_length(second(raw)).is_some() {
                self.done.push_sent(&[*raw]);
            } else if let AnyTxDescriptor::Context(context) = parse(raw) {
                self.contexts[usize::from(context.index & 1)] = context;
                self.done.push(*raw, false);
            }
        }
    }

    /// Returns the checksums that data descriptor `at` of [`TransmitQueue::next_plain`] requests, and the headers that
    /// its context describes.
    pub(crate) fn request(&self, at: usize, upcoming: &BurstDescriptors) -> Option<OffloadRequest> {
        if upcoming.copied {
            return upcoming.requests.get(at).copied();
        }
        let orders = RawDataDescriptor::of(self.burst.get(upcoming.first + at)?)?;
        Some(request(orders, &self.contexts[usize::from(orders.context() & 1)]))
    }

    /// Returns the hint by which the bus finds the memory of the queue's buffers.
    pub(crate) fn buffers(&mut self) -> &mut MemoryHint {
        &mut self.buffers
    }
}
