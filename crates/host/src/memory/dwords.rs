//! Accesses to dwords of memory that a guest or a VMM accesses at the same time.
//!
//! The proofs include this file with the atomics of a model checker, which runs it in every order and under weak memory.

use super::atomic::{AtomicU32, Ordering};

/// Loads a dword. Earlier stores of the thread that stored it are visible afterwards.
#[inline]
pub(crate) fn load(dword: &AtomicU32) -> u32 {
    dword.load(Ordering::Acquire)
}

/// Loads the dword at each index of `into`, the last first.
#[inline]
pub(crate) fn load_last_first<'a>(into: &mut [u32], dword: impl Fn(usize) -> &'a AtomicU32) {
    for (at, value) in into.iter_mut().enumerate().rev() {
        *value = load(dword(at));
    }
}

/// Stores a dword. A thread that loads it also sees all earlier stores.
#[inline]
pub(crate) fn store(dword: &AtomicU32, value: u32) {
    dword.store(value, Ordering::Release);
}

/// Replaces a dword by `new` if its value is `old`, in one access. Returns true if it was replaced.
#[inline]
pub(crate) fn replace(dword: &AtomicU32, old: u32, new: u32) -> bool {
    dword.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
}
