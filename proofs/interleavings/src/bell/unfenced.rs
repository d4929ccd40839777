//! Control: the bell's flag without its fences.

mod atomic {
    pub(super) use crate::swapped::AtomicBool;
    pub(super) use loom::sync::atomic::Ordering;

    pub(super) fn fence(_: Ordering) {}
}
#[path = "../../../../crates/daemon/src/port/engine/bell/wanted.rs"]
mod wanted;

bell_model!();
