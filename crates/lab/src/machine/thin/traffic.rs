//! The wire and the VF: frames arrive while the window allows, and interrupt at most once in an interval.

use super::guest::Guest;
use super::{Core, Event, Host, Load};
use crate::machine::books::Books;
use crate::machine::parts::bulk::Bulk;
use sim::{EventKey, Generator, Instant, Span};

/// From one interrupt of the VF to the next in bulk: 20 us, as often as the card's driver lets it.
const INTERVAL: Span = Span::from_micros(20);
/// Frames that may be under way or unread: 2 MB.
const WINDOW: u64 = 1_448;
const BITS_PER_SECOND: u64 = 10_000_000_000;
/// A request of 64 bytes, one way: wire, card, and the client's own way through its machine.
const ONE_WAY: Span = Span::from_nanos(8_000);
/// The client thinks so long before the next request, and up to as long again.
const THINKING: Span = Span::from_micros(100);

/// The wire.
#[derive(Debug)]
pub(super) struct Wire {
    load: Load,
    pub(super) bulk: Bulk,
    pub(super) interrupt: Option<EventKey>,
    pub(super) interrupted: Option<Instant>,
    phases: Generator,
    asked: Option<Instant>,
    /// How long each answer took.
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

    pub(super) fn owes(&self, guest: &Guest, books: &mut Books) {
        let arrived = self.bulk.arrived();
        books.balance("frames of a wire", arrived, guest.polled + guest.on_ring(arrived));
        books.never("frames beyond the window", self.bulk.beyond(guest.read_frames));
    }
}

impl Host {
    /// Counts what has arrived up to `now`.
    pub(super) fn count_arrivals(&mut self, now: Instant) {
        if self.wire.load == Load::Stream {
            self.wire.bulk.count(self.guest.read_frames, now);
        }
    }

    /// The VF is to interrupt when a frame is there and the interval is over.
    pub(super) fn await_frames(&mut self, now: Instant, core: &mut Core) {
        let bulk = &self.wire.bulk;
        let is_shut = bulk.is_shut(self.guest.read_frames) && self.guest.on_ring(bulk.arrived()) == 0;
        if self.wire.interrupt.is_none() && self.wire.load == Load::Stream && !is_shut {
            let due = self.wire.interrupted.map_or(now, |last| last + INTERVAL).max(now);
            self.wire.interrupt = Some(core.schedule(due, Event::Interrupt));
        }
    }

    /// A client's request reaches the VF, which interrupts at once: nothing came in the last interval.
    pub(super) fn request(&mut self, now: Instant, core: &mut Core) {
        if self.wire.asked.is_none() {
            self.wire.asked = Some(now);
            core.schedule(now + ONE_WAY, Event::Request);
            return;
        }
        self.wire.bulk.arrive();
        self.wire.interrupt = Some(core.schedule(now, Event::Interrupt));
    }

    /// The guest has sent the answer at `now`.
    pub(super) fn answer(&mut self, now: Instant, core: &mut Core) {
        let Some(asked) = self.wire.asked.take() else { return };
        let answered = now + ONE_WAY;
        self.wire.answered.push(answered.since(asked));
        let thinks = THINKING + Span::from_picos(self.wire.phases.below(THINKING.picos()));
        core.schedule(answered + thinks, Event::Request);
    }

    /// Whether requests are answered.
    pub(super) fn answers(&self) -> bool {
        self.wire.load == Load::Requests
    }
}
