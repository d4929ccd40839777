//! A flight recorder for each VF: the last things that passed between it and its client. It is read by command, and written to
//! a file when the VF is quarantined, so that somebody who comes later sees what the guest did before.
//!
//! The port's thread notes ([`Flight`]): into places that are there, without allocating and without a lock. Frames are not noted
//! one by one; drops are, once a second, by what was counted. Other threads give the notes names ([`recording`]) and write files
//! ([`files`]).

pub(crate) mod files;
pub(crate) mod recording;

use i82576::Time;
use nic::PoolCounters;
use std::collections::VecDeque;

/// Accesses of registers that are kept.
const ACCESSES: usize = 256;
/// Other things that are kept. They have places of their own, since a guest makes far more accesses.
const EVENTS: usize = 128;
/// An access to the same register as one of the last four notes counts in that note and makes no new one, so that doorbells that
/// alternate fill no ring.
const NEAR: usize = 4;

/// What may be noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// The client read a register.
    Read(Place),
    /// The client wrote one.
    Write(Place),
    /// Something that has words of its own.
    Said(&'static str),
    /// The PF driver refused requests, for this reason.
    Refused(&'static str),
    /// Frames were dropped, for this reason.
    Dropped(&'static str),
    /// The VF did too much of this.
    Offence(&'static str),
}

/// Where a register is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) region: u32,
    pub(crate) offset: u64,
}

/// What happened, once or several times in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note {
    /// The last time.
    pub(crate) time: Time,
    pub(crate) what: What,
    /// What was read or written the last time, or what else belongs to it.
    pub(crate) value: u64,
    pub(crate) times: u64,
}

/// The notes about one VF.
#[derive(Debug)]
pub(crate) struct Flight {
    accesses: Kept<ACCESSES>,
    events: Kept<EVENTS>,
    /// Drops that were noted.
    counted: Option<PoolCounters>,
}

/// The notes as they are at a moment, for other threads.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) accesses: Vec<Note>,
    pub(crate) events: Vec<Note>,
    /// Notes that had to make room, of both.
    pub(crate) lost: u64,
}

impl Default for Flight {
    fn default() -> Self {
        Self { accesses: Kept::new(), events: Kept::new(), counted: None }
    }
}

impl Flight {
    /// The client has read or written these bytes.
    pub(crate) fn access(&mut self, now: Time, what: What, bytes: &[u8]) {
        let mut value = [0; 8];
        let length = bytes.len().min(value.len());
        value[..length].copy_from_slice(&bytes[..length]);
        let note = Note { time: now, what, value: u64::from_le_bytes(value), times: 1 };
        self.accesses.note(note, NEAR);
    }

    /// Something else has happened.
    pub(crate) fn event(&mut self, now: Time, what: What, value: u64) {
        self.events.note(Note { time: now, what, value, times: 1 }, 1);
    }

    /// Notes what was dropped since this was last called.
    pub(crate) fn count(&mut self, now: Time, counters: PoolCounters) {
        let before = self.counted.replace(counters).unwrap_or(counters);
        for ((reason, old), (_, new)) in drops(&before).into_iter().zip(drops(&counters)) {
            if new > old {
                self.events
                    .note(Note { time: now, what: What::Dropped(reason), value: 0, times: new - old }, 1);
            }
        }
    }

    pub(crate) fn copy(&self) -> Copied {
        let [accesses, events] =
            [&self.accesses.notes, &self.events.notes].map(|notes| notes.iter().copied().collect());
        Copied { accesses, events, lost: self.accesses.lost + self.events.lost }
    }
}

/// Frames that were dropped, by reason, in the words of `softiov vf show`.
fn drops(counters: &PoolCounters) -> [(&'static str, u64); 8] {
    [
        ("spoofed", counters.tx_spoofed),
        ("link control", counters.tx_link_control),
        ("invalid", counters.tx_invalid),
        ("unclaimed", counters.tx_unclaimed),
        ("no descriptors", counters.rx_no_descriptors),
        ("queue disabled", counters.rx_disabled),
        ("storm", counters.rx_storm),
        ("dma fault", counters.dma_faults),
    ]
}

/// The last `N` notes.
#[derive(Debug)]
struct Kept<const N: usize> {
    notes: VecDeque<Note>,
    lost: u64,
}

impl<const N: usize> Kept<N> {
    fn new() -> Self {
        Self { notes: VecDeque::with_capacity(N), lost: 0 }
    }

    /// Counts a note with one of the last `near`, if that is of the same.
    fn note(&mut self, note: Note, near: usize) {
        let same = self.notes.iter().rev().take(near).position(|last| last.what == note.what);
        if let Some(last) = same.and_then(|back| self.notes.len().checked_sub(back + 1))
            && let Some(last) = self.notes.get_mut(last)
        {
            *last = Note { times: last.times + note.times, ..note };
            return;
        }
        if self.notes.len() == N {
            self.notes.pop_front();
            self.lost += 1;
        }
        self.notes.push_back(note);
    }
}

#[cfg(test)]
mod tests {
    use super::{ACCESSES, EVENTS, Flight, Place, What};
    use i82576::Time;
    use nic::PoolCounters;

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    fn write(offset: u64) -> What {
        What::Write(Place { region: 0, offset })
    }

    #[test]
    fn doorbells_that_alternate_are_counted_and_push_nothing_out() {
        let mut flight = Flight::default();
        flight.access(at(1), write(0x800), &[6, 0, 0, 0]);
        for n in 0..10_000_u32 {
            flight.access(at(2), write(0x2818), &n.to_le_bytes());
            flight.access(at(3), write(0x3818), &n.to_le_bytes());
        }
        let copied = flight.copy();
        let told: Vec<_> = copied.accesses.iter().map(|note| (note.what, note.value, note.times)).collect();
        assert_eq!(
            told,
            [(write(0x800), 6, 1), (write(0x2818), 9999, 10_000), (write(0x3818), 9999, 10_000)]
        );
        assert_eq!(copied.lost, 0);
    }

    #[test]
    fn a_guest_that_writes_everywhere_pushes_out_its_own_accesses_and_no_event() {
        let mut flight = Flight::default();
        flight.event(at(1), What::Said("the function was reset"), 0);
        for n in 0..1_000 {
            flight.access(at(n), write(n * 4), &[0; 4]);
        }
        let copied = flight.copy();
        assert_eq!((copied.accesses.len(), copied.events.len()), (ACCESSES, 1));
        assert_eq!(copied.lost, 1_000 - ACCESSES as u64);
        assert_eq!(copied.accesses[0].what, write((1_000 - ACCESSES as u64) * 4));
    }

    #[test]
    fn nothing_is_allocated_for_a_note() {
        let mut flight = Flight::default();
        let (accesses, events) = (flight.accesses.notes.capacity(), flight.events.notes.capacity());
        for n in 0..10_000 {
            flight.access(at(n), write(n * 4), &[0; 4]);
            flight.event(at(n), if n % 2 == 0 { What::Said("a") } else { What::Said("b") }, n);
        }
        assert_eq!(flight.accesses.notes.capacity(), accesses);
        assert_eq!((flight.events.notes.capacity(), flight.events.notes.len()), (events, EVENTS));
    }

    #[test]
    fn drops_are_noted_by_reason_as_they_are_counted() {
        let mut flight = Flight::default();
        let counters = PoolCounters { tx_spoofed: 5, ..PoolCounters::default() };
        flight.count(at(1), counters);
        assert!(flight.copy().events.is_empty(), "what was counted before is not known");
        flight.count(at(2), PoolCounters { tx_spoofed: 7, dma_faults: 1, ..counters });
        let told: Vec<_> = flight.copy().events.iter().map(|note| (note.what, note.times)).collect();
        assert_eq!(told, [(What::Dropped("spoofed"), 2), (What::Dropped("dma fault"), 1)]);
    }
}
