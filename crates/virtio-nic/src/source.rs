//! Passes packets from the card's transmit rings to the forwarding plane, with crate `rings`. `transmit` has the
//! chains, and `rounds` chooses the ring to visit.

use crate::packet::PacketOffloadRequest;
use crate::transmit::transmit_ring;
use crate::work::VirtioFramePathState;
use pcie::Bus;
use pcie::burst::BURST;
use plane::frame::TrustedChecksum;
use plane::ledger::UncountedTraffic;
use plane::{FrameForwarder, FrameSource, TransmitQueueId, UncutOutcome};
use rings::{
    BufferChain, InvalidChecksumRequest, NextPacketResult, PacketDropReason, PacketTransmitter,
    PausedPacketMemory,
};
use units::WorkCost;

impl<B: Bus> FrameSource for VirtioFramePathState<'_, B> {
    fn may_send(&self, sender: TransmitQueueId) -> bool {
        let device = self.devices.get(usize::from(sender.port.get()));
        let ring = device.and_then(|device| device.transmit.get(usize::from(sender.queue)));
        ring.is_some_and(|ring| ring.queue.is_some())
    }

    fn hand_over<L: FrameForwarder>(&mut self, sender: TransmitQueueId, budget: usize, lane: &mut L) -> bool {
        let Some(device) = self.sending(sender) else { return false };
        let live = device.transmit.get(usize::from(sender.queue)).is_some_and(|ring| ring.enabled);
        if device.rules.enabled && live {
            rings::visit(self, sender, budget, lane)
        } else {
            self.discard(sender, budget, lane)
        }
    }

    fn has_more(&self, sender: TransmitQueueId) -> bool {
        let device = self.devices.get(usize::from(sender.port.get()));
        device.is_some_and(|device| device.ready >> sender.queue & 1 != 0 || device.held.is_of(sender.queue))
    }
}

impl<B: Bus> VirtioFramePathState<'_, B> {
    /// Drops the packets of a transmit ring whose VF may not send. A guest whose packets stay in the ring would treat
    /// its device as broken.
    fn discard<L: FrameForwarder>(&mut self, sender: TransmitQueueId, budget: usize, lane: &mut L) -> bool {
        let Self { devices, scratch, bus } = self;
        let mut left = false;
        if let Some(device) = devices.get_mut(usize::from(sender.port.get())) {
            let may_drop = !device.rules.enabled || device.held.is_of(sender.queue);
            if may_drop && device.drop_paused_packet() {
                lane.counters().tx_unclaimed += 1;
            }
            match scratch.sent.fetch(device, sender, budget, *bus) {
                Ok(any) => {
                    let dropped = scratch.sent.pass_all();
                    lane.counters().tx_unclaimed += dropped;
                    lane.charge(WorkCost::of_burst(dropped as usize, 0));
                    left = any;
                }
                Err(_) => scratch.sent.fail(device, sender),
            }
        }
        self.end_visit(sender, &UncountedTraffic::default());
        left
    }
}

impl<B: Bus> PacketTransmitter for VirtioFramePathState<'_, B> {
    type Orders = PacketOffloadRequest;

    fn held(&mut self, sender: TransmitQueueId) -> Option<&mut PausedPacketMemory<PacketOffloadRequest>> {
        self.sending(sender).map(|device| &mut device.held)
    }

    fn take(
        &mut self,
        sender: TransmitQueueId,
        buffers: &mut BufferChain,
    ) -> (NextPacketResult<PacketOffloadRequest>, usize) {
        let nothing = (NextPacketResult::Nothing, 0);
        let Self { devices, scratch, bus } = self;
        let Some(device) = devices.get_mut(usize::from(sender.port.get())) else { return nothing };
        match scratch.sent.fetch(device, sender, BURST, *bus) {
            Ok(true) => scratch.sent.take(device, sender.port, buffers, *bus),
            Ok(false) => nothing,
            Err(_) => {
                scratch.sent.fail(device, sender);
                nothing
            }
        }
    }

    fn end_take(&mut self, _sender: TransmitQueueId, read: bool) -> Option<bool> {
        self.scratch.sent.pass(1);
        Some(read)
    }

    fn spoiled(&mut self, sender: TransmitQueueId, _flaw: PacketDropReason) {
        if let Some(device) = self.sending(sender) {
            device.counters.malformed += 1;
        }
    }

    fn insert_sums(
        &mut self,
        sender: TransmitQueueId,
        orders: &PacketOffloadRequest,
        frame: &mut [u8],
    ) -> Result<Option<TrustedChecksum>, InvalidChecksumRequest> {
        if !orders.requests_checksum() {
            return Ok(None);
        }
        let trusted = orders.complete(frame)?;
        if let Some(device) = self.sending(sender) {
            device.counters.checksums_filled += 1;
        }
        Ok(trusted)
    }

    fn count_large(&mut self, sender: TransmitQueueId, passed_on: Option<UncutOutcome>) {
        let Some(device) = self.sending(sender) else { return };
        let count = match passed_on {
            None => &mut device.counters.packets_cut,
            Some(UncutOutcome::Port) => &mut device.counters.uncut_to_guests,
            Some(UncutOutcome::Uplink) => &mut device.counters.uncut_to_uplink,
            Some(UncutOutcome::Dropped) => return,
        };
        *count += 1;
    }

    fn end_visit(&mut self, sender: TransmitQueueId, _sent: &UncountedTraffic) -> u64 {
        let Self { devices, scratch, bus } = self;
        let Some(device) = devices.get_mut(usize::from(sender.port.get())) else { return 0 };
        match scratch.sent.end(device, sender, *bus) {
            Ok(false) => 0,
            Ok(true) => {
                let ring = (sender.port, transmit_ring(sender.queue));
                device.interrupt(ring, (scratch.now, scratch.intervals), *bus);
                0
            }
            Err(_) => {
                scratch.sent.fail(device, sender);
                1
            }
        }
    }
}
