//! Control: the exchange whose shard stays wanted after it was taken.

mod sync {
    pub(super) use crate::exchange::cpus::CpuList;
    pub(super) use loom::sync::atomic::Ordering;
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(super) use loom::thread::yield_now;

    /// Flag that is never cleared.
    #[derive(Debug)]
    pub(super) struct AtomicBool(loom::sync::atomic::AtomicBool);

    impl AtomicBool {
        pub(super) fn new(value: bool) -> Self {
            Self(loom::sync::atomic::AtomicBool::new(value))
        }

        pub(super) fn load(&self, order: Ordering) -> bool {
            self.0.load(order)
        }

        pub(super) fn store(&self, value: bool, order: Ordering) {
            if value {
                self.0.store(value, order);
            }
        }
    }
}

exchange_model!();
