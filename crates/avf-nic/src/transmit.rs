//! Takes packets out of the transmit queues of VFs. Counts each packet, and raises the interrupt of its queue.
//! `tx_ring` has the queues.

use crate::card::Card;
use crate::packet::PacketOrders;
use crate::tx_ring::TxQueue;
use avf::descriptor::tx::SIZE;
use pcie::{Bus, Function as BusFunction, Space};
use plane::Sender;
use plane::frame::HEADROOM;
use plane::ledger::{Sum, Traffic};
use rings::{Buffers, Staging, Taken};

impl Card {
    /// Reads the descriptors of the next packet of a transmit queue; see [`rings::Packets::take`].
    pub(crate) fn take_packet<B: Bus>(
        &mut self,
        vf: u8,
        queue: u8,
        buffers: &mut Buffers,
        bus: &mut B,
    ) -> (Taken<PacketOrders>, usize) {
        let nothing = (Taken::Nothing, 0);
        let function = self.functions.get_mut(usize::from(vf)).filter(|function| function.master);
        let Some(function) = function else { return nothing };
        let Some(ring) = function.tx.get_mut(usize::from(queue)) else { return nothing };
        match ring.take(BusFunction::Vf(vf), &mut self.gathered, buffers, bus) {
            Ok((Taken::Dropped(flaw), cost)) => {
                function.raise_sent(queue);
                (Taken::Dropped(flaw), cost)
            }
            Ok(taken) => taken,
            Err(_) => {
                function.stop_sending(queue);
                nothing
            }
        }
    }

    /// Gives back the descriptors of the packet that was taken last, and raises the queue's interrupt. Returns false if
    /// the packet's bytes could not be `read`, or the ring cannot be written to: then the queue has stopped.
    pub(crate) fn end_packet<B: Bus>(&mut self, vf: u8, queue: u8, read: bool, bus: &mut B) -> bool {
        let Some(function) = self.functions.get_mut(usize::from(vf)) else { return false };
        let Some(ring) = function.tx.get_mut(usize::from(queue)) else { return false };
        if !read || ring.end_take(BusFunction::Vf(vf), &self.gathered, bus).is_err() {
            function.stop_sending(queue);
            return false;
        }
        function.raise_sent(queue);
        true
    }

    /// Takes the next packet out of a transmit queue. The packet's bytes are in `into` behind
    /// [`plane::frame::HEADROOM`] bytes.
    pub fn transmit<B: Bus>(
        &mut self,
        vf: u8,
        queue: u8,
        into: &mut Staging,
        bus: &mut B,
    ) -> Taken<PacketOrders> {
        let mut buffers = Buffers::default();
        let (taken, _) = self.take_packet(vf, queue, &mut buffers, bus);
        if let Taken::Dropped(_) = taken {
            self.count_malformed(vf, queue);
        }
        if let Taken::Packet(_) = taken {
            into.set_length(HEADROOM);
            let place = into.extend(buffers.bytes());
            let read = buffers.read(BusFunction::Vf(vf), bus, place).is_ok();
            if !self.end_packet(vf, queue, read, bus) {
                return Taken::Nothing;
            }
        }
        taken
    }

    /// Reads up to `most` descriptors that come next in a transmit queue. Returns none while a packet waits between two
    /// segments, or if the descriptors cannot be read: `take_packet` then finds the fault.
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

    /// Gives back the first `count` descriptors that were read, whose frames have left, and raises the queue's
    /// interrupt.
    pub(crate) fn pass_plain<B: Bus>(&mut self, sender: Sender, count: usize, bus: &mut B) {
        let Self { functions, plain, .. } = self;
        let (vf, queue) = (sender.port.get(), sender.queue);
        let Some(function) = functions.get_mut(usize::from(vf)).filter(|_| count > 0) else { return };
        let Some(ring) = function.tx.get_mut(usize::from(queue)) else { return };
        if ring.pass(plain, count, BusFunction::Vf(vf), bus).is_err() {
            return function.stop_sending(queue);
        }
        function.raise_sent(queue);
    }

    /// Counts a malformed packet of a queue. After many such packets the queue is stopped, until it is set up anew.
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

    /// Adds the frames that a visit to a queue has sent to the VF's statistics.
    pub(crate) fn count_sent(&mut self, vf: u8, sent: &Traffic) {
        let Some(function) = self.functions.get_mut(usize::from(vf)) else { return };
        let (statistics, Sum { packets, bytes }) = (&mut function.statistics, sent.all());
        statistics.tx_bytes += bytes;
        statistics.tx_unicast += packets - sent.multicast - sent.broadcast;
        statistics.tx_multicast += sent.multicast;
        statistics.tx_broadcast += sent.broadcast;
    }
}
