//! Simulates the wire and the VF of the thin-hypervisor machine: frames arrive within the window, and
//! interrupt at most once per interval.

use super::guest::ThinHypervisorGuest;
use super::{
    ThinHypervisorCore, ThinHypervisorEvent, ThinHypervisorMachine, ThinHypervisorSetup, WireTraffic,
};
use crate::machine::books::ConservationChecks;
use crate::machine::parts::bulk::BulkStream;
use sim::{EventKey, RandomStream, VirtualDuration, VirtualInstant};

/// Wire with a single client, which sends a stream or requests.
#[derive(Debug)]
pub(super) struct SingleClientWire {
    load: WireTraffic,
    pub(super) bulk: BulkStream,
    pub(super) interrupt: Option<EventKey>,
    pub(super) interrupted: Option<VirtualInstant>,
    phases: RandomStream,
    asked: Option<VirtualInstant>,
    /// Round-trip time of each answered request.
    pub(super) answered: Vec<VirtualDuration>,
}

impl SingleClientWire {
    pub(super) fn new(plan: &ThinHypervisorSetup) -> Self {
        Self {
            load: plan.load,
            bulk: BulkStream::new(plan.properties.bits_per_second, plan.properties.window),
            interrupt: None,
            interrupted: None,
            phases: RandomStream::named(plan.seed, "clients"),
            asked: None,
            answered: Vec::new(),
        }
    }

    pub(super) fn check_books(&self, guest: &ThinHypervisorGuest, books: &mut ConservationChecks) {
        let arrived = self.bulk.arrived();
        books.balance("frames of a wire", arrived, guest.polled + guest.on_ring(arrived));
        books.never("frames beyond the TCP window", self.bulk.beyond(guest.read_frames));
    }
}

impl ThinHypervisorMachine {
    /// Counts the stream's frames that arrived at the VF up to `now`.
    pub(super) fn count_arrivals(&mut self, now: VirtualInstant) {
        if self.wire.load == WireTraffic::Stream {
            self.wire.bulk.count(self.guest.read_frames, now);
        }
    }

    /// Schedules the VF's interrupt for the time at which a frame has arrived and the interrupt interval is
    /// over.
    pub(super) fn await_frames(&mut self, now: VirtualInstant, core: &mut ThinHypervisorCore) {
        let bulk = &self.wire.bulk;
        let is_shut = bulk.is_shut(self.guest.read_frames) && self.guest.on_ring(bulk.arrived()) == 0;
        if self.wire.interrupt.is_none() && self.wire.load == WireTraffic::Stream && !is_shut {
            let due = self.wire.interrupted.map_or(now, |last| last + self.properties.interval).max(now);
            self.wire.interrupt = Some(core.schedule(due, ThinHypervisorEvent::Interrupt));
        }
    }

    /// Handles a client's request: the first call sends it; the second, at its arrival, interrupts the guest
    /// at once. No interrupt can have occurred in the last interval.
    pub(super) fn request(&mut self, now: VirtualInstant, core: &mut ThinHypervisorCore) {
        if self.wire.asked.is_none() {
            self.wire.asked = Some(now);
            core.schedule(now + self.properties.one_way, ThinHypervisorEvent::Request);
            return;
        }
        self.wire.bulk.arrive();
        self.wire.interrupt = Some(core.schedule(now, ThinHypervisorEvent::Interrupt));
    }

    /// Records the guest's answer sent at `now`, and schedules the next request.
    pub(super) fn answer(&mut self, now: VirtualInstant, core: &mut ThinHypervisorCore) {
        let Some(asked) = self.wire.asked.take() else { return };
        let answered = now + self.properties.one_way;
        self.wire.answered.push(answered.since(asked));
        let least = self.properties.pause;
        let pause = least + VirtualDuration::from_picos(self.wire.phases.below(least.picos().max(1)));
        core.schedule(answered + pause, ThinHypervisorEvent::Request);
    }

    /// Returns `true` if the guest's program answers requests.
    pub(super) fn answers(&self) -> bool {
        self.wire.load == WireTraffic::Requests
    }
}
