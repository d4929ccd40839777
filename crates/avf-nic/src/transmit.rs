//! The card's transmit queues as sources of the plane, and their packets (crate `rings`). If the VF's rate stops a packet between
//! two of its segments, the VF keeps the rest. When the VF may send again, the rest goes first, whichever of its queues is
//! visited.
//!
//! `tx_ring` has the descriptors, and `rounds` chooses the queue to visit.

use crate::card::Card;
use crate::function::Function;
use crate::packet::PacketOrders;
use crate::tx_ring::TxQueue;
use crate::work::Work;
use pcie::{Bus, Function as BusFunction};
use plane::frame::HEADROOM;
use plane::ledger::{Sum, Traffic};
use plane::{Lane, Port, Sender, Source};
use rings::{Buffers, Flaw, Held, Orders, Packets, Staging, Taken};

impl<B> Work<'_, B> {
    fn sending(&mut self, sender: Sender) -> Option<&mut Function> {
        self.functions.get_mut(usize::from(sender.port.get()))
    }
}

impl<B: Bus> Source for Work<'_, B> {
    /// Returns true if the queue's function may use the bus, and the queue runs.
    fn may_send(&self, sender: Sender) -> bool {
        let function = self.functions.get(usize::from(sender.port.get()));
        let function = function.filter(|function| function.master);
        function.and_then(|function| function.tx.get(usize::from(sender.queue))).is_some_and(|tx| tx.running)
    }

    fn hand_over<L: Lane>(&mut self, sender: Sender, budget: usize, lane: &mut L) -> bool {
        rings::visit(self, sender, budget, lane)
    }

    fn has_more(&self, sender: Sender) -> bool {
        let function = self.functions.get(usize::from(sender.port.get()));
        function.is_some_and(|function| {
            let tx = function.tx.get(usize::from(sender.queue));
            function.held.is_of(sender.queue) || tx.is_some_and(TxQueue::has_more)
        })
    }
}

impl<B: Bus> Packets for Work<'_, B> {
    type Orders = PacketOrders;

    fn held(&mut self, sender: Sender) -> Option<&mut Held<PacketOrders>> {
        self.sending(sender).map(|function| &mut function.held)
    }

    fn take(&mut self, sender: Sender, buffers: &mut Buffers) -> (Taken<PacketOrders>, usize) {
        let (nothing, Self { functions, scratch, bus }) = ((Taken::Nothing, 0), self);
        let function = functions.get_mut(usize::from(sender.port.get())).filter(|function| function.master);
        let Some(function) = function else { return nothing };
        let Some(ring) = function.tx.get_mut(usize::from(sender.queue)) else { return nothing };
        match ring.take(BusFunction::Vf(sender.port.get()), &mut scratch.gathered, buffers, *bus) {
            Ok((Taken::Dropped(flaw), cost)) => {
                function.raise_sent(sender.queue);
                (Taken::Dropped(flaw), cost)
            }
            Ok(taken) => taken,
            Err(_) => {
                function.stop_sending(sender.queue);
                nothing
            }
        }
    }

    /// Gives back the descriptors of the packet that was taken last, and raises the queue's interrupt. Returns `None` if
    /// the packet's bytes could not be `read`, or the ring cannot be written to: then the queue has stopped.
    fn end_take(&mut self, sender: Sender, read: bool) -> Option<bool> {
        let Self { functions, scratch, bus } = self;
        let function = functions.get_mut(usize::from(sender.port.get()))?;
        let ring = function.tx.get_mut(usize::from(sender.queue))?;
        let own = BusFunction::Vf(sender.port.get());
        if !read || ring.end_take(own, &scratch.gathered, *bus).is_err() {
            function.stop_sending(sender.queue);
            return None;
        }
        function.raise_sent(sender.queue);
        Some(true)
    }

    /// Counts a malformed packet of a queue. After many such packets the queue is stopped, until it is set up anew.
    fn spoiled(&mut self, sender: Sender, _flaw: Flaw) {
        let Some(function) = self.sending(sender) else { return };
        function.counters.malformed += 1;
        function.statistics.tx_errors += 1;
        let stopped = function.tx.get_mut(usize::from(sender.queue)).is_some_and(TxQueue::spoil);
        function.counters.stopped += u64::from(stopped);
    }

    /// Returns the VLAN tag that the packet requests, if its VF may insert tags.
    fn asked_tag(&self, sender: Sender, orders: &PacketOrders) -> Option<u16> {
        let function = self.functions.get(usize::from(sender.port.get()));
        orders.tag().filter(|_| function.is_some_and(|function| function.filters.tags.insert))
    }

    /// Adds the frames that a visit to a queue has sent to the VF's statistics.
    fn end_visit(&mut self, sender: Sender, sent: &Traffic) -> u64 {
        if let Some(Function { statistics, .. }) = self.sending(sender) {
            let Sum { packets, bytes } = sent.all();
            statistics.tx_bytes += bytes;
            statistics.tx_unicast += packets - sent.multicast - sent.broadcast;
            statistics.tx_multicast += sent.multicast;
            statistics.tx_broadcast += sent.broadcast;
        }
        0
    }
}

impl Card {
    /// Takes the next packet out of a transmit queue. The packet's bytes are in `into` behind
    /// [`plane::frame::HEADROOM`] bytes.
    pub fn transmit<B: Bus>(
        &mut self,
        vf: u8,
        queue: u8,
        into: &mut Staging,
        bus: &mut B,
    ) -> Taken<PacketOrders> {
        let (mut buffers, mut work) = (Buffers::default(), self.work(bus));
        let sender = Sender { port: Port::of_field(vf.into()), queue };
        let (taken, _) = work.take(sender, &mut buffers);
        if let Taken::Dropped(flaw) = taken {
            work.spoiled(sender, flaw);
        }
        if let Taken::Packet(_) = taken {
            into.set_length(HEADROOM);
            let place = into.extend(buffers.bytes());
            let read = buffers.read(BusFunction::Vf(vf), work.bus, place).is_ok();
            if work.end_take(sender, read).is_none() {
                return Taken::Nothing;
            }
        }
        taken
    }
}
