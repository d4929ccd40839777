//! Marks in a byte of a bitmap that another process clears while it reads the marked memory.
//!
//! The proofs include this file with the atomics of a model checker, which runs it in every order and under weak memory.

use super::atomic::{AtomicU8, Ordering, fence};

/// Makes earlier writes to memory visible before later marks are loaded. The other process clears a mark by an atomic exchange
/// before it reads the memory, so it reads the written bytes, or finds a new mark.
pub(crate) fn finish_writes() {
    fence(Ordering::SeqCst);
}

/// Sets the bits of `mask` in a byte. Bits that are set already cost a load only.
pub(crate) fn set_marks(byte: &AtomicU8, mask: u8) {
    if byte.load(Ordering::Relaxed) & mask != mask {
        byte.fetch_or(mask, Ordering::Release);
    }
}
