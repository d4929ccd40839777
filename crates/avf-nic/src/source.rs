//! Implements the sources of the forwarding plane: the card's transmit queues, and their packets (crate `rings`). If
//! the VF's rate stops a packet between two of its segments, the VF keeps the rest. When the VF may send again, the
//! rest goes first, whichever of its queues is visited.
//!
//! `tx_ring` has the descriptors, and `rounds` chooses the queue to visit.

use crate::card::Nic;
use crate::function::VfHardware;
use crate::packet::DescriptorOffloads;
use crate::tx_ring::TransmitQueue;
use crate::work::FramePathState;
use pcie::{Bus, Function as BusFunction};
use plane::frame::HEADROOM;
use plane::ledger::{TrafficSum, UncountedTraffic};
use plane::{FrameForwarder, FrameSource, PortIndex, TransmitQueueId};
use rings::{
    BufferChain, NextPacketResult, PacketDropReason, PacketOffloads, PacketTransmitter, PausedPacketMemory,
    StagedPacket,
};

impl<B> FramePathState<'_, B> {
    fn sending(&mut self, sender: TransmitQueueId) -> Option<&mut VfHardware> {
        self.functions.get_mut(usize::from(sender.port.get()))
    }
}

impl<B: Bus> FrameSource for FramePathState<'_, B> {
    /// Returns true if the transmit queue's VF may use the bus, and the queue is started.
    fn may_send(&self, sender: TransmitQueueId) -> bool {
        let function = self.functions.get(usize::from(sender.port.get()));
        let function = function.filter(|function| function.master);
        function.and_then(|function| function.tx.get(usize::from(sender.queue))).is_some_and(|tx| tx.running)
    }

    fn hand_over<L: FrameForwarder>(&mut self, sender: TransmitQueueId, budget: usize, lane: &mut L) -> bool {
        rings::visit(self, sender, budget, lane)
    }

    fn has_more(&self, sender: TransmitQueueId) -> bool {
        let function = self.functions.get(usize::from(sender.port.get()));
        function.is_some_and(|function| {
            let tx = function.tx.get(usize::from(sender.queue));
            function.held.is_of(sender.queue) || tx.is_some_and(TransmitQueue::has_more)
        })
    }
}

impl<B: Bus> PacketTransmitter for FramePathState<'_, B> {
    type Orders = DescriptorOffloads;

    fn held(&mut self, sender: TransmitQueueId) -> Option<&mut PausedPacketMemory<DescriptorOffloads>> {
        self.sending(sender).map(|function| &mut function.held)
    }

    fn take(
        &mut self,
        sender: TransmitQueueId,
        buffers: &mut BufferChain,
    ) -> (NextPacketResult<DescriptorOffloads>, usize) {
        let (nothing, Self { functions, scratch, bus }) = ((NextPacketResult::Nothing, 0), self);
        let function = functions.get_mut(usize::from(sender.port.get())).filter(|function| function.master);
        let Some(function) = function else { return nothing };
        let Some(ring) = function.tx.get_mut(usize::from(sender.queue)) else { return nothing };
        match ring.take(BusFunction::Vf(sender.port.get()), &mut scratch.gathered, buffers, *bus) {
            Ok((NextPacketResult::Dropped(flaw), cost)) => {
                function.raise_sent(sender.queue);
                (NextPacketResult::Dropped(flaw), cost)
            }
            Ok(taken) => taken,
            Err(_) => {
                function.stop_sending(sender.queue);
                nothing
            }
        }
    }

    /// Writes back the descriptors of the packet that was taken last, and raises the queue's interrupt. Returns `None`
    /// if the packet's bytes could not be `read`, or the ring cannot be written to: then the queue has stopped.
    fn end_take(&mut self, sender: TransmitQueueId, read: bool) -> Option<bool> {
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

    /// Counts a malformed packet of a transmit queue. After many such packets the queue is stopped, until it is set up
    /// anew.
    fn spoiled(&mut self, sender: TransmitQueueId, _flaw: PacketDropReason) {
        let Some(function) = self.sending(sender) else { return };
        function.counters.malformed += 1;
        function.statistics.tx_errors += 1;
        let stopped = function.tx.get_mut(usize::from(sender.queue)).is_some_and(TransmitQueue::spoil);
        function.counters.stopped += u64::from(stopped);
    }

    /// Returns the VLAN tag that the packet requests, if its VF may insert tags.
    fn asked_tag(&self, sender: TransmitQueueId, orders: &DescriptorOffloads) -> Option<u16> {
        let function = self.functions.get(usize::from(sender.port.get()));
        orders.tag().filter(|_| function.is_some_and(|function| function.filters.tags.insert))
    }

    /// Adds the frames `sent` by one visit of a transmit queue to the statistics of the queue's VF.
    fn end_visit(&mut self, sender: TransmitQueueId, sent: &UncountedTraffic) -> u64 {
        if let Some(VfHardware { statistics, .. }) = self.sending(sender) {
            let TrafficSum { packets, bytes } = sent.all();
            statistics.tx_bytes += bytes;
            statistics.tx_unicast += packets - sent.multicast - sent.broadcast;
            statistics.tx_multicast += sent.multicast;
            statistics.tx_broadcast += sent.broadcast;
        }
        0
    }
}

impl Nic {
    /// Takes the next packet out of a transmit queue. Only tests and a fuzz target call it; the plane visits a queue by
    /// [`FrameSource::hand_over`]. The packet's bytes are in `into` behind [`plane::frame::HEADROOM`] bytes.
    pub fn transmit<B: Bus>(
        &mut self,
        vf: u8,
        queue: u8,
        into: &mut StagedPacket,
        bus: &mut B,
    ) -> NextPacketResult<DescriptorOffloads> {
        let (mut buffers, mut work) = (BufferChain::default(), self.work(bus));
        let sender = TransmitQueueId { port: PortIndex::of_field(vf.into()), queue };
        let (taken, _) = work.take(sender, &mut buffers);
        if let NextPacketResult::Dropped(flaw) = taken {
            work.spoiled(sender, flaw);
        }
        if let NextPacketResult::Packet(_) = taken {
            into.set_length(HEADROOM);
            let place = into.extend(buffers.bytes());
            let read = buffers.read(BusFunction::Vf(vf), work.bus, place).is_ok();
            if work.end_take(sender, read).is_none() {
                return NextPacketResult::Nothing;
            }
        }
        taken
    }
}
