//! Flight recorder of each VF: the last register accesses and events between the VF and its client. Commands read the
//! recorder, and a quarantine writes its contents to a file, which shows an administrator later what the guest did
//! before.
//!
//! The port's thread records accesses and events ([`FlightRecorder`]) in preallocated memory, without an allocation and
//! without a lock. It records dropped frames once a second by the counters, instead of one by one. Other threads name
//! the registers and requests ([`recording`]) and write files ([`files`]).

pub(crate) mod files;
pub(crate) mod recording;

use i82576::Time;
use nic::PoolCounters;
use std::collections::VecDeque;

/// Maximum number of recorded register accesses of a VF.
const ACCESSES: usize = 256;
/// Maximum number of recorded events of a VF beside register accesses. They have a ring of their own, because a guest
/// makes far more accesses.
const EVENTS: usize = 128;
/// Number of latest entries that are searched for an equal access, which then only raises that entry's count. So
/// alternating doorbells do not fill the ring.
const NEAR: usize = 4;

/// Kind of a recorded register access or event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlightRecordKind {
    /// Read of a register by the client.
    Read(RegisterLocation),
    /// Write to a register by the client.
    Write(RegisterLocation),
    /// Event that has no kind of its own, recorded by its text.
    Said(&'static str),
    /// Requests that the PF driver refused, with the reason.
    Refused(&'static str),
    /// Dropped frames, with the reason.
    Dropped(&'static str),
    /// Offence of the VF, by kind.
    Offence(&'static str),
}

/// Location of a register: region and offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegisterLocation {
    pub(crate) region: u32,
    pub(crate) offset: u64,
}

/// Recorded register access or event of a VF, or several equal ones in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlightRecord {
    /// Time of the access or event, or of the last of several equal ones.
    pub(crate) time: Time,
    pub(crate) what: FlightRecordKind,
    /// Value of the register that was read or written last. For an event, a number that belongs to the event.
    pub(crate) value: u64,
    pub(crate) times: u64,
}

/// Recorded register accesses and events of one VF.
#[derive(Debug)]
pub(crate) struct FlightRecorder {
    accesses: FlightRing<ACCESSES>,
    events: FlightRing<EVENTS>,
    /// Counters of dropped frames at the last call of [`FlightRecorder::count`].
    counted: Option<PoolCounters>,
}

/// Copy of a VF's recorded register accesses and events, for other threads.
#[derive(Debug)]
pub(crate) struct FlightRecorderCopy {
    pub(crate) accesses: Vec<FlightRecord>,
    pub(crate) events: Vec<FlightRecord>,
    /// Number of recorded accesses and events that were overwritten.
    pub(crate) lost: u64,
}

impl Default for FlightRecorder {
    fn default() -> Self {
        Self { accesses: FlightRing::new(), events: FlightRing::new(), counted: None }
    }
}

impl FlightRecorder {
    /// Records an access of the client to a register, with the bytes that were read or written.
    pub(crate) fn access(&mut self, now: Time, what: FlightRecordKind, bytes: &[u8]) {
        let mut value = [0; 8];
        let length = bytes.len().min(value.len());
        value[..length].copy_from_slice(&bytes[..length]);
        let note = FlightRecord { time: now, what, value: u64::from_le_bytes(value), times: 1 };
        self.accesses.note(note, NEAR);
    }

    /// Records an event of the VF, with a number that belongs to the event.
    pub(crate) fn event(&mut self, now: Time, what: FlightRecordKind, value: u64) {
        self.events.note(FlightRecord { time: now, what, value, times: 1 }, 1);
    }

    /// Records the numbers of frames that were dropped since the last call, by reason. The first call records nothing,
    /// because there are no earlier counters to compare with.
    pub(crate) fn count(&mut self, now: Time, counters: PoolCounters) {
        let before = self.counted.replace(counters).unwrap_or(counters);
        for ((reason, old), (_, new)) in drops(&before).into_iter().zip(drops(&counters)) {
            if new > old {
                self.events.note(
                    FlightRecord {
                        time: now,
                        what: FlightRecordKind::Dropped(reason),
                        value: 0,
                        times: new - old,
                    },
                    1,
                );
            }
        }
    }

    /// Copies the recorded register accesses and events, for other threads.
    pub(crate) fn copy(&self) -> FlightRecorderCopy {
        let [accesses, events] =
            [&self.accesses.notes, &self.events.notes].map(|notes| notes.iter().copied().collect());
        FlightRecorderCopy { accesses, events, lost: self.accesses.lost + self.events.lost }
    }
}

/// Returns the dropped frames by reason, in the words of `softiov vf show`.
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

/// Ring of the last `N` recorded register accesses, or of the last `N` events.
#[derive(Debug)]
struct FlightRing<const N: usize> {
    notes: VecDeque<FlightRecord>,
    lost: u64,
}

impl<const N: usize> FlightRing<N> {
    fn new() -> Self {
        Self { notes: VecDeque::with_capacity(N), lost: 0 }
    }

    /// Adds a register access or event to the ring, or raises the count of an equal entry among the last `near`
    /// entries.
    fn note(&mut self, note: FlightRecord, near: usize) {
        let same = self.notes.iter().rev().take(near).position(|last| last.what == note.what);
        if let Some(last) = same.and_then(|back| self.notes.len().checked_sub(back + 1))
            && let Some(last) = self.notes.get_mut(last)
        {
            *last = FlightRecord { times: last.times + note.times, ..note };
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
    use super::{ACCESSES, EVENTS, FlightRecordKind, FlightRecorder, RegisterLocation};
    use i82576::Time;
    use nic::PoolCounters;

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    fn write(offset: u64) -> FlightRecordKind {
        FlightRecordKind::Write(RegisterLocation { region: 0, offset })
    }

    #[test]
    fn flight_recorder_merges_alternating_doorbells_per_register() {
        let mut flight = FlightRecorder::default();
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
    fn register_accesses_do_not_overwrite_recorded_vf_events() {
        let mut flight = FlightRecorder::default();
        flight.event(at(1), FlightRecordKind::Said("the function was reset"), 0);
        for n in 0..1_000 {
            flight.access(at(n), write(n * 4), &[0; 4]);
        }
        let copied = flight.copy();
        assert_eq!((copied.accesses.len(), copied.events.len()), (ACCESSES, 1));
        assert_eq!(copied.lost, 1_000 - ACCESSES as u64);
        assert_eq!(copied.accesses[0].what, write((1_000 - ACCESSES as u64) * 4));
    }

    #[test]
    fn flight_recorder_allocates_no_memory() {
        let mut flight = FlightRecorder::default();
        let (accesses, events) = (flight.accesses.notes.capacity(), flight.events.notes.capacity());
        for n in 0..10_000 {
            flight.access(at(n), write(n * 4), &[0; 4]);
            flight.event(
                at(n),
                if n % 2 == 0 { FlightRecordKind::Said("a") } else { FlightRecordKind::Said("b") },
                n,
            );
        }
        assert_eq!(flight.accesses.notes.capacity(), accesses);
        assert_eq!((flight.events.notes.capacity(), flight.events.notes.len()), (events, EVENTS));
    }

    #[test]
    fn flight_recorder_counts_drops_by_reason() {
        let mut flight = FlightRecorder::default();
        let counters = PoolCounters { tx_spoofed: 5, ..PoolCounters::default() };
        flight.count(at(1), counters);
        assert!(flight.copy().events.is_empty(), "earlier counts were noted");
        flight.count(at(2), PoolCounters { tx_spoofed: 7, dma_faults: 1, ..counters });
        let told: Vec<_> = flight.copy().events.iter().map(|note| (note.what, note.times)).collect();
        assert_eq!(
            told,
            [(FlightRecordKind::Dropped("spoofed"), 2), (FlightRecordKind::Dropped("dma fault"), 1)]
        );
    }
}
