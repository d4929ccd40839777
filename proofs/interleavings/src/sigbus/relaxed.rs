//! Control: the SIGBUS table with relaxed stores of starts and lengths.

mod atomic {
    use crate::sigbus::weakened::WeakenedUsize;
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    pub(super) type AtomicUsize = WeakenedUsize<true, false>;
}
#[path = "../../../../crates/host/src/memory/sigbus/table.rs"]
mod table;

sigbus_table!();
replacement_model!();
