//! Control: the pages whose dwords are replaced by a load and a store.

mod atomic {
    use crate::pages::weakened::WeakenedDword;
    pub(super) use loom::sync::atomic::Ordering;

    pub(super) type AtomicU32 = WeakenedDword<false, false, true>;
}
#[path = "../../../../crates/host/src/memory/dwords.rs"]
mod dwords;

guest_pages!();
publication_model!();
