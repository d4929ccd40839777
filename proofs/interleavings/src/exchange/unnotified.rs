//! Control: the exchange whose condition variable notifies no thread.

mod sync {
    pub(super) use crate::exchange::cpus::CpuList;
    use loom::sync::LockResult;
    pub(super) use loom::sync::atomic::{AtomicBool, Ordering};
    pub(super) use loom::sync::{Mutex, MutexGuard};
    pub(super) use loom::thread::yield_now;

    #[derive(Debug)]
    pub(super) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(super) fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        pub(super) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
            self.0.wait(guard)
        }

        pub(super) fn notify_one(&self) {}
    }
}

exchange_model!();
