//! What happened, as one rolling 64-bit hash, and on request as a list. Left out: printing, and hashing that
//! resists an adversary.
//!
//! The hash is how two runs are compared: the same events with the same values in the same order have the same
//! hash, and a difference anywhere is very unlikely to.

use alloc::vec::Vec;

use crate::time::Instant;

/// The name of a source or of an event, hashed when the program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    name: &'static str,
    hash: u64,
}

impl Label {
    /// A label called `name`; meant for constants.
    pub const fn new(name: &'static str) -> Label {
        Label { name, hash: Label::hash(name) }
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// FNV-1a of `name`, 64 bits.
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

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When.
    pub at: Instant,
    /// Where.
    pub source: &'static str,
    /// What.
    pub what: &'static str,
    /// Numbers that belong to it.
    pub values: Vec<u64>,
}

/// What happened so far.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    hash: u64,
    events: u64,
    limit: usize,
    records: Vec<Record>,
}

impl Trace {
    /// A trace that only hashes, and never allocates.
    pub fn new() -> Trace {
        Trace::default()
    }

    /// A trace that also keeps the first `limit` records.
    pub fn recording(limit: usize) -> Trace {
        Trace { limit, ..Trace::default() }
    }

    /// Takes down that `what` happened in `source` at `at`, with these numbers.
    #[inline]
    pub fn note(&mut self, at: Instant, source: Label, what: Label, values: &[u64]) {
        let mut hash = mix(self.hash, at.picos());
        hash = mix(hash, source.hash ^ what.hash.rotate_left(1));
        for value in values {
            hash = mix(hash, *value);
        }
        self.hash = mix(hash, values.len() as u64);
        self.events += 1;
        if self.records.len() < self.limit {
            self.records.push(Record { at, source: source.name, what: what.name, values: values.to_vec() });
        }
    }

    /// The hash of everything so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How much happened.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// What was kept, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}

/// Both halves of a full product, folded: every bit of the input reaches every bit of the result.
#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (product as u64 ^ (product >> 64) as u64).wrapping_add(hash.rotate_left(29))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE: Label = Label::new("wire");
    const CARD: Label = Label::new("card");
    const FRAME: Label = Label::new("frame");

    fn hash(notes: &[(u64, Label, Label, &[u64])]) -> u64 {
        let mut trace = Trace::new();
        for (picos, source, what, values) in notes {
            trace.note(Instant::from_picos(*picos), *source, *what, values);
        }
        trace.hash()
    }

    #[test]
    fn time_source_event_values_and_order_all_count() {
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
    fn records_are_kept_up_to_the_limit_and_counted_beyond() {
        let mut trace = Trace::recording(1);
        trace.note(Instant::from_picos(5), WIRE, FRAME, &[60]);
        trace.note(Instant::from_picos(6), WIRE, FRAME, &[61]);
        let [record] = trace.records() else { panic!("one record") };
        assert_eq!((record.source, record.what, record.values.as_slice()), ("wire", "frame", &[60][..]));
        assert_eq!(trace.events(), 2);
    }
}
