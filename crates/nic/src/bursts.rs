//! The card's rings for bursts of plain frames: frames in one data descriptor, with checksum requests at most
//! (crate `rings`). All other frames pass `source` and `sink`.

use crate::offload::plain::{PlainRxFormat, TxDescriptorFormat};
use crate::queue::QueueIo;
use crate::scratch::{CachedReceiveQueue, PollScratchMemory};
use crate::switch::{self, pool};
use crate::work::FramePathState;
use alloc::boxed::Box;
use i82576::descriptor::SIZE;
use offload::OffloadRequest;
use offload::insert::insert;
use offload::plain::InsertedChecksums;
use pcie::{Bus, Function, MemoryHint};
use plane::frame::TrustedChecksum;
use plane::switch::SwitchDropReason;
use plane::{PortIndex, TransmitQueueId};
use rings::{FrameMemory, FrameRunProperties, InvalidChecksumRequest, PlainReceiver};

impl<B: Bus> FramePathState<'_, B> {
    /// Returns the offload request of descriptor `at` of a burst: its checksums, and the headers that its
    /// context describes.
    fn request(&self, sender: TransmitQueueId, at: usize) -> Option<OffloadRequest> {
        self.queues.tx[switch::queue(sender).index()].request(at, &self.scratch.upcoming)
    }
}

impl<B: Bus> rings::BurstCard for FramePathState<'_, B> {
    type Bus = B;
    type TxFormat = TxDescriptorFormat;
    type RxFormat = PlainRxFormat;

    const KEEPS_DESCRIPTORS: bool = true;

    fn places(&mut self) -> &mut Option<Box<FrameMemory>> {
        &mut self.scratch.places
    }

    fn is_careful(&self) -> bool {
        !self.scratch.shortcuts
    }

    fn judges(&self) -> bool {
        self.scratch.glances
    }

    fn next(&mut self, sender: TransmitQueueId, most: usize) -> &[[u8; SIZE]] {
        let Self { queues, file, scratch, bus, .. } = self;
        let queue = switch::queue(sender);
        let tx = &mut queues.tx[queue.index()];
        let Some(ring) = tx.open(file) else { return &[] };
        let function = scratch.conditions.owners.of_queue(queue);
        let PollScratchMemory { upcoming, faults, .. } = scratch;
        let fetched = tx.next_plain(&mut QueueIo { file, function, bus: *bus }, &ring, most, upcoming);
        fetched.unwrap_or_else(|_| {
            *faults += 1;
            &[]
        })
    }

    fn pass(&mut self, sender: TransmitQueueId, count: usize) {
        self.queues.tx[switch::queue(sender).index()].pass_plain(count, &self.scratch.upcoming);
    }

    fn insertion(&self, sender: TransmitQueueId, at: usize) -> Option<InsertedChecksums> {
        self.request(sender, at)?.plain()
    }

    fn insert(
        &self,
        sender: TransmitQueueId,
        at: usize,
        frame: &mut [u8],
    ) -> Result<Option<TrustedChecksum>, InvalidChecksumRequest> {
        let asked = self.request(sender, at).filter(|asked| asked.ip_checksum || asked.l4_checksum);
        asked.map_or(Ok(None), |asked| insert(frame, &asked).map_err(|_| InvalidChecksumRequest))
    }

    fn source(&mut self, sender: TransmitQueueId) -> (Function, &mut MemoryHint, &mut B) {
        let queue = switch::queue(sender);
        (self.scratch.conditions.owners.of_queue(queue), self.queues.tx[queue.index()].buffers(), self.bus)
    }

    fn refused(&mut self, sender: TransmitQueueId, reason: SwitchDropReason) {
        self.refused(switch::queue(sender), reason);
    }

    #[inline]
    fn receiver(
        &mut self,
        port: PortIndex,
        _queue: u8,
        terms: FrameRunProperties,
    ) -> Option<PlainReceiver<'_, B, PlainRxFormat>> {
        let queue = self.usual_queue(pool(port));
        self.open(queue);
        let CachedReceiveQueue { opened, function } = &self.scratch.receiving[queue.index()];
        let format = PlainRxFormat::new(self.scratch.conditions.checks, terms);
        self.queues.rx[queue.index()].receiver(opened.as_ref()?, *function, self.bus, format)
    }
}
