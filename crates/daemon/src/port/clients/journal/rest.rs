//! Saved state of a whole port that has no work in progress: every message is handled and consumed, and the card has
//! nothing pending.

use super::layout::PortJournalOffsets;
use super::memory::{get, load, put, store};
use host::shared::SharedMemory;
use std::sync::Arc;

/// Saved state of the whole port, valid while the port has no work in progress.
#[derive(Debug)]
pub(in crate::port) struct PortSnapshot {
    memory: Arc<SharedMemory>,
    /// Offset in the journal of the whole port's saved state, and the maximum length of that state in bytes.
    at: u64,
    room: u64,
    /// True while the saved state of the whole port is valid.
    valid: bool,
}

impl PortSnapshot {
    pub(super) fn new(memory: Arc<SharedMemory>, places: PortJournalOffsets) -> Self {
        let (at, room) = (places.rest, places.rest_room - 16);
        let valid = get(&memory, at) == 1;
        Self { memory, at, room, valid }
    }

    /// Returns true if the saved state of the whole port is valid.
    pub(in crate::port) fn is_valid(&self) -> bool {
        self.valid
    }

    /// Makes the saved state of the whole port invalid, before the port changes.
    pub(in crate::port) fn disturb(&mut self) {
        if self.valid {
            self.valid = false;
            put(&self.memory, self.at, &[0]);
        }
    }

    /// Saves the present state of the whole port. Returns `false` if the state is too long.
    pub(in crate::port) fn note(&mut self, bytes: &[u8]) -> bool {
        self.disturb();
        if bytes.len() as u64 > self.room {
            return false;
        }
        store(&self.memory, self.at + 16, bytes);
        put(&self.memory, self.at + 8, &[bytes.len() as u64]);
        put(&self.memory, self.at, &[1]);
        self.valid = true;
        true
    }

    /// Returns the saved state of the port, if the state is valid.
    pub(in crate::port) fn read(&self) -> Option<Vec<u8>> {
        let length = get(&self.memory, self.at + 8);
        (self.valid && length <= self.room).then(|| load(&self.memory, self.at + 16, length as usize))
    }
}
