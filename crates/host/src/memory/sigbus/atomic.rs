//! Atomics of the SIGBUS table. The proofs replace them by those of a model checker.

pub(super) use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
