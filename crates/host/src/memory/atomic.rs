//! Atomics of marks in memory. The proofs replace them by those of a model checker.

pub(super) use std::sync::atomic::{AtomicU8, Ordering, fence};
