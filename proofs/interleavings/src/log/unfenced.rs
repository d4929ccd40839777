//! Control: the marks without the fence behind the writes.

mod atomic {
    pub(super) use loom::sync::atomic::{AtomicU8, Ordering};

    pub(super) fn fence(_: Ordering) {}
}

logged_pages!();
copies_model!();
