//! Control: the SIGBUS table whose free entries are taken in two steps.

mod atomic {
    use crate::sigbus::weakened::WeakenedUsize;
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    pub(super) type AtomicUsize = WeakenedUsize<false, true>;
}
#[path = "../../../../crates/host/src/memory/sigbus/table.rs"]
mod table;

sigbus_table!();
two_faults_model!();
