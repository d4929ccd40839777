//! Control: the pages whose dwords are loaded the first first.

mod atomic {
    pub(super) use loom::sync::atomic::{AtomicU32, Ordering};
}

/// Accesses to dwords, with the product's orderings.
mod dwords {
    use super::{AtomicU32, Ordering};

    pub(super) fn load(dword: &AtomicU32) -> u32 {
        dword.load(Ordering::Acquire)
    }

    pub(super) fn load_last_first<'a>(into: &mut [u32], dword: impl Fn(usize) -> &'a AtomicU32) {
        for (at, value) in into.iter_mut().enumerate() {
            *value = load(dword(at));
        }
    }

    pub(super) fn store(dword: &AtomicU32, value: u32) {
        dword.store(value, Ordering::Release);
    }

    pub(super) fn replace(dword: &AtomicU32, old: u32, new: u32) -> bool {
        dword.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

guest_pages!();
ring_model!();
