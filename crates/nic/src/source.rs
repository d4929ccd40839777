//! The card's transmit queues as sources of the plane, and the offload requests of their packets (crate `rings`).
//! `queue::transmit` has the descriptors, and `rounds` chooses the queue to visit.

use crate::interrupt::QueueDirection;
use crate::offload::segment::flag_masks;
use crate::offload::transmit;
use crate::queue::QueueIo;
use crate::queue::packet::DescriptorOffloads;
use crate::switch;
use crate::work::FramePathState;
use i82576::bits::lvmmc;
use i82576::register as r;
use offload::segment::TcpFlagMasks;
use pcie::Bus;
use plane::frame::TrustedChecksum;
use plane::ledger::UncountedTraffic;
use plane::{FrameForwarder, FrameSource, TransmitQueueId, UncutOutcome};
use rings::{
    BufferChain, InvalidChecksumRequest, NextPacketResult, PacketDropReason, PacketTransmitter,
    PausedPacketMemory,
};

impl<B: Bus> FrameSource for FramePathState<'_, B> {
    /// Returns true if a transmit queue may send: its pool is enabled, the queue is not blocked, and its function may
    /// read memory.
    fn may_send(&self, sender: TransmitQueueId) -> bool {
        let (queue, owners) = (switch::queue(sender), &self.scratch.conditions.owners);
        self.file.get(r::VFTE) & u32::from(queue.pool().bit()) != 0
            && !self.is_blocked(queue)
            && owners.may_master(owners.of_queue(queue))
    }

    fn hand_over<L: FrameForwarder>(&mut self, sender: TransmitQueueId, budget: usize, lane: &mut L) -> bool {
        rings::visit(self, sender, budget, lane)
    }

    fn has_more(&self, sender: TransmitQueueId) -> bool {
        self.queues.tx[switch::queue(sender).index()].has_more(self.file)
    }
}

impl<B: Bus> PacketTransmitter for FramePathState<'_, B> {
    type Orders = DescriptorOffloads;

    const SENDS_MISFITS: bool = true;

    #[inline]
    fn held(&mut self, sender: TransmitQueueId) -> Option<&mut PausedPacketMemory<DescriptorOffloads>> {
        Some(&mut self.queues.tx[switch::queue(sender).index()].held)
    }

    fn take(
        &mut self,
        sender: TransmitQueueId,
        buffers: &mut BufferChain,
    ) -> (NextPacketResult<DescriptorOffloads>, usize) {
        let queue = switch::queue(sender);
        let function = self.scratch.conditions.owners.of_queue(queue);
        let tx = &mut self.queues.tx[queue.index()];
        let Some(ring) = tx.open(self.file) else { return (NextPacketResult::Nothing, 0) };
        let mut io = QueueIo { file: &mut *self.file, function, bus: &mut *self.bus };
        let taken = tx.take(&mut io, &ring, &mut self.scratch.descriptors, buffers);
        (taken, tx.effort())
    }

    fn end_take(&mut self, sender: TransmitQueueId, read: bool) -> Option<bool> {
        let queue = switch::queue(sender);
        let function = self.scratch.conditions.owners.of_queue(queue);
        let mut io = QueueIo { file: &mut *self.file, function, bus: &mut *self.bus };
        Some(self.queues.tx[queue.index()].end_take(&mut io, &self.scratch.descriptors) && read)
    }

    /// Returns true if a transmit queue may send another packet after the last: only a malformed packet of the queue
    /// prevents that.
    #[inline]
    fn may_follow(&self, sender: TransmitQueueId) -> bool {
        !self.is_blocked(switch::queue(sender))
    }

    fn spoiled(&mut self, sender: TransmitQueueId, flaw: PacketDropReason) {
        let cause = match flaw {
            PacketDropReason::Size => lvmmc::SIZE,
            PacketDropReason::Descriptor => lvmmc::DESCRIPTOR,
            PacketDropReason::Offload => lvmmc::CONTEXT,
            // The plane counts faults. They are no misbehaviour of a driver.
            PacketDropReason::Fault => return,
        };
        self.misbehaved(switch::queue(sender), cause);
    }

    #[inline]
    fn insert_sums(
        &mut self,
        _sender: TransmitQueueId,
        orders: &DescriptorOffloads,
        frame: &mut [u8],
    ) -> Result<Option<TrustedChecksum>, InvalidChecksumRequest> {
        if let Some(checksum) = &orders.checksum {
            transmit::insert_legacy(frame, checksum);
            return Ok(None);
        }
        transmit::insert(frame, orders.first, &orders.context).map_err(|_| InvalidChecksumRequest)
    }

    fn flag_masks(&self) -> TcpFlagMasks {
        flag_masks(self.file.get(r::DTXTCPFLGL), self.file.get(r::DTXTCPFLGH))
    }

    fn count_large(&mut self, _sender: TransmitQueueId, _passed_on: Option<UncutOutcome>) {
        self.file.count(r::TSCTC, 1);
    }

    #[inline]
    fn left(&mut self, sender: TransmitQueueId, orders: &DescriptorOffloads) {
        let queue = switch::queue(sender);
        if orders.first.time_stamp() && self.scratch.conditions.owners.vf_of(queue.pool()).is_none() {
            self.stamp_sent(self.scratch.now);
        }
    }

    fn end_visit(&mut self, sender: TransmitQueueId, sent: &UncountedTraffic) -> u64 {
        let queue = switch::queue(sender);
        let function = self.scratch.conditions.owners.of_queue(queue);
        self.count_sent(queue.pool(), sent);
        let mut io = QueueIo { file: &mut *self.file, function, bus: &mut *self.bus };
        let announced = self.queues.tx[queue.index()].write_back(&mut io);
        let faulted = self.announce(queue, QueueDirection::Tx, announced);
        core::mem::take(&mut self.scratch.faults) + u64::from(faulted)
    }
}
