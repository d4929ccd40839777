//! The bell's flag with the product's orderings.

mod atomic {
    pub(super) use crate::swapped::AtomicBool;
    pub(super) use loom::sync::atomic::{Ordering, fence};
}
#[path = "../../../../crates/daemon/src/port/engine/bell/wanted.rs"]
mod wanted;

bell_model!();
