//! Control: the SIGBUS table with relaxed stores of starts and lengths.

mod atomic {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    /// Number whose stores release nothing.
    pub(super) struct AtomicUsize(loom::sync::atomic::AtomicUsize);

    impl AtomicUsize {
        pub(super) fn new(value: usize) -> Self {
            Self(loom::sync::atomic::AtomicUsize::new(value))
        }

        pub(super) fn load(&self, order: Ordering) -> usize {
            self.0.load(order)
        }

        pub(super) fn store(&self, value: usize, _: Ordering) {
            self.0.store(value, Ordering::Relaxed);
        }

        pub(super) fn compare_exchange(
            &self,
            from: usize,
            to: usize,
            success: Ordering,
            failure: Ordering,
        ) -> Result<usize, usize> {
            self.0.compare_exchange(from, to, success, failure)
        }
    }
}
#[path = "../../../../crates/host/src/memory/sigbus/table.rs"]
mod table;

sigbus_table!();
replacement_model!();
