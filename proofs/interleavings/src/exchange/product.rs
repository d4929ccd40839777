//! The exchange with the product's locks and orderings.

mod sync {
    pub(super) use crate::exchange::cpus::CpuList;
    pub(super) use loom::sync::atomic::{AtomicBool, Ordering};
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(super) use loom::thread::yield_now;
}

exchange_model!();
