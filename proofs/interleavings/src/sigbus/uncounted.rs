//! Control: the SIGBUS table without the count of its entries' generations.

mod atomic {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// Generation that never changes.
    pub(super) struct AtomicU32(loom::sync::atomic::AtomicU32);

    impl AtomicU32 {
        pub(super) fn new(value: u32) -> Self {
            Self(loom::sync::atomic::AtomicU32::new(value))
        }

        pub(super) fn load(&self, order: Ordering) -> u32 {
            self.0.load(order)
        }

        pub(super) fn fetch_add(&self, _: u32, order: Ordering) -> u32 {
            self.0.fetch_add(0, order)
        }
    }
}
#[path = "../../../../crates/host/src/memory/sigbus/table.rs"]
mod table;

sigbus_table!();
replacement_model!();
