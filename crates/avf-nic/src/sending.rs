//! Packets out of the transmit queues of VFs: each is counted, and noted as an interrupt. Left out: the queues (`transmit`).

use crate::card::Card;
use crate::staging::Staging;
use crate::transmit::{MOST_HEADROOM, Outgoing, TxQueue};
use avf::descriptor::tx::SIZE;
use pcie::{Bus, Function as BusFunction, Space};
use plane::Sender;

impl Card {
    /// Takes the next packet out of a transmit queue, its bytes behind `headroom` (64 at most) bytes of a buffer that has
    /// room for 256 KB, and notes the interrupt.
    pub fn transmit<B: Bus>(
        &mut self,
        vf: u8,
        queue: u8,
        headroom: usize,
        into: &mut Staging,
        bus: &mut B,
    ) -> Outgoing {
        let function = self.functions.get_mut(usize::from(vf)).filter(|function| function.master);
        let Some(function) = function else { return Outgoing::Nothing };
        let Some(ring) = function.tx.get_mut(usize::from(queue)) else { return Outgoing::Nothing };
        let outgoing = match ring.next(BusFunction::Vf(vf), headroom.min(MOST_HEADROOM), into, bus) {
            Ok(outgoing) => outgoing,
            Err(_) => {
                ring.running = false;
                function.counters.dma_faults += 1;
                return Outgoing::Nothing;
            }
        };
        if outgoing == Outgoing::Nothing {
            return outgoing;
        }
        function.raise_sent(queue);
        if outgoing == Outgoing::Dropped {
            self.count_malformed(vf, queue);
        }
        outgoing
    }

    /// Reads up to `most` descriptors that come next in a queue. None while a packet waits between two segments, and none if they
    /// cannot be read: [`Card::transmit`] finds out.
    pub(crate) fn next_plain<B: Bus>(&mut self, sender: Sender, most: usize, bus: &mut B) -> &[[u8; SIZE]] {
        let Self { functions, plain, .. } = self;
        let (vf, queue) = (sender.port.get(), usize::from(sender.queue));
        let function = functions.get_mut(usize::from(vf)).filter(|function| function.held.is_empty());
        let Some(ring) = function.and_then(|function| function.tx.get_mut(queue)) else { return &[] };
        let (at, left) = ring.ready();
        let raw = plain.place(left.min(most), at);
        let space = Space { function: BusFunction::Vf(vf), hint: &mut ring.hint };
        if raw.is_empty() || bus.read_descriptors(space, at, raw.as_flattened_mut()).is_err() {
            return &[];
        }
        raw
    }

    /// The frames of the first descriptors that were read have left: gives these back and notes the interrupt.
    pub(crate) fn pass_plain<B: Bus>(&mut self, sender: Sender, count: usize, bus: &mut B) {
        let Self { functions, plain, .. } = self;
        let (vf, queue) = (sender.port.get(), sender.queue);
        let Some(function) = functions.get_mut(usize::from(vf)).filter(|_| count > 0) else { return };
        let Some(ring) = function.tx.get_mut(usize::from(queue)) else { return };
        if ring.pass(plain, count, BusFunction::Vf(vf), bus).is_err() {
            ring.running = false;
            function.counters.dma_faults += 1;
            return;
        }
        function.raise_sent(queue);
    }

    /// A packet of a queue was malformed. After many the queue is stopped, until it is set up anew.
    pub(crate) fn count_malformed(&mut self, vf: u8, queue: u8) {
        let Some(function) = self.functions.get_mut(usize::from(vf)) else { return };
        function.counters.malformed += 1;
        function.statistics.tx_errors += 1;
        let stopped = function.tx.get_mut(usize::from(queue)).is_some_and(TxQueue::spoil);
        function.counters.stopped += u64::from(stopped);
    }
}
