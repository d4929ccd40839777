//! Moves bursts of plain frames, those in one data descriptor with no offload but checksums: implements the ring
//! interface of crate `rings`. All other frames pass through `source` and `sink`.

use crate::packet::request;
use crate::plain::{self, PlainRxFormat};
use crate::scratch::PollScratchMemory;
use crate::tables::told_of_tag;
use crate::work::FramePathState;
use alloc::boxed::Box;
use avf::descriptor::rx::RxWriteBackTemplate;
use avf::descriptor::tx::{SIZE, TxIpHeaderKind, TxL4Checksum};
use avf::ids::MAX_PAIRS;
use offload::insert::insert;
use offload::plain::{InsertedChecksums, PlainFrame};
use pcie::Function::Vf;
use pcie::{Bus, Function, HintedMemory, MemoryHint};
use plane::frame::TrustedChecksum;
use plane::switch::SwitchDropReason;
use plane::{FrameTrunk, PortIndex, TransmitQueueId};
use rings::{FrameMemory, FrameRunProperties, InvalidChecksumRequest, PlainReceiver, QueueAndHash};

impl<B: Bus> rings::BurstCard for FramePathState<'_, B> {
    type Bus = B;
    type TxFormat = plain::TxDescriptorFormat;
    type RxFormat = PlainRxFormat;

    fn places(&mut self) -> &mut Option<Box<FrameMemory>> {
        &mut self.scratch.places
    }

    fn is_careful(&self) -> bool {
        self.scratch.careful
    }

    fn judges(&self) -> bool {
        !self.scratch.careful
    }

    /// Reads up to `most` descriptors of the next frames of a transmit queue. Returns no descriptors while a packet
    /// waits between two segments, or if the descriptors cannot be read: `take` then finds the fault.
    fn next(&mut self, sender: TransmitQueueId, most: usize) -> &[[u8; SIZE]] {
        let Self { functions, scratch: PollScratchMemory { plain, .. }, bus } = self;
        let (vf, queue) = (sender.port.get(), usize::from(sender.queue));
        let function = functions.get_mut(usize::from(vf)).filter(|function| function.held.is_empty());
        let Some(ring) = function.and_then(|function| function.tx.get_mut(queue)) else { return &[] };
        let (at, left) = ring.ready();
        let raw = plain.place(left.min(most), at);
        let space = HintedMemory { function: Vf(vf), hint: &mut ring.hint };
        if raw.is_empty() || bus.read_descriptors(space, at, raw.as_flattened_mut()).is_err() {
            return &[];
        }
        raw
    }

    /// Writes back the first `count` transmit descriptors that were read, whose frames have been sent, and raises the
    /// queue's interrupt.
    fn pass(&mut self, sender: TransmitQueueId, count: usize) {
        let Self { functions, scratch: PollScratchMemory { plain, .. }, bus } = self;
        let (vf, queue) = (sender.port.get(), sender.queue);
        let Some(function) = functions.get_mut(usize::from(vf)).filter(|_| count > 0) else { return };
        let Some(ring) = function.tx.get_mut(usize::from(queue)) else { return };
        if ring.pass(plain, count, Vf(vf), *bus).is_err() {
            return function.stop_sending(queue);
        }
        function.raise_sent(queue);
    }

    fn source(&mut self, sender: TransmitQueueId) -> (Function, &mut MemoryHint, &mut B) {
        let (vf, queue) = (sender.port.get(), usize::from(sender.queue) % MAX_PAIRS);
        let function = &mut self.functions[usize::from(vf)];
        (Vf(vf), &mut function.tx[queue].buffers, self.bus)
    }

    fn insertion(&self, _sender: TransmitQueueId, at: usize) -> Option<InsertedChecksums> {
        request(&self.scratch.plain.data(at)?).plain()
    }

    fn insert(
        &self,
        _sender: TransmitQueueId,
        at: usize,
        frame: &mut [u8],
    ) -> Result<Option<TrustedChecksum>, InvalidChecksumRequest> {
        let asked = self
            .scratch
            .plain
            .data(at)
            .filter(|data| (data.ip, data.l4) != (TxIpHeaderKind::None, TxL4Checksum::None));
        asked.map_or(Ok(None), |data| insert(frame, &request(&data)).map_err(|_| InvalidChecksumRequest))
    }

    #[cold]
    fn refused(&mut self, sender: TransmitQueueId, _reason: SwitchDropReason) {
        if let Some(function) = self.functions.get_mut(usize::from(sender.port.get())) {
            function.statistics.tx_discards += 1;
        }
    }

    #[inline]
    fn spreads(&self, port: PortIndex) -> bool {
        let function = self.functions.get(usize::from(port.get()));
        function.is_some_and(|function| function.scaling.hashes())
    }

    #[inline(always)]
    fn spread(&mut self, port: PortIndex, frame: &PlainFrame<'_>) -> QueueAndHash {
        let function = self.functions.get_mut(usize::from(port.get()));
        let (hash, queue) = function.map_or((None, 0), |function| function.scaling.spread_plain(frame));
        (queue, hash)
    }

    #[inline]
    fn is_away(&self, port: PortIndex) -> bool {
        self.scratch.away.have(port)
    }

    fn trunk(&mut self) -> Option<(&mut dyn FrameTrunk, &mut B)> {
        Some((self.scratch.away.trunk.as_deref_mut()?, self.bus))
    }

    #[inline(always)]
    fn receiver(
        &mut self,
        port: PortIndex,
        queue: u8,
        terms: FrameRunProperties,
    ) -> Option<PlainReceiver<'_, B, PlainRxFormat>> {
        let function = self.functions.get_mut(usize::from(port.get()));
        let function = function.filter(|function| function.master)?;
        let tag = told_of_tag(function.filters.tags, terms.tag);
        let format = |form| PlainRxFormat::new(RxWriteBackTemplate::new(form, tag, !terms.from_uplink));
        function.rx.get_mut(usize::from(queue))?.receiver(Vf(port.get()), self.bus, (tag, format))
    }

    #[inline]
    fn received(&mut self, port: PortIndex, queue: u8, frames: usize, bytes: u64) {
        self.scratch.reached |= port.only().bits();
        if let Some(function) = self.functions.get_mut(usize::from(port.get())) {
            function.received(queue, frames, bytes);
        }
    }
}
