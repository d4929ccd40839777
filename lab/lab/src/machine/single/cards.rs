//! Simulates the network cards of the single-processor machine. A CDNA card takes frames from contexts in turn, a card
//! under Xen from the driver domain's ring. Both interrupt at most once per interval.

use super::driver::OutgoingFrame;
use super::wire::{InboundWire, ModelFrame};
use super::{CardDriver, SingleCpuCore, SingleCpuEvent, SingleCpuMachine};
use crate::machine::books::ConservationChecks;
use crate::machine::parts::cdna::bits::InterruptBitVectors;
use crate::machine::parts::cdna::card::{CdnaCard, RECEIVE, TRANSMIT};
use crate::machine::parts::cdna::{GuestNumber, PageBuffer};
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;
use hypervisor::domain::DomainKind;
use sim::{EventKey, VirtualInstant};

#[cfg(test)]
mod tests;

/// Port of the single-processor machine: a CDNA card, and the wire from its clients.
#[derive(Debug, Default)]
pub(super) struct CdnaPort {
    pub(super) inbound: InboundWire,
    /// CDNA card; a guest's context has the guest's number.
    pub(super) card: CdnaCard,
    bits: InterruptBitVectors,
    /// Bit mask of the CDNA card's contexts whose guests have to be notified.
    pending: u128,
    interrupt: Option<EventKey>,
    interrupted: Option<VirtualInstant>,
    /// Frame that the card is sending, with its guest.
    pub(super) sending: Option<OutgoingFrame>,
    turn: usize,
    received: u64,
    dropped: u64,
    taken: u64,
    sent: u64,
    /// Number of TCP segments that the port has sent on its wire.
    pub(super) segments: u64,
}

impl CdnaPort {
    pub(super) fn check_books(&self, books: &mut ConservationChecks) {
        let line = &self.inbound;
        books.balance("frames of clients", line.sent, line.arrived + line.in_flight());
        books.balance("frames that arrived", line.arrived, self.received + self.dropped);
        books.balance("frames that a card took", self.taken, self.sent + u64::from(self.sending.is_some()));
        books.never("writes to mailboxes of other guests", self.card.stray_writes);
    }
}

impl SingleCpuMachine {
    /// Starts to send the next frame of a port's card, if its wire is free.
    pub(super) fn kick(&mut self, port: usize, now: VirtualInstant, core: &mut SingleCpuCore) {
        if self.ports[port].sending.is_some() {
            return;
        }
        let Some(next) = self.next_frame(port) else { return };
        self.ports[port].taken += 1;
        core.schedule(now + self.wire.time(next.frame), SingleCpuEvent::Left(port));
        self.ports[port].sending = Some(next);
    }

    /// Takes the next frame that a card has to send: from a context, or from the driver domain's queue.
    fn next_frame(&mut self, at: usize) -> Option<OutgoingFrame> {
        if self.drive == CardDriver::Xen {
            return self.driver.to_card[at].pop_front();
        }
        let port = &mut self.ports[at];
        let count = self.guests.len();
        let turns = (0..count).map(|step| (port.turn + step) % count);
        let guest = turns.into_iter().find(|guest| port.card.has(*guest, TRANSMIT))?;
        port.turn = guest + 1;
        let stream = &mut self.guests[guest].streams[at];
        port.card.take(guest, TRANSMIT, &stream.rings[TRANSMIT])?;
        Some(OutgoingFrame { guest, frame: stream.described.pop_front()?, packet: None })
    }

    /// Handles the end of a frame's transmission: passes the frame to its client, and schedules the sender's
    /// notification.
    pub(super) fn left(&mut self, port: usize, now: VirtualInstant, core: &mut SingleCpuCore) {
        let Some(OutgoingFrame { guest, frame, packet }) = self.ports[port].sending.take() else { return };
        self.ports[port].sent += 1;
        self.ports[port].segments += u64::from(frame.segments());
        if let Some(packet) = packet {
            let reaches = |piece: &PageBuffer| self.pages.reaches(*piece, guest as GuestNumber);
            self.driver.stray_reads += u64::from(!packet.pieces().iter().all(reaches));
            packet.release(&mut self.pages);
        }
        if self.drive == CardDriver::Xen {
            self.driver.done.push_back(guest);
        }
        self.raise(port, guest, now, core);
        self.client_receives(port, guest, frame, now, core);
        self.kick(port, now, core);
    }

    /// Passes a frame from the wire to the guest or the driver domain. Drops the frame if no buffer is free.
    pub(super) fn receive(
        &mut self,
        at: usize,
        guest: usize,
        frame: ModelFrame,
        now: VirtualInstant,
        core: &mut SingleCpuCore,
    ) {
        let port = &mut self.ports[at];
        let stream = &mut self.guests[guest].streams[at];
        let has_room = match self.drive {
            CardDriver::Xen => self.driver.takes(at, guest, frame),
            _ => port.card.take(guest, RECEIVE, &stream.rings[RECEIVE]).is_some(),
        };
        if !has_room {
            port.dropped += 1;
            return;
        }
        port.received += 1;
        if self.drive != CardDriver::Xen {
            stream.inbox.push_back(frame);
        }
        self.raise(at, guest, now, core);
    }

    /// Schedules an interrupt of a port's card for a guest.
    fn raise(&mut self, at: usize, guest: usize, now: VirtualInstant, core: &mut SingleCpuCore) {
        let port = &mut self.ports[at];
        port.pending |= 1 << (guest & 127);
        if port.interrupt.is_none() {
            let next = port.interrupted.map_or(now, |last| (last + self.interval).max(now));
            port.interrupt = Some(core.schedule(next, SingleCpuEvent::Interrupt(at)));
        }
    }

    /// Handles a card's interrupt: notifies the driver domain, or every guest with a bit in the card's vectors.
    pub(super) fn interrupt(&mut self, at: usize, now: VirtualInstant, core: &mut SingleCpuCore) {
        let port = &mut self.ports[at];
        (port.interrupt, port.interrupted) = (None, Some(now));
        port.bits.push(core::mem::take(&mut port.pending));
        let notified: Vec<usize> = port.bits.take().collect();
        let receiver =
            if self.drive == CardDriver::Xen { self.driver.vcpu } else { self.guests[notified[0]].vcpu };
        let (thread, domain) = (core.processors.home(receiver), core.processors.domain_of(receiver));
        if self.drive != CardDriver::Native {
            let cycles = core.table[CostConstant::InterruptEntry];
            core.processors.steal(thread, domain, CycleCategory::ExternalInterrupt, cycles, now);
        }
        let sending = core.table[CostConstant::EventSend];
        if self.drive == CardDriver::Xen {
            self.driver.interrupts[at] = true;
            if !core::mem::replace(&mut self.driver.event_pending, true) {
                core.tell(receiver, DomainKind::Dom0, sending, now);
            }
            return core.wake(receiver, now);
        }
        for guest in notified {
            let guest = &mut self.guests[guest];
            if !core::mem::replace(&mut guest.event_pending, true) {
                let is_native = self.drive == CardDriver::Native;
                let kind = if is_native { DomainKind::Native } else { DomainKind::Pvm };
                core.tell(guest.vcpu, kind, sending, now);
            }
            core.wake(guest.vcpu, now);
        }
    }
}
