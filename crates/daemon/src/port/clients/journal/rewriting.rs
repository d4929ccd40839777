//! Replacement of a journal's saved states by other encodings of them, for tests of planned upgrades.

use super::layout::PortJournalOffsets;
use super::{HEADER, PortJournal, get, put, store};

impl PortJournal {
    /// Replaces the port's driver state, and the state of the whole port if it is valid, by what `encode` makes of each. The saved
    /// states of single functions stay as they are. Returns true if a state has changed.
    pub(in crate::port) fn rewrite(&self, encode: impl Fn(&[u8]) -> Vec<u8>) -> bool {
        let mut has_changed = false;
        let software = self.software();
        if !software.is_empty() {
            let encoded = encode(&software);
            has_changed |= encoded != software;
            self.replace_software(&encoded);
        }
        let mut rest = self.rest();
        if let Some(state) = rest.read() {
            let encoded = encode(&state);
            has_changed |= encoded != state;
            assert!(rest.note(&encoded), "an earlier state of {} bytes has room", encoded.len());
        }
        has_changed
    }

    /// Stores a driver state in the valid copy: another number would end the saved states of single functions.
    fn replace_software(&self, bytes: &[u8]) {
        let places = PortJournalOffsets::of(self.vfs);
        let at = places.software[(get(&self.memory, HEADER.software) % 2) as usize];
        assert!(bytes.len() as u64 <= places.software_room - 8, "an earlier state has room");
        store(&self.memory, at + 8, bytes);
        put(&self.memory, at, &[bytes.len() as u64]);
    }
}
