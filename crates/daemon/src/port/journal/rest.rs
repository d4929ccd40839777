//! The whole port at a moment in which nothing is under way: everything handled, consumed and written back.

use super::layout::{REST, REST_ROOM};
use super::{get, load, put, store};
use host::shared::SharedMemory;
use std::sync::Arc;

const BYTES: u64 = REST + 16;
const ROOM: u64 = REST_ROOM - 16;

/// A place for it.
#[derive(Debug)]
pub(in crate::port) struct Rest {
    memory: Arc<SharedMemory>,
    /// What is there counts.
    valid: bool,
}

impl Rest {
    pub(super) fn new(memory: Arc<SharedMemory>) -> Self {
        let valid = get(&memory, REST) == 1;
        Self { memory, valid }
    }

    /// Whether what was noted last still counts.
    pub(in crate::port) fn is_valid(&self) -> bool {
        self.valid
    }

    /// Something is about to happen: what was noted counts no more.
    pub(in crate::port) fn disturb(&mut self) {
        if self.valid {
            self.valid = false;
            put(&self.memory, REST, &[0]);
        }
    }

    /// Notes the port as it is now; `false` if that is too long.
    pub(in crate::port) fn note(&mut self, bytes: &[u8]) -> bool {
        self.disturb();
        if bytes.len() as u64 > ROOM {
            return false;
        }
        store(&self.memory, BYTES, bytes);
        put(&self.memory, REST + 8, &[bytes.len() as u64]);
        put(&self.memory, REST, &[1]);
        self.valid = true;
        true
    }

    /// What was noted, if it counts.
    pub(in crate::port) fn read(&self) -> Option<Vec<u8>> {
        let length = get(&self.memory, REST + 8);
        (self.valid && length <= ROOM).then(|| load(&self.memory, BYTES, length as usize))
    }
}
