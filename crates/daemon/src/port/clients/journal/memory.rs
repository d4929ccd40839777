//! Access to words and bytes in the journal's shared memory. `layout` has their offsets.

use crate::port::moments::pass_moment;
use host::shared::SharedMemory;
use std::sync::atomic::{Ordering, compiler_fence};

/// Stores words in the journal in order, each with one store, before any bytes that [`store`] stores later. Offsets from `layout` are
/// aligned and inside the memory.
pub(super) fn put(memory: &SharedMemory, at: u64, words: &[u64]) {
    for (word, at) in words.iter().zip((at..).step_by(8)) {
        pass_moment();
        store(memory, at, &word.to_ne_bytes());
        // The word may make saved bytes invalid that are overwritten next. A killed process leaves the stores that it has executed, so
        // only the compiler could change their order.
        compiler_fence(Ordering::SeqCst);
    }
}

pub(super) fn get(memory: &SharedMemory, at: u64) -> u64 {
    let mut word = [0; 8];
    // Offsets from `layout` are inside the memory.
    let _ = memory.memory().read(at, &mut word);
    u64::from_ne_bytes(word)
}

pub(super) fn words<const N: usize>(memory: &SharedMemory, at: u64) -> [u64; N] {
    let mut words = [[0; 8]; N];
    // Offsets from `layout` are inside the memory.
    let _ = memory.memory().read(at, words.as_flattened_mut());
    words.map(u64::from_ne_bytes)
}

pub(super) fn store(memory: &SharedMemory, at: u64, bytes: &[u8]) {
    // Offsets from `layout` are inside the memory.
    let _ = memory.memory().write(at, bytes);
}

pub(super) fn load(memory: &SharedMemory, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    // Offsets from `layout` are inside the memory.
    let _ = memory.memory().read(at, &mut bytes);
    bytes
}
