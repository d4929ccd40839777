//! The wire of a port, to and from its clients, which acknowledge every second segment and send within their
//! windows.

use super::{
    CardDriver, PayloadDirection, SingleCpuCore, SingleCpuEvent, SingleCpuMachine, SingleCpuSetup,
    SingleCpuWire,
};
use crate::machine::parts::cdna::{PAGE, RING};
use guest::packet::{TCP_HEADERS, TCP_PAYLOAD};
use sim::{EventKey, VirtualDuration, VirtualInstant};
use std::collections::VecDeque;

/// Frame of the single-processor model, which has no payload bytes: data or acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelFrame {
    /// Data packet of this number of full TCP segments.
    Data(u32),
    /// Acknowledgement of two TCP segments.
    Ack,
}

impl ModelFrame {
    /// Returns the number of full segments of the packet; 0 for an acknowledgement.
    pub(super) fn segments(self) -> u32 {
        match self {
            Self::Data(segments) => segments,
            Self::Ack => 0,
        }
    }

    /// Returns the bytes of payload in the frame.
    pub(super) fn payload(self) -> u64 {
        u64::from(self.segments()) * TCP_PAYLOAD as u64
    }
}

/// Number of segments that a receiver acknowledges together.
pub(super) const PER_ACK: u32 = 2;
/// Bytes of preamble, frame check sequence and gap on the wire.
const OVERHEAD: usize = 24;
/// Bytes of the shortest frame without preamble, check sequence and gap.
const SHORTEST: usize = 60;

/// Returns the TCP window of a stream, in segments. Frames from and for all guests share the rings of the driver
/// domain's card, and streams settle at windows that fit a ring, by losing frames beyond. A slot is a page, which has
/// two segments of a packet that is not segmented. Contexts have rings of their own.
pub(super) fn window(plan: &SingleCpuSetup) -> u32 {
    let per_slot = if plan.channel.offloads { PAGE as u32 / TCP_PAYLOAD as u32 } else { 1 };
    let share = (RING / u32::from(plan.guests).max(1) * per_slot) & !1;
    match plan.drive {
        CardDriver::Xen => plan.window.min(share).max(PER_ACK),
        _ => plan.window,
    }
}

impl SingleCpuWire {
    /// Returns the time that a frame occupies the wire; for a segmented packet, the time of all its segments.
    pub(super) fn time(&self, frame: ModelFrame) -> VirtualDuration {
        let (length, times) = match frame {
            ModelFrame::Data(segments) => (TCP_HEADERS + TCP_PAYLOAD, segments),
            ModelFrame::Ack => (SHORTEST, 1),
        };
        let bits = ((length + OVERHEAD) * 8) as u64;
        VirtualDuration::of_bits(bits, self.bits_per_second).times(times.into())
    }
}

/// Wire from the clients to the machine, with the frames in flight.
#[derive(Debug, Default)]
pub(super) struct InboundWire {
    flights: VecDeque<(VirtualInstant, usize, ModelFrame)>,
    free: VirtualInstant,
    event: Option<EventKey>,
    pub(super) sent: u64,
    pub(super) arrived: u64,
}

impl InboundWire {
    pub(super) fn in_flight(&self) -> u64 {
        self.flights.len() as u64
    }
}

impl SingleCpuMachine {
    /// Starts a guest's streams: the clients send their first segments, or the guest does.
    pub(super) fn begin(&mut self, guest: usize, now: VirtualInstant, core: &mut SingleCpuCore) {
        if self.direction == PayloadDirection::Receive {
            for port in 0..self.ports.len() {
                self.client_sends(port, guest, (ModelFrame::Data(1), self.window), now, core);
            }
        }
        self.guests[guest].event_pending = true;
        core.wake(self.guests[guest].vcpu, now);
    }

    /// Puts `count` frames of a client on the wire to a guest, not before `at`.
    fn client_sends(
        &mut self,
        port: usize,
        guest: usize,
        (frame, count): (ModelFrame, u32),
        at: VirtualInstant,
        core: &mut SingleCpuCore,
    ) {
        let time = self.wire.time(frame);
        let line = &mut self.ports[port].inbound;
        for _ in 0..count {
            line.free = line.free.max(at) + time;
            line.flights.push_back((line.free, guest, frame));
            line.sent += 1;
        }
        if count > 0 {
            let next = line.flights.front().map(|flight| flight.0);
            line.event = core.replace(line.event, next, SingleCpuEvent::Arrived(port));
        }
    }

    /// Makes a guest's client answer a frame: segments answer an acknowledgement, and acknowledgements answer
    /// segments.
    pub(super) fn client_receives(
        &mut self,
        port: usize,
        guest: usize,
        frame: ModelFrame,
        now: VirtualInstant,
        core: &mut SingleCpuCore,
    ) {
        let stream = &mut self.guests[guest].streams[port];
        let answer = match frame {
            ModelFrame::Ack => (ModelFrame::Data(1), PER_ACK),
            ModelFrame::Data(segments) => {
                let unacknowledged = stream.client_unacknowledged + segments;
                stream.client_unacknowledged = unacknowledged % PER_ACK;
                (ModelFrame::Ack, unacknowledged / PER_ACK)
            }
        };
        self.client_sends(port, guest, answer, now + self.wire.turnaround, core);
    }

    /// Passes the frames that have arrived at a port by `now` to the port's card.
    pub(super) fn arrived(&mut self, port: usize, now: VirtualInstant, core: &mut SingleCpuCore) {
        self.ports[port].inbound.event = None;
        while let Some((_, guest, frame)) =
            self.ports[port].inbound.flights.pop_front_if(|flight| flight.0 <= now)
        {
            self.ports[port].inbound.arrived += 1;
            self.receive(port, guest, frame, now, core);
        }
        let line = &mut self.ports[port].inbound;
        let next = line.flights.front().map(|flight| flight.0);
        line.event = core.replace(line.event, next, SingleCpuEvent::Arrived(port));
    }
}
