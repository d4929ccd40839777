//! Shared memory in which a port saves a record for the successor process: its counters (`counters`), or the addresses of its VFs or
//! of stations (`addresses`). It is separate from the journal, so that the record survives a change of the journal's format.

use crate::port::moments::pass_moment;
use crate::vault::PortFileDescriptorStore;
use host::shared::SharedMemory;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{Ordering, compiler_fence};

/// Maximum bytes of one copy of a record: the counters of 64 VFs with every reason to refuse a request take half of it.
const ROOM: u64 = 256 << 10;
/// Offsets of the two copies of the record; a word before them names the valid copy. A process that is killed
/// while it writes one copy leaves the valid copy whole.
const PLACES: [u64; 2] = [4096, 4096 + ROOM];
/// Bytes of the length field before a copy of the record.
const LENGTH: u64 = 8;

/// Record of a port, in shared memory that the successor process reads.
#[derive(Debug)]
pub(super) struct SavedRecord(SharedMemory);

impl SavedRecord {
    /// Opens the memory of a record that the previous host process left. Without one that can be used, creates memory and
    /// keeps it for the successor process.
    pub(super) fn open(name: &str, vault: &PortFileDescriptorStore) -> Option<Self> {
        Self::of_predecessor(name, vault).or_else(|| {
            let record = Self::new()?;
            pass_moment();
            vault.keep_named(name, record.as_fd());
            Some(record)
        })
    }

    /// Opens the memory of a record that the previous host process left.
    pub(super) fn of_predecessor(name: &str, vault: &PortFileDescriptorStore) -> Option<Self> {
        vault.copy_named(name).and_then(Self::adopt)
    }

    fn new() -> Option<Self> {
        SharedMemory::new(PLACES[1] + ROOM).ok().map(Self)
    }

    fn adopt(fd: OwnedFd) -> Option<Self> {
        SharedMemory::adopt(fd).ok().map(Self)
    }

    /// Returns the record that was completely saved last.
    pub(super) fn read(&self) -> Option<Vec<u8>> {
        let place = PLACES[usize::try_from(self.word(0).checked_sub(1)?).ok()?.min(1)];
        let length = self.word(place).min(ROOM - LENGTH);
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.0.memory().read(place + LENGTH, &mut bytes).ok()?;
        Some(bytes)
    }

    /// Overwrites the older copy of the record. Drops a record that is too long.
    pub(super) fn write(&self, note: &[u8]) {
        let length = note.len() as u64;
        if length > ROOM - LENGTH {
            return;
        }
        // The header word is 1 or 2 for the valid place, and 0 before the first save.
        let next = if self.word(0) == 1 { 2 } else { 1 };
        let (place, memory) = (PLACES[next - 1], self.0.memory());
        let store = |at, bytes: &[u8]| {
            pass_moment();
            memory.write(at, bytes)
        };
        let written = store(place + LENGTH, note).and_then(|()| store(place, &length.to_ne_bytes()));
        if written.is_ok() {
            let _ = store(0, &(next as u64).to_ne_bytes());
            // The next record overwrites the copy that was valid until here, and must not begin earlier.
            compiler_fence(Ordering::SeqCst);
        }
    }

    fn word(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        // `at` is inside the memory.
        let _ = self.0.memory().read(at, &mut word);
        u64::from_ne_bytes(word)
    }
}

impl AsFd for SavedRecord {
    /// Returns the file descriptor of the record's memory, to be kept for the successor process.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{ROOM, SavedRecord};
    use std::os::fd::AsFd;

    fn adopt(notes: &SavedRecord) -> SavedRecord {
        SavedRecord::adopt(notes.as_fd().try_clone_to_owned().unwrap()).unwrap()
    }

    #[test]
    fn next_process_reads_the_last_completely_saved_record() {
        let notes = SavedRecord::new().unwrap();
        assert_eq!(adopt(&notes).read(), None);
        for note in [&b"first"[..], b"second one", b""] {
            notes.write(note);
            assert_eq!(adopt(&notes).read().as_deref(), Some(note));
        }
        notes.write(&vec![0; ROOM as usize]);
        assert_eq!(notes.read().as_deref(), Some(&b""[..]), "a note that does not fit changes nothing");
    }
}
