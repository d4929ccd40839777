//! The pages with the product's orderings.

mod atomic {
    pub(super) use loom::sync::atomic::{AtomicU32, Ordering};
}
#[path = "../../../../crates/host/src/memory/dwords.rs"]
mod dwords;

guest_pages!();
descriptors_model!();
ring_model!();
acting_model!();
publication_model!();
head_model!();
