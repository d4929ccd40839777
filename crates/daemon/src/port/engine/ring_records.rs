//! Records of a function's packed rings, in a part of the journal's memory. They outlive this process, so that the
//! successor process continues the rings where this process has left them ([`virtio::packed::record`]).

use host::shared::SharedMemory;
use std::sync::Arc;
use virtio::packed::record::WORDS;

/// Bytes of the records' memory for each ring.
const RECORD: u64 = 2048;
const WORD: u64 = size_of::<u64>() as u64;
const _: () = assert!(WORDS as u64 * WORD <= RECORD);

/// Number of rings of a function that have a record: two for each queue pair.
pub(in crate::port) const RECORDED_RINGS: u64 = 2 * virtio_nic::MAX_PAIRS as u64;
/// Bytes of the records of one function's rings.
pub(in crate::port) const RECORDS: u64 = RECORD * RECORDED_RINGS;

/// Records of the packed rings of one function.
#[derive(Debug, Clone)]
pub(in crate::port) struct RingRecords {
    memory: Arc<SharedMemory>,
    /// Offset of the records in the memory, in bytes; the records have [`RECORDS`] bytes.
    at: u64,
}

impl RingRecords {
    /// Uses [`RECORDS`] bytes of shared memory from offset `at` on.
    pub(in crate::port) fn new(memory: Arc<SharedMemory>, at: u64) -> Self {
        Self { memory, at }
    }

    /// Stores words of a ring's record in order, each by one store. Words outside of the record are dropped.
    #[inline]
    pub(super) fn store(&self, ring: u8, first: usize, words: &[u64]) {
        if first + words.len() <= WORDS && u64::from(ring) < RECORDED_RINGS {
            // The record is inside the memory.
            let _ = self.memory.memory().store_words(self.place(ring, first), words);
        }
    }

    /// Reads words of a ring's record. Words outside of the record are zero.
    pub(super) fn load(&self, ring: u8, first: usize, into: &mut [u64]) {
        into.fill(0);
        for (at, word) in (first..WORDS).zip(into).filter(|_| u64::from(ring) < RECORDED_RINGS) {
            let mut bytes = [0; WORD as usize];
            // The record is inside the memory.
            let _ = self.memory.memory().read(self.place(ring, at), &mut bytes);
            *word = u64::from_ne_bytes(bytes);
        }
    }

    /// Returns the offset of a word of a ring's record in the memory.
    #[inline]
    fn place(&self, ring: u8, word: usize) -> u64 {
        self.at + u64::from(ring) * RECORD + word as u64 * WORD
    }
}
