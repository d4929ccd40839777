//! Pages of registers: a guest stores to them and loads from them while the port reads and publishes them.
//!
//! The guest's driver stores registers with release order, as a driver's `writel` does, and loads them with acquire order.

/// Defines three registers in pages, whose accesses and atomics are those of the module.
macro_rules! guest_pages {
    () => {
        use super::pages::{GuestRegisterPages, PageRegisters};
        use atomic::{AtomicU32, Ordering};
        use std::sync::Arc;

        /// Pages with three registers from offset 0 on.
        struct ModelPages([AtomicU32; 3]);

        impl ModelPages {
            /// Creates pages with these values.
            fn new(values: [u32; 3]) -> Arc<Self> {
                Arc::new(Self(values.map(AtomicU32::new)))
            }

            /// Stores a register, as a guest's driver does. The store is a swap, because loom 0.7 allows a store between the
            /// halves of the port's exchange. It synchronises no more: other exchanges of the register are the port's own.
            fn guest_store(&self, offset: u32, value: u32) {
                self.0[index(offset)].swap(value, Ordering::Release);
            }
        }

        impl GuestRegisterPages for ModelPages {
            fn load(&self, offset: u32) -> u32 {
                dwords::load(&self.0[index(offset)])
            }

            fn load_run(&self, offset: u32, into: &mut [u32]) {
                dwords::load_last_first(into, |at| &self.0[index(offset) + at]);
            }

            fn store(&self, offset: u32, value: u32) {
                dwords::store(&self.0[index(offset)], value);
            }

            fn replace(&self, offset: u32, old: u32, new: u32) -> bool {
                dwords::replace(&self.0[index(offset)], old, new)
            }
        }

        /// Returns the index of the register at an offset.
        fn index(offset: u32) -> usize {
            (offset / 4) as usize
        }
    };
}

/// Defines the model of a driver that writes descriptors and stores a tail for each.
macro_rules! descriptors_model {
    () => {
        /// Writes two descriptors, each before its tail, while the port reads the tail: the descriptors before a tail are read.
        pub(super) fn read_tail_beside_descriptors() {
            use loom::sync::atomic::AtomicU32 as Descriptors;

            static TAIL: [u32; 1] = [0];
            let pages = ModelPages::new([0; 3]);
            let descriptors = Arc::new(Descriptors::new(0));
            let mut registers = PageRegisters::adopt(&TAIL, 0, |_| 0);
            let driver = (pages.clone(), descriptors.clone());
            let driver = loom::thread::spawn(move || {
                for written in 1..=2 {
                    driver.1.store(written, Ordering::Relaxed);
                    driver.0.guest_store(TAIL[0], written);
                }
            });
            let mut taken = 0;
            let mut take = || {
                registers.take(
                    &*pages,
                    |_| false,
                    |_, tail| {
                        let written = descriptors.load(Ordering::Relaxed);
                        assert!(written >= tail, "a descriptor before the tail is old");
                        taken = tail;
                    },
                )
            };
            take();
            take();
            driver.join().unwrap();
            take();
            assert_eq!(taken, 2, "a tail is lost");
            assert!(!registers.has_stores(&*pages));
        }
    };
}

/// Defines the model of a driver that sets up a ring again.
macro_rules! ring_model {
    () => {
        /// Sets up a disabled ring again while the port reads its registers: an enabled ring has its new base and no old tail.
        /// Registers from index `tails` on are read as tails. `old_tail` is that of the ring before.
        pub(super) fn read_ring_beside_set_up(tails: usize, old_tail: u32) {
            use loom::sync::atomic::AtomicU32 as Descriptors;

            static RING: [u32; 3] = [0, 4, 8];
            let [base, enable, tail] = RING;
            // The port knows that the ring is disabled: a driver disables it by an access that is no store to the pages.
            let mut ring = [1, 0, old_tail];
            let pages = ModelPages::new(ring);
            let descriptors = Arc::new(Descriptors::new(0));
            let mut registers = PageRegisters::adopt(&RING, tails, |index| ring[index]);
            let driver = (pages.clone(), descriptors.clone());
            let driver = loom::thread::spawn(move || {
                let (pages, descriptors) = driver;
                pages.guest_store(base, 5);
                pages.guest_store(tail, 0);
                pages.guest_store(enable, 1);
                descriptors.store(1, Ordering::Relaxed);
                pages.guest_store(tail, 1);
            });
            let mut take = || {
                registers.take(&*pages, |_| false, |offset, value| ring[index(offset)] = value);
                assert!(ring[1] == 0 || ring[0] == 5, "a ring is enabled with its old base");
                assert!(ring[1] == 0 || ring[2] != 2, "a ring is enabled with its old tail");
                assert!(ring[2] != 1 || descriptors.load(Ordering::Relaxed) == 1);
                ring
            };
            take();
            take();
            driver.join().unwrap();
            assert_eq!(take(), [5, 1, 1]);
        }
    };
}

/// Defines the model of a driver that stores the same value to a register twice, where each store acts.
macro_rules! acting_model {
    () => {
        /// Enables an interrupt twice by the same value while the port reads the register: what came before the second store is
        /// handled.
        pub(super) fn handle_equal_stores() {
            use loom::sync::atomic::AtomicU32 as Requests;

            static MASK: [u32; 1] = [0];
            let pages = ModelPages::new([0; 3]);
            let requests = Arc::new(Requests::new(0));
            let mut registers = PageRegisters::adopt(&MASK, 1, |_| 0);
            let driver = (pages.clone(), requests.clone());
            let driver = loom::thread::spawn(move || {
                for _ in 0..2 {
                    driver.1.fetch_add(1, Ordering::Relaxed);
                    driver.0.guest_store(MASK[0], 1);
                }
            });
            let mut served = 0;
            let mut take =
                || registers.take(&*pages, |_| true, |_, _| served = requests.load(Ordering::Relaxed));
            take();
            take();
            driver.join().unwrap();
            take();
            assert_eq!(served, 2, "a store of the same value is lost");
            assert!(!registers.has_stores(&*pages));
        }
    };
}

/// Defines the model of a port that publishes a register to which the guest stores.
macro_rules! publication_model {
    () => {
        /// Stores a register while the port publishes a value of it: the store is read afterwards.
        pub(super) fn publish_beside_store() {
            static TAIL: [u32; 1] = [0];
            let pages = ModelPages::new([9; 3]);
            let mut registers = PageRegisters::adopt(&TAIL, 0, |_| 0);
            registers.fill(&*pages);
            let driver = pages.clone();
            let driver = loom::thread::spawn(move || driver.guest_store(TAIL[0], 7));
            registers.publish(&*pages, [0], |_| 3);
            driver.join().unwrap();
            let mut taken = None;
            registers.take(&*pages, |_| false, |_, tail| taken = Some(tail));
            assert_eq!(taken, Some(7), "the guest's store is lost");
        }
    };
}

/// Defines the model of a port that writes a descriptor back and publishes the head of the ring.
macro_rules! head_model {
    () => {
        /// Publishes a head behind a written descriptor: a guest that loads the head loads the descriptor.
        pub(super) fn publish_head_behind_descriptor() {
            use loom::sync::atomic::AtomicU32 as Descriptors;

            static HEAD: [u32; 1] = [0];
            let pages = ModelPages::new([0; 3]);
            let descriptors = Arc::new(Descriptors::new(0));
            let mut registers = PageRegisters::adopt(&HEAD, 1, |_| 0);
            let driver = (pages.clone(), descriptors.clone());
            let driver = loom::thread::spawn(move || {
                for _ in 0..2 {
                    let head = driver.0.0[0].load(Ordering::Acquire);
                    let written = driver.1.load(Ordering::Relaxed);
                    assert!(head == 0 || written == 1, "a descriptor before the head is old");
                }
            });
            descriptors.store(1, Ordering::Relaxed);
            assert!(registers.publish(&*pages, [0], |_| 1));
            driver.join().unwrap();
            assert_eq!(pages.load(HEAD[0]), 1);
        }
    };
}

mod exchanges;
mod first_first;
mod loads;
#[expect(clippy::module_inception, reason = "the product's file has this name")]
#[path = "../../../../crates/pcie/src/pages.rs"]
mod pages;
mod product;
mod split;
mod weakened;

#[test]
fn tail_is_read_behind_its_descriptors() {
    loom::model(product::read_tail_beside_descriptors);
}

#[test]
fn ring_that_is_set_up_again_has_no_old_tail() {
    loom::model(|| product::read_ring_beside_set_up(2, 2));
    loom::model(|| product::read_ring_beside_set_up(2, 0));
}

#[test]
fn requests_before_equal_stores_are_handled() {
    loom::model(product::handle_equal_stores);
}

#[test]
fn store_beside_a_publication_is_kept() {
    loom::model(product::publish_beside_store);
}

#[test]
fn published_head_shows_its_descriptors() {
    loom::model(product::publish_head_behind_descriptor);
}

#[test]
#[should_panic(expected = "a descriptor before the tail is old")]
fn control_tail_with_relaxed_loads() {
    loom::model(loads::read_tail_beside_descriptors);
}

#[test]
#[should_panic(expected = "a ring is enabled with its old tail")]
fn control_ring_without_a_second_load_of_its_tail() {
    loom::model(|| product::read_ring_beside_set_up(3, 2));
}

#[test]
#[should_panic(expected = "a ring is enabled with its old base")]
fn control_ring_that_is_loaded_the_first_register_first() {
    loom::model(|| first_first::read_ring_beside_set_up(2, 0));
}

#[test]
#[should_panic(expected = "a store of the same value is lost")]
fn control_equal_stores_with_relaxed_exchanges() {
    loom::model(exchanges::handle_equal_stores);
}

#[test]
#[should_panic(expected = "the guest's store is lost")]
fn control_publication_by_a_load_and_a_store() {
    loom::model(split::publish_beside_store);
}

#[test]
#[should_panic(expected = "a descriptor before the head is old")]
fn control_head_with_relaxed_exchanges() {
    loom::model(exchanges::publish_head_behind_descriptor);
}
