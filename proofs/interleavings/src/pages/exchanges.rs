//! Control: the pages with relaxed exchanges.

mod atomic {
    use crate::pages::weakened::WeakenedDword;
    pub(super) use loom::sync::atomic::Ordering;

    pub(super) type AtomicU32 = WeakenedDword<false, true, false>;
}
#[path = "../../../../crates/host/src/memory/dwords.rs"]
mod dwords;

guest_pages!();
acting_model!();
head_model!();
