//! Number of a control: weaker than the product's in its stores, or in its exchanges.

use loom::sync::atomic::{AtomicUsize, Ordering};

/// Number whose stores release nothing (`RELAXED`), or that another thread may change between the halves of an exchange
/// (`SPLIT`).
pub(super) struct WeakenedUsize<const RELAXED: bool, const SPLIT: bool>(AtomicUsize);

impl<const RELAXED: bool, const SPLIT: bool> WeakenedUsize<RELAXED, SPLIT> {
    pub(super) fn new(value: usize) -> Self {
        Self(AtomicUsize::new(value))
    }

    pub(super) fn load(&self, order: Ordering) -> usize {
        self.0.load(order)
    }

    pub(super) fn store(&self, value: usize, order: Ordering) {
        self.0.store(value, if RELAXED { Ordering::Relaxed } else { order });
    }

    pub(super) fn compare_exchange(
        &self,
        from: usize,
        to: usize,
        success: Ordering,
        failure: Ordering,
    ) -> Result<usize, usize> {
        if !SPLIT {
            return self.0.compare_exchange(from, to, success, failure);
        }
        let found = self.0.load(Ordering::Acquire);
        if found != from {
            return Err(found);
        }
        self.0.store(to, Ordering::Release);
        Ok(found)
    }
}
