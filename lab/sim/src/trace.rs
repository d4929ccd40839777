//! Event trace: a rolling 64-bit hash and, on request, the first records. The hash is not cryptographic.
//!
//! The hash compares two runs: equal events with equal values in equal order have the same hash, and
//! different ones almost never do.

use alloc::vec::Vec;

use crate::time::VirtualInstant;

/// Name of a trace source or event, hashed at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceLabel {
    name: &'static str,
    hash: u64,
}

impl TraceLabel {
    /// Creates a trace label called `name`; meant for constants.
    pub const fn new(name: &'static str) -> TraceLabel {
        TraceLabel { name, hash: TraceLabel::hash(name) }
    }

    /// Returns the name of the trace label.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Computes the 64-bit FNV-1a hash of `name`.
    pub(crate) const fn hash(name: &str) -> u64 {
        let bytes = name.as_bytes();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut at = 0;
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        hash
    }
}

/// Stored record of a traced event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// Time of the traced event.
    pub at: VirtualInstant,
    /// Component that reported the event.
    pub source: &'static str,
    /// Name of the traced event.
    pub event: &'static str,
    /// Values that the component reported with the traced event.
    pub values: Vec<u64>,
}

/// Trace of a simulation's events: their hash, their number, and records of the first events.
#[derive(Clone, Debug, Default)]
pub struct EventTrace {
    hash: u64,
    events: u64,
    limit: usize,
    records: Vec<TraceRecord>,
}

impl EventTrace {
    /// Creates a trace that only hashes, and never allocates.
    pub fn new() -> EventTrace {
        EventTrace::default()
    }

    /// Creates an event trace that also stores records of the first `limit` events.
    pub fn recording(limit: usize) -> EventTrace {
        EventTrace { limit, ..EventTrace::default() }
    }

    /// Adds an event of component `source` to the hash, the count and, below the limit, the records.
    #[inline]
    pub fn note(&mut self, at: VirtualInstant, source: TraceLabel, event: TraceLabel, values: &[u64]) {
        let mut hash = mix(self.hash, at.picos());
        hash = mix(hash, source.hash ^ event.hash.rotate_left(1));
        for value in values {
            hash = mix(hash, *value);
        }
        self.hash = mix(hash, values.len() as u64);
        self.events += 1;
        if self.records.len() < self.limit {
            self.records.push(TraceRecord {
                at,
                source: source.name,
                event: event.name,
                values: values.to_vec(),
            });
        }
    }

    /// Returns the hash of all events traced so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the number of events traced so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the stored records of events, in order.
    pub fn records(&self) -> &[TraceRecord] {
        &self.records
    }
}

/// Mixes a value into the trace hash: multiplies it to 128 bits and folds them to 64, so every input bit
/// reaches every output bit.
#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (product as u64 ^ (product >> 64) as u64).wrapping_add(hash.rotate_left(29))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE: TraceLabel = TraceLabel::new("wire");
    const CARD: TraceLabel = TraceLabel::new("card");
    const FRAME: TraceLabel = TraceLabel::new("frame");

    fn hash(notes: &[(u64, TraceLabel, TraceLabel, &[u64])]) -> u64 {
        let mut trace = EventTrace::new();
        for (picos, source, what, values) in notes {
            trace.note(VirtualInstant::from_picos(*picos), *source, *what, values);
        }
        trace.hash()
    }

    #[test]
    fn trace_hash_depends_on_time_source_event_values_and_order() {
        let usual = hash(&[(1, WIRE, FRAME, &[1, 2]), (2, CARD, FRAME, &[])]);
        assert_eq!(usual, hash(&[(1, WIRE, FRAME, &[1, 2]), (2, CARD, FRAME, &[])]));
        for other in [
            hash(&[(2, CARD, FRAME, &[]), (1, WIRE, FRAME, &[1, 2])]),
            hash(&[(1, WIRE, FRAME, &[2, 1]), (2, CARD, FRAME, &[])]),
            hash(&[(1, WIRE, FRAME, &[1, 2, 0]), (2, CARD, FRAME, &[])]),
            hash(&[(1, FRAME, WIRE, &[1, 2]), (2, CARD, FRAME, &[])]),
            hash(&[(1, WIRE, FRAME, &[1, 2])]),
            hash(&[(3, WIRE, FRAME, &[1, 2]), (2, CARD, FRAME, &[])]),
        ] {
            assert_ne!(usual, other);
        }
    }

    #[test]
    fn trace_events_beyond_the_record_limit_are_only_counted() {
        let mut trace = EventTrace::recording(1);
        trace.note(VirtualInstant::from_picos(5), WIRE, FRAME, &[60]);
        trace.note(VirtualInstant::from_picos(6), WIRE, FRAME, &[61]);
        let [record] = trace.records() else { panic!("expected one record") };
        assert_eq!((record.source, record.event, record.values.as_slice()), ("wire", "frame", &[60][..]));
        assert_eq!(trace.events(), 2);
    }
}
