//! Control: the pages with relaxed loads.

mod atomic {
    use crate::pages::weakened::WeakenedDword;
    pub(super) use loom::sync::atomic::Ordering;

    pub(super) type AtomicU32 = WeakenedDword<true, false, false>;
}
#[path = "../../../../crates/host/src/memory/dwords.rs"]
mod dwords;

guest_pages!();
descriptors_model!();
