//! The whole port at a moment in which nothing is under way: everything handled, consumed and written back.

use super::layout::PortPlaces;
use super::memory::{get, load, put, store};
use host::shared::SharedMemory;
use std::sync::Arc;

/// A place for it.
#[derive(Debug)]
pub(in crate::port) struct Rest {
    memory: Arc<SharedMemory>,
    /// Where it is, and how many bytes fit.
    at: u64,
    room: u64,
    /// What is there counts.
    valid: bool,
}

impl Rest {
    pub(super) fn new(memory: Arc<SharedMemory>, places: PortPlaces) -> Self {
        let (at, room) = (places.rest, places.rest_room - 16);
        let valid = get(&memory, at) == 1;
        Self { memory, at, room, valid }
    }

    /// Whether what was noted last still counts.
    pub(in crate::port) fn is_valid(&self) -> bool {
        self.valid
    }

    /// Something is about to happen: what was noted counts no more.
    pub(in crate::port) fn disturb(&mut self) {
        if self.valid {
            self.valid = false;
            put(&self.memory, self.at, &[0]);
        }
    }

    /// Notes the port as it is now; `false` if that is too long.
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

    /// What was noted, if it counts.
    pub(in crate::port) fn read(&self) -> Option<Vec<u8>> {
        let length = get(&self.memory, self.at + 8);
        (self.valid && length <= self.room).then(|| load(&self.memory, self.at + 16, length as usize))
    }
}
