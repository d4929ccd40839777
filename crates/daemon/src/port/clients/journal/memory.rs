//! Words and bytes in the shared memory of the notes. Left out: where they are (`layout`).

use host::shared::SharedMemory;

/// Stores words, in order, each whole. Places are aligned and inside: they are those of `layout`.
pub(super) fn put(memory: &SharedMemory, at: u64, words: &[u64]) {
    for (word, at) in words.iter().zip((at..).step_by(8)) {
        store(memory, at, &word.to_ne_bytes());
    }
}

pub(super) fn get(memory: &SharedMemory, at: u64) -> u64 {
    let mut word = [0; 8];
    // The place is inside.
    let _ = memory.memory().read(at, &mut word);
    u64::from_ne_bytes(word)
}

pub(super) fn words<const N: usize>(memory: &SharedMemory, at: u64) -> [u64; N] {
    let mut words = [0; N];
    for (word, at) in words.iter_mut().zip((at..).step_by(8)) {
        *word = get(memory, at);
    }
    words
}

pub(super) fn store(memory: &SharedMemory, at: u64, bytes: &[u8]) {
    // The place is inside.
    let _ = memory.memory().write(at, bytes);
}

pub(super) fn load(memory: &SharedMemory, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    // The place is inside.
    let _ = memory.memory().read(at, &mut bytes);
    bytes
}
