//! Dword of a control: weaker than the product's in its loads, or in its exchanges.

use loom::sync::atomic::{AtomicU32, Ordering};

/// Dword whose loads acquire nothing (`LOADS`), whose exchanges order nothing (`EXCHANGES`), or that another thread may change
/// between the halves of an exchange (`SPLIT`).
pub(super) struct WeakenedDword<const LOADS: bool, const EXCHANGES: bool, const SPLIT: bool>(AtomicU32);

impl<const LOADS: bool, const EXCHANGES: bool, const SPLIT: bool> WeakenedDword<LOADS, EXCHANGES, SPLIT> {
    pub(super) fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    pub(super) fn load(&self, order: Ordering) -> u32 {
        self.0.load(if LOADS { Ordering::Relaxed } else { order })
    }

    pub(super) fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }

    pub(super) fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.0.swap(value, order)
    }

    pub(super) fn compare_exchange(
        &self,
        from: u32,
        to: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        if EXCHANGES {
            return self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        }
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
