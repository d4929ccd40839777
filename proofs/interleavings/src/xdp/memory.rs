//! Memory of an AF_XDP ring with words and entries of loom. Its indices may have weaker orderings than the product's.

use loom::cell::Cell;
use loom::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// Place of the producer's index, and its number among the words.
pub(super) const PRODUCER: usize = 0;
/// Place of the consumer's index, and its number among the words.
pub(super) const CONSUMER: usize = 1;
/// Place of the flags, and their number among the words.
pub(super) const FLAGS: usize = 2;

/// Accesses to one index that a control makes relaxed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weakness {
    /// Loads of the index at this place.
    Loads(usize),
    /// Stores to the index at this place.
    Stores(usize),
}

/// Index of an AF_XDP ring.
#[derive(Debug)]
pub(super) struct WeakenedU32 {
    value: AtomicU32,
    has_relaxed_loads: bool,
    has_relaxed_stores: bool,
}

impl WeakenedU32 {
    pub(super) fn load(&self, order: Ordering) -> u32 {
        self.value.load(if self.has_relaxed_loads { Ordering::Relaxed } else { order })
    }

    pub(super) fn store(&self, value: u32, order: Ordering) {
        self.value.store(value, if self.has_relaxed_stores { Ordering::Relaxed } else { order });
    }
}

/// Memory of one AF_XDP ring.
#[derive(Debug)]
pub(super) struct XdpMemoryMapping {
    words: [WeakenedU32; 3],
    entries: Vec<Cell<u64>>,
}

impl XdpMemoryMapping {
    /// Creates a ring's memory for a number of entries.
    #[expect(
        clippy::arc_with_non_send_sync,
        reason = "the product shares it by `Arc`, and loom runs one thread at a time"
    )]
    pub(super) fn new(entries: usize, weakness: Option<Weakness>) -> Arc<Self> {
        let word = |place| WeakenedU32 {
            value: AtomicU32::new(0),
            has_relaxed_loads: weakness == Some(Weakness::Loads(place)),
            has_relaxed_stores: weakness == Some(Weakness::Stores(place)),
        };
        let entries = (0..entries).map(|_| Cell::new(0)).collect();
        Arc::new(Self { words: [PRODUCER, CONSUMER, FLAGS].map(word), entries })
    }

    pub(super) fn word(&self, offset: usize) -> Option<&WeakenedU32> {
        self.words.get(offset)
    }

    pub(super) fn checked_word(&self, offset: usize) -> &WeakenedU32 {
        &self.words[offset]
    }

    /// Returns the entry with an index. loom reports an access while another thread has the entry.
    pub(super) fn entry(&self, index: u32) -> &Cell<u64> {
        &self.entries[index as usize % self.entries.len()]
    }
}
