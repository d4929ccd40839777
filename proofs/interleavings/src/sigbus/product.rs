//! The SIGBUS table with the product's orderings.

mod atomic {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
}
#[path = "../../../../crates/host/src/memory/sigbus/table.rs"]
mod table;

sigbus_table!();
replacement_model!();
two_faults_model!();
