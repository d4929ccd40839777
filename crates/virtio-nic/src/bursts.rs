//! Connects the card's transmit and receive rings to crate `rings`, which forwards bursts of plain frames. All other
//! frames pass `source` and `sink`.

use crate::packet::{complete, plain_request};
use crate::receive::VirtioRxFormat;
use crate::transmit::VirtioTxFormat;
use crate::work::VirtioFramePathState;
use alloc::boxed::Box;
use offload::plain::{InsertedChecksums, PlainFrame};
use pcie::{Bus, Function, MemoryHint};
use plane::frame::TrustedChecksum;
use plane::switch::SwitchDropReason;
use plane::{FrameTrunk, PortIndex, TransmitQueueId};
use rings::{
    BurstCard, FrameMemory, FrameRunProperties, InvalidChecksumRequest, PlainReceiver, QueueAndHash,
};

impl<B: Bus> BurstCard for VirtioFramePathState<'_, B> {
    type Bus = B;
    type TxFormat = VirtioTxFormat;
    type RxFormat = VirtioRxFormat;

    const KEEPS_DESCRIPTORS: bool = true;

    fn places(&mut self) -> &mut Option<Box<FrameMemory>> {
        &mut self.scratch.places
    }

    fn is_careful(&self) -> bool {
        self.scratch.careful
    }

    fn judges(&self) -> bool {
        !self.scratch.careful
    }

    /// Fetches up to `most` chains, and makes descriptors of those that are plain. Returns no descriptor while a packet
    /// waits between two segments, or if the ring cannot be read: `take` then finds the fault.
    fn next(&mut self, sender: TransmitQueueId, most: usize) -> &[[u8; 16]] {
        let Self { devices, scratch, bus } = self;
        let device = devices.get_mut(usize::from(sender.port.get()));
        let Some(device) = device.filter(|device| device.held.is_empty()) else { return &[] };
        match scratch.sent.fetch(device, sender, most, *bus) {
            Ok(true) => scratch.sent.describe(device, sender, most, *bus),
            Ok(false) | Err(_) => &[],
        }
    }

    fn pass(&mut self, sender: TransmitQueueId, count: usize) {
        let checksums = self.scratch.sent.pass_described(count);
        if checksums > 0
            && let Some(device) = self.sending(sender)
        {
            // The card completes every frame of a burst as it copies the frame.
            device.counters.checksums += checksums;
            device.counters.checksums_filled += checksums;
        }
    }

    fn source(&mut self, sender: TransmitQueueId) -> (Function, &mut MemoryHint, &mut B) {
        let (vf, queue) = (sender.port.get(), usize::from(sender.queue) % crate::limits::MAX_PAIRS);
        (Function::Vf(vf), &mut self.devices[usize::from(vf)].transmit[queue].buffers, self.bus)
    }

    fn insertion(&self, _sender: TransmitQueueId, at: usize) -> Option<InsertedChecksums> {
        self.scratch.sent.requested(at).map(|udp| InsertedChecksums { udp, network: false })
    }

    fn insert(
        &self,
        _sender: TransmitQueueId,
        at: usize,
        frame: &mut [u8],
    ) -> Result<Option<TrustedChecksum>, InvalidChecksumRequest> {
        let requested = self.scratch.sent.requested(at);
        requested.map_or(Ok(None), |udp| complete(frame, &plain_request(udp)))
    }

    fn refused(&mut self, _sender: TransmitQueueId, _reason: SwitchDropReason) {}

    #[inline]
    fn spreads(&self, port: PortIndex) -> bool {
        self.devices.get(usize::from(port.get())).is_some_and(|device| device.pairs > 1)
    }

    #[inline]
    fn spread(&mut self, port: PortIndex, frame: &PlainFrame<'_>) -> QueueAndHash {
        let (addresses, ports) = frame.end_bytes();
        let device = self.devices.get(usize::from(port.get()));
        (device.map_or(0, |device| device.pair_of(addresses, ports)), None)
    }

    #[inline]
    fn is_away(&self, port: PortIndex) -> bool {
        self.scratch.away.has(port)
    }

    fn trunk(&mut self) -> Option<(&mut dyn FrameTrunk, &mut B)> {
        Some((self.scratch.trunk.as_deref_mut()?, self.bus))
    }

    /// Frames that may be joined into large packets are received one by one.
    fn receives_runs(&self) -> bool {
        self.judges() && !self.scratch.joined.enabled
    }

    #[inline(always)]
    fn receiver(
        &mut self,
        port: PortIndex,
        queue: u8,
        _terms: FrameRunProperties,
    ) -> Option<PlainReceiver<'_, B, VirtioRxFormat>> {
        if self.scratch.joined.must_leave() {
            self.deliver_joined_of(port);
        }
        let Self { devices, bus, .. } = self;
        devices.get_mut(usize::from(port.get()))?.receiver(port, queue, *bus)
    }

    #[inline]
    fn received(&mut self, port: PortIndex, queue: u8, _frames: usize, _bytes: u64) {
        let Self { devices, scratch, bus } = self;
        scratch.reached |= port.only().bits();
        if let Some(device) = devices.get_mut(usize::from(port.get())) {
            device.received(port, queue, &mut scratch.headers, *bus);
        }
    }
}
