//! The toy's careful way: one frame after the other.

use crate::memory::SLOTS;
use crate::toy::Toy;
use offload::plain::Plain;
use pcie::{Bus, Function};
use plane::frame::{Frame, HEADROOM};
use plane::{About, Lane, Missed, Port, Sender, Sink, Source};
use rings::{Card, Frames, RxFormat, Terms};

impl Sink for Toy {
    type Findings = ();

    fn deliver(
        &mut self,
        port: Port,
        frame: &mut Frame<'_>,
        about: About,
        (): &mut (),
    ) -> Result<usize, Missed> {
        if !self.careful
            && let Some(bytes) = rings::deliver(self, port, frame, about)
        {
            return Ok(bytes);
        }
        let tag = frame.tag.filter(|_| about.strips);
        let terms = Terms { tag, inexact: about.inexact, from_uplink: about.from_uplink };
        let bytes = frame.untagged();
        let plain = bytes.first_chunk().and_then(|head| Plain::of(head, bytes.len()));
        let usual = about.alone && bytes[0] & 1 == 0;
        let found = plain.filter(|_| usual).map(|plain| plain.find(bytes, None));
        let receiver = self.receiver(port, 0, terms).ok_or(Missed::Disabled)?;
        let (posted, ring, function) = (receiver.posted, receiver.ring, receiver.function);
        if posted.prepare(&ring, function, receiver.bus).unwrap_or(0) == 0 {
            return Err(Missed::Dropped);
        }
        let bytes = frame.delivered(!about.strips);
        if bytes.len() > receiver.longest {
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

    fn hand_over<L: Lane>(&mut self, sender: Sender, mut budget: usize, lane: &mut L) -> bool {
        let mut burst = self.burst.take().or_else(|| (!self.careful).then(Frames::new));
        while budget > 0 && lane.is_due() && self.has_more(sender) {
            let sent = burst.as_mut().map_or(0, |burst| rings::forward(self, sender, burst, budget, lane));
            if sent == 0 {
                self.send_one(sender, lane);
            }
            budget = budget.saturating_sub(sent.max(1));
        }
        self.burst = burst;
        lane.settle();
        self.has_more(sender)
    }

    fn has_more(&self, sender: Sender) -> bool {
        let queue = &self.queues[usize::from(sender.port.get())];
        queue.tail < SLOTS && queue.head != queue.tail
    }
}

impl Toy {
    fn send_one<L: Lane>(&mut self, sender: Sender, lane: &mut L) {
        let &[raw] = self.next(sender, 1) else { return };
        let [address, second] = [0, 8].map(|at| u64::from_le_bytes(raw[at..at + 8].try_into().unwrap()));
        let length = second as u32 as usize;
        let mut bytes = vec![0; HEADROOM + length.max(60)];
        let place = &mut bytes[HEADROOM..HEADROOM + length];
        let fault = self.memory.dma_read(Function::Vf(sender.port.get()), address, place).is_err();
        lane.counters().dma_faults += u64::from(fault);
        if let Some(mut frame) = Frame::new(&mut bytes).filter(|_| !fault) {
            frame.take_tag();
            frame.tag = lane.tag(None).or(frame.tag);
            let reason = lane.send(self, &mut frame).refused;
            reason.inspect(|reason| self.refused(sender, *reason));
        }
        self.at_hand[0] = raw;
        self.pass(sender, 1);
    }

    /// Gives received descriptors back, at the end of a poll.
    pub(crate) fn settle(&mut self) {
        for n in 0..self.queues.len() as u8 {
            let receiver = self.receiver(
                Port::of_field(n.into()),
                0,
                Terms { tag: None, inexact: false, from_uplink: false },
            );
            let Some(receiver) = receiver else { continue };
            receiver.posted.give_back(&receiver.ring, receiver.function, receiver.bus).unwrap();
            receiver.posted.take_spoke();
        }
    }
}
