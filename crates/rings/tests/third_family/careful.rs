//! Implements the traits of the toy card for packets that are sent one by one.

use crate::memory::SLOTS;
use crate::toy::ToyCard;
use offload::plain::{PlainFrame, PlainFrameKind};
use pcie::Bus;
use plane::frame::Frame;
use plane::{
    DeliveryError, DeliveryFlags, FrameForwarder, FrameSink, FrameSource, PortIndex, TransmitQueueId,
};
use rings::{
    BufferChain, BurstCard, FrameReceiver, FrameRunProperties, NextPacketResult, PacketOffloads,
    PacketTransmitter, RxFormat,
};

/// Offload requests of a toy packet: none, because each packet is one frame that is sent unchanged.
#[derive(Clone, Copy)]
pub(crate) struct NoOffloads;

impl PacketOffloads for NoOffloads {}

impl FrameSink for ToyCard {
    type Findings = Option<Option<PlainFrameKind>>;

    fn deliver(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        findings: &mut Self::Findings,
    ) -> Result<usize, DeliveryError> {
        rings::deliver(self, port, frame, about, findings)
    }
}

impl FrameReceiver for ToyCard {
    type Contents = Option<PlainFrameKind>;

    fn look(&mut self, frame: &mut Frame<'_>, about: DeliveryFlags) -> Option<PlainFrameKind> {
        let bytes = frame.untagged();
        let plain = bytes.first_chunk().and_then(|head| PlainFrame::of(head, bytes.len()));
        plain.filter(|_| about.alone && bytes[0] & 1 == 0).map(|plain| plain.find(bytes, None))
    }

    fn put(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        found: Option<PlainFrameKind>,
    ) -> Result<usize, DeliveryError> {
        let tag = frame.tag.filter(|_| about.strips);
        let terms = FrameRunProperties { tag, inexact: about.inexact, from_uplink: about.from_uplink };
        let receiver = self.receiver(port, 0, terms).ok_or(DeliveryError::Disabled)?;
        let (posted, ring, function) = (receiver.posted, receiver.ring, receiver.function);
        let bytes = frame.delivered(!about.strips);
        if posted.prepare(&ring, function, receiver.bus).unwrap_or(0) == 0 || bytes.len() > receiver.longest {
            return Err(DeliveryError::Dropped);
        }
        let written = receiver.bus.dma_write(function, posted.word(&ring, 0, 0), bytes);
        let mut words = receiver.format.words(found.unwrap_or_default(), None, bytes.len() as u32);
        words[0] |= if found.is_none() { 0xff } else { 0 };
        posted.fill(&ring, words);
        written.map(|()| bytes.len()).map_err(|_| DeliveryError::Fault)
    }
}

impl FrameSource for ToyCard {
    fn may_send(&self, _sender: TransmitQueueId) -> bool {
        true
    }

    fn hand_over<L: FrameForwarder>(&mut self, sender: TransmitQueueId, budget: usize, lane: &mut L) -> bool {
        rings::visit(self, sender, budget, lane)
    }

    fn has_more(&self, sender: TransmitQueueId) -> bool {
        let queue = &self.queues[usize::from(sender.port.get())];
        queue.tail < SLOTS && queue.head != queue.tail
    }
}

impl PacketTransmitter for ToyCard {
    type Orders = NoOffloads;

    fn take(
        &mut self,
        sender: TransmitQueueId,
        buffers: &mut BufferChain,
    ) -> (NextPacketResult<NoOffloads>, usize) {
        let &[raw] = self.next(sender, 1) else { return (NextPacketResult::Nothing, 0) };
        let [address, second] = [0, 8].map(|at| u64::from_le_bytes(raw[at..at + 8].try_into().unwrap()));
        buffers.clear();
        buffers.push(address, second as u32);
        (NextPacketResult::Packet(NoOffloads), 1)
    }

    fn end_take(&mut self, sender: TransmitQueueId, read: bool) -> Option<bool> {
        self.pass(sender, 1);
        Some(read)
    }
}

impl ToyCard {
    /// Returns filled receive descriptors to the driver, at the end of a poll.
    pub(crate) fn settle(&mut self) {
        for n in 0..self.queues.len() as u8 {
            let terms = FrameRunProperties { tag: None, inexact: false, from_uplink: false };
            let Some(receiver) = self.receiver(PortIndex::of_field(n.into()), 0, terms) else { continue };
            receiver.posted.give_back(&receiver.ring, receiver.function, receiver.bus).unwrap();
            receiver.posted.take_spoke();
        }
    }
}
