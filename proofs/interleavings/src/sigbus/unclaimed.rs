//! Control: the SIGBUS table whose free entries are taken in two steps.

mod atomic {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    /// Number that another thread may change between the halves of an exchange.
    pub(super) struct AtomicUsize(loom::sync::atomic::AtomicUsize);

    impl AtomicUsize {
        pub(super) fn new(value: usize) -> Self {
            Self(loom::sync::atomic::AtomicUsize::new(value))
        }

        pub(super) fn load(&self, order: Ordering) -> usize {
            self.0.load(order)
        }

        pub(super) fn store(&self, value: usize, order: Ordering) {
            self.0.store(value, order);
        }

        pub(super) fn compare_exchange(
            &self,
            from: usize,
            to: usize,
            _: Ordering,
            _: Ordering,
        ) -> Result<usize, usize> {
            let found = self.0.load(Ordering::Acquire);
            if found != from {
                return Err(found);
            }
            self.0.store(to, Ordering::Release);
            Ok(found)
        }
    }
}
#[path = "../../../../crates/host/src/memory/sigbus/table.rs"]
mod table;

sigbus_table!();
two_faults_model!();
