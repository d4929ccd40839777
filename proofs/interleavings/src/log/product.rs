//! The marks with the product's orderings.

mod atomic {
    pub(super) use loom::sync::atomic::{AtomicU8, Ordering, fence};
}

logged_pages!();
copies_model!();
marks_model!();
