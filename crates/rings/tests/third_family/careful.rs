//! Traits of the toy card for packets that travel one by one.

use crate::memory::SLOTS;
use crate::toy::Toy;
use offload::plain::{Plain, PlainKind};
use pcie::Bus;
use plane::frame::Frame;
use plane::{About, Lane, Missed, Port, Sender, Sink, Source};
use rings::{Arrivals, Buffers, Card, Orders, Packets, RxFormat, Taken, Terms};

/// Offload requests of a packet that is a frame as it is: none.
#[derive(Clone, Copy)]
pub(crate) struct AsIs;

impl Orders for AsIs {}

impl Sink for Toy {
    type Findings = Option<Option<PlainKind>>;

    fn deliver(
        &mut self,
        port: Port,
        frame: &mut Frame<'_>,
        about: About,
        findings: &mut Self::Findings,
    ) -> Result<usize, Missed> {
        rings::deliver(self, port, frame, about, findings)
    }
}

impl Arrivals for Toy {
    type Contents = Option<PlainKind>;

    fn look(&mut self, frame: &mut Frame<'_>, about: About) -> Option<PlainKind> {
        let bytes = frame.untagged();
        let plain = bytes.first_chunk().and_then(|head| Plain::of(head, bytes.len()));
        plain.filter(|_| about.alone && bytes[0] & 1 == 0).map(|plain| plain.find(bytes, None))
    }

    fn put(
        &mut self,
        port: Port,
        frame: &mut Frame<'_>,
        about: About,
        found: Option<PlainKind>,
    ) -> Result<usize, Missed> {
        let tag = frame.tag.filter(|_| about.strips);
        let terms = Terms { tag, inexact: about.inexact, from_uplink: about.from_uplink };
        let receiver = self.receiver(port, 0, terms).ok_or(Missed::Disabled)?;
        let (posted, ring, function) = (receiver.posted, receiver.ring, receiver.function);
        let bytes = frame.delivered(!about.strips);
        if posted.prepare(&ring, function, receiver.bus).unwrap_or(0) == 0 || bytes.len() > receiver.longest {
            return Err(Missed::Dropped);
        }
        let written = receiver.bus.dma_write(function, posted.word(&ring, 0, 0), bytes);
        let mut words = receiver.format.words(found.unwrap_or_default(), None, bytes.len() as u32);
        words[0] |= if found.is_none() { 0xff } else { 0 };
        posted.fill(&ring, words);
        written.map(|()| bytes.len()).map_err(|_| Missed::Fault)
    }
}

impl Source for Toy {
    fn may_send(&self, _sender: Sender) -> bool {
        true
    }

    fn hand_over<L: Lane>(&mut self, sender: Sender, budget: usize, lane: &mut L) -> bool {
        rings::visit(self, sender, budget, lane)
    }

    fn has_more(&self, sender: Sender) -> bool {
        let queue = &self.queues[usize::from(sender.port.get())];
        queue.tail < SLOTS && queue.head != queue.tail
    }
}

impl Packets for Toy {
    type Orders = AsIs;

    fn take(&mut self, sender: Sender, buffers: &mut Buffers) -> (Taken<AsIs>, usize) {
        let &[raw] = self.next(sender, 1) else { return (Taken::Nothing, 0) };
        let [address, second] = [0, 8].map(|at| u64::from_le_bytes(raw[at..at + 8].try_into().unwrap()));
        buffers.clear();
        buffers.push(address, second as u32);
        (Taken::Packet(AsIs), 1)
    }

    fn end_take(&mut self, sender: Sender, read: bool) -> Option<bool> {
        self.pass(sender, 1);
        Some(read)
    }
}

impl Toy {
    /// Gives filled receive descriptors back to the driver, at the end of a poll.
    pub(crate) fn settle(&mut self) {
        for n in 0..self.queues.len() as u8 {
            let terms = Terms { tag: None, inexact: false, from_uplink: false };
            let Some(receiver) = self.receiver(Port::of_field(n.into()), 0, terms) else { continue };
            receiver.posted.give_back(&receiver.ring, receiver.function, receiver.bus).unwrap();
            receiver.posted.take_spoke();
        }
    }
}
