//! Atomics of the bell's flag. The proofs replace them by those of a model checker.

pub(super) use std::sync::atomic::{AtomicBool, Ordering, fence};
