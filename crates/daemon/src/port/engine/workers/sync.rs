//! Locks, atomics and thread operations of a shard's exchange. The proofs replace them by those of a model checker.

pub(super) use host::cpus::CpuList;
pub(super) use std::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
pub(super) use std::thread::yield_now;
