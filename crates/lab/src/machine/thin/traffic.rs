//! The wire and the VF: frames arrive within the window, and interrupt at most once per interval.

use super::guest::Guest;
use super::{Core, Event, Host, Load};
use crate::machine::books::Books;
use crate::machine::parts::bulk::Bulk;
use sim::{EventKey, Generator, Instant, Span};

/// Interval between interrupts of the VF in bulk: 20 us, the driver's default.
const INTERVAL: Span = Span::from_micros(20);
/// Frames in flight or unread, at most: 2 MB.
const WINDOW: u64 = 1_448;
const BITS_PER_SECOND: u64 = 10_000_000_000;
/// Time that a 64-byte request takes one way: wire, card and the client's machine.
const ONE_WAY: Span = Span::from_nanos(8_000);
/// Least time between an answer and the client's next request; at most twice that.
const PAUSE: Span = Span::from_micros(100);

/// Network wire with its client.
#[derive(Debug)]
pub(super) struct Wire {
    load: Load,
    pub(super) bulk: Bulk,
    pub(super) interrupt: Option<EventKey>,
    pub(super) interrupted: Option<Instant>,
    phases: Generator,
    asked: Option<Instant>,
    /// Round-trip time of each answered request.
    pub(super) answered: Vec<Span>,
}

impl Wire {
    pub(super) fn new(load: Load, seed: u64) -> Self {
        Self {
            load,
            bulk: Bulk::new(BITS_PER_SECOND, WINDOW),
            interrupt: None,
            interrupted: None,
            phases: Generator::named(seed, "clients"),
            asked: None,
            answered: Vec::new(),
        }
    }

    pub(super) fn check_books(&self, guest: &Guest, books: &mut Books) {
        let arrived = self.bulk.arrived();
        books.balance("frames of a wire", arrived, guest.polled + guest.on_ring(arrived));
        books.never("frames beyond the TCP window", self.bulk.beyond(guest.read_frames));
    }
}

impl Host {
    /// Counts the frames that arrived up to `now`.
    pub(super) fn count_arrivals(&mut self, now: Instant) {
        if self.wire.load == Load::Stream {
            self.wire.bulk.count(self.guest.read_frames, now);
        }
    }

    /// Schedules the VF's interrupt for the time at which a frame has arrived and the interval is over.
    pub(super) fn await_frames(&mut self, now: Instant, core: &mut Core) {
        let bulk = &self.wire.bulk;
        let is_shut = bulk.is_shut(self.guest.read_frames) && self.guest.on_ring(bulk.arrived()) == 0;
        if self.wire.interrupt.is_none() && self.wire.load == Load::Stream && !is_shut {
            let due = self.wire.interrupted.map_or(now, |last| last + INTERVAL).max(now);
            self.wire.interrupt = Some(core.schedule(due, Event::Interrupt));
        }
    }

    /// Handles a client's request, which interrupts the VF at once: no interrupt occurred in the last
    /// interval.
    pub(super) fn request(&mut self, now: Instant, core: &mut Core) {
        if self.wire.asked.is_none() {
            self.wire.asked = Some(now);
            core.schedule(now + ONE_WAY, Event::Request);
            return;
        }
        self.wire.bulk.arrive();
        self.wire.interrupt = Some(core.schedule(now, Event::Interrupt));
    }

    /// Records the guest's answer sent at `now`, and schedules the next request.
    pub(super) fn answer(&mut self, now: Instant, core: &mut Core) {
        let Some(asked) = self.wire.asked.take() else { return };
        let answered = now + ONE_WAY;
        self.wire.answered.push(answered.since(asked));
        let pause = PAUSE + Span::from_picos(self.wire.phases.below(PAUSE.picos()));
        core.schedule(answered + pause, Event::Request);
    }

    /// Returns `true` if the guest's program answers requests.
    pub(super) fn answers(&self) -> bool {
        self.wire.load == Load::Requests
    }
}
