//! Control: the marks that are set by a load and a store.

mod atomic {
    pub(super) use loom::sync::atomic::{Ordering, fence};

    /// Byte that another thread may change between the halves of an operation.
    #[derive(Debug)]
    pub(super) struct AtomicU8(loom::sync::atomic::AtomicU8);

    impl AtomicU8 {
        pub(super) fn new(value: u8) -> Self {
            Self(loom::sync::atomic::AtomicU8::new(value))
        }

        pub(super) fn load(&self, order: Ordering) -> u8 {
            self.0.load(order)
        }

        pub(super) fn swap(&self, value: u8, order: Ordering) -> u8 {
            self.0.swap(value, order)
        }

        pub(super) fn fetch_or(&self, mask: u8, order: Ordering) -> u8 {
            let found = self.0.load(Ordering::Acquire);
            self.0.store(found | mask, order);
            found
        }
    }
}

logged_pages!();
marks_model!();
