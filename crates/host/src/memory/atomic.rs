//! Atomics of marks and dwords in memory. The proofs replace them by those of a model checker.

pub(super) use std::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};
