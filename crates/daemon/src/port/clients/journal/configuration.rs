//! Saved PCI configuration of one function that its guest has changed since the port's driver state was saved. The
//! driver state has the configurations of all functions, up to 64. Saving all of them for each write of one guest would
//! delay the other guests.

use super::layout::{FunctionJournalOffsets, HEADER, NOTE};
use super::memory::{get, load, put, store, words};
use host::shared::SharedMemory;

/// First number of a saved driver state to which PCI configurations of functions can belong. Earlier versions of
/// softiov use the numbers 0 and 1.
const FIRST: u64 = 2;

/// Returns the number of the next saved driver state: an unused number, whose parity selects the copy in the journal
/// that `before` does not use.
pub(super) fn next_software(before: u64, highest: u64) -> u64 {
    let next = highest.max(FIRST - 1) + 1;
    next + u64::from(next % 2 == before % 2)
}

/// Saves a function's PCI configuration in the journal. Returns `false` if there is no room, or no saved driver state
/// to which the configuration could belong.
pub(super) fn write(memory: &SharedMemory, at: &FunctionJournalOffsets, bytes: &[u8]) -> bool {
    let number = get(memory, HEADER.software);
    if number < FIRST || bytes.len() as u64 > NOTE - 16 {
        return false;
    }
    let place = 1 - get(memory, at.noted) % 2;
    let note = at.notes[place as usize];
    put(memory, note, &[number, bytes.len() as u64]);
    store(memory, note + 16, bytes);
    put(memory, at.noted, &[place]);
    true
}

/// Reads a function's PCI configuration from the journal. Returns `None` if none was saved since the driver state.
pub(super) fn read(memory: &SharedMemory, at: &FunctionJournalOffsets) -> Option<Vec<u8>> {
    let software = get(memory, HEADER.software);
    let note = at.notes[(get(memory, at.noted) % 2) as usize];
    let [number, length] = words(memory, note);
    let counts = number == software && number >= FIRST && length <= NOTE - 16;
    counts.then(|| load(memory, note + 16, length as usize))
}
