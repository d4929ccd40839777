//! Flag whose stores are swaps.

use loom::sync::atomic::Ordering;

/// Flag whose writes have one order. loom 0.7 allows a store of another thread between the two halves of a swap, which no
/// processor does. A relaxed swap in place of the store synchronises no more than the store.
#[derive(Debug)]
pub(crate) struct AtomicBool(loom::sync::atomic::AtomicBool);

impl AtomicBool {
    pub(crate) fn new(value: bool) -> Self {
        Self(loom::sync::atomic::AtomicBool::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> bool {
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: bool, order: Ordering) {
        self.0.swap(value, order);
    }

    pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
        self.0.swap(value, order)
    }
}
