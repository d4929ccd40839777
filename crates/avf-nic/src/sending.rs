//! Packets out of the transmit queues of VFs: each is counted, and noted as an interrupt. Left out: the queues (`transmit`).

use crate::card::Card;
use crate::packet::PacketOrders;
use crate::transmit::TxQueue;
use avf::descriptor::tx::SIZE;
use pcie::{Bus, Function as BusFunction, Space};
use plane::Sender;
use plane::ledger::{Sum, Traffic};
use rings::{Staging, Taken};

impl Card {
    /// Takes the next packet out of a transmit queue, behind headroom, and notes the interrupt. Returns it with its cost in frames.
    pub(crate) fn take_packet<B: Bus>(
        &mut self,
        vf: u8,
        queue: u8,
        into: &mut Staging,
        bus: &mut B,
    ) -> (Taken<PacketOrders>, usize) {
        let nothing = (Taken::Nothing, 0);
        let function = self.functions.get_mut(usize::from(vf)).filter(|function| function.master);
        let Some(function) = function else { return nothing };
        let Some(ring) = function.tx.get_mut(usize::from(queue)) else { return nothing };
        match ring.next(BusFunction::Vf(vf), into, bus) {
            Ok((Taken::Nothing, _)) => nothing,
            Ok(taken) => {
                function.raise_sent(queue);
                taken
            }
            Err(_) => {
                ring.running = false;
                function.counters.dma_faults += 1;
                nothing
            }
        }
    }

    /// Takes the next packet out of a transmit queue. Its bytes are in `into` behind [`plane::frame::HEADROOM`] bytes.
    pub fn transmit<B: Bus>(
        &mut self,
        vf: u8,
        queue: u8,
        into: &mut Staging,
        bus: &mut B,
    ) -> Taken<PacketOrders> {
        let (taken, _) = self.take_packet(vf, queue, into, bus);
        if let Taken::Dropped(_) = taken {
            self.count_malformed(vf, queue);
        }
        taken
    }

    /// Reads up to `most` descriptors that come next in a queue. None while a packet waits between two segments, and none if they
    /// cannot be read: `take_packet` finds out.
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

    #[cold]
    pub(crate) fn count_refused(&mut self, vf: u8) {
        let function = self.functions.get_mut(usize::from(vf));
        function.map(|function| function.statistics.tx_discards += 1).unwrap_or_default();
    }

    /// Adds what a visit of one of the VF's queues has sent to the VF's statistics.
    pub(crate) fn count_sent(&mut self, vf: u8, sent: &Traffic) {
        let Some(function) = self.functions.get_mut(usize::from(vf)) else { return };
        let (statistics, Sum { packets, bytes }) = (&mut function.statistics, sent.all());
        statistics.tx_bytes += bytes;
        statistics.tx_unicast += packets - sent.multicast - sent.broadcast;
        statistics.tx_multicast += sent.multicast;
        statistics.tx_broadcast += sent.broadcast;
    }
}
