//! Migration log: the device writes a page and marks it, while a VMM clears marks and copies the marked pages.

/// Defines pages with a byte of marks, whose atomics are those of the module.
macro_rules! logged_pages {
    () => {
        #[path = "../../../../crates/host/src/memory/marks.rs"]
        mod marks;

        use atomic::{AtomicU8, Ordering, fence};
        use loom::sync::atomic::AtomicU64;
        use marks::{finish_writes, set_marks};
        use std::sync::Arc;

        /// Mark of the page, and that of a page which another port's device writes.
        const MARKS: [u8; 2] = [1, 2];

        /// Two pages of guest memory, and their marks.
        struct LoggedPages {
            pages: [AtomicU64; 2],
            marks: AtomicU8,
        }

        impl LoggedPages {
            /// Creates two pages of zeros with these marks.
            fn new(marks: u8) -> Arc<Self> {
                Arc::new(Self { pages: [AtomicU64::new(0), AtomicU64::new(0)], marks: AtomicU8::new(marks) })
            }

            /// Writes a page, and marks it.
            fn write(&self, page: usize, value: u64) {
                self.pages[page].store(value, Ordering::Relaxed);
                finish_writes();
                set_marks(&self.marks, MARKS[page]);
            }

            /// Clears all marks, as a VMM does, and copies the marked pages.
            fn copy_marked(&self, copies: &mut [u64; 2]) {
                let marks = self.marks.swap(0, Ordering::SeqCst);
                // The instruction of the exchange is a full barrier.
                fence(Ordering::SeqCst);
                for page in (0..2).filter(|page| marks & MARKS[*page] != 0) {
                    copies[page] = self.pages[page].load(Ordering::Relaxed);
                }
            }
        }
    };
}

/// Defines the model of a device that writes a page while a VMM copies marked pages.
macro_rules! copies_model {
    () => {
        /// Writes a page `writes` times while the VMM copies marked pages, and stops then: the last copy has the last write.
        /// `marks` are those at the begin.
        pub(super) fn copy_beside_writes(writes: u64, marks: u8) {
            let memory = LoggedPages::new(marks);
            let device = memory.clone();
            let device = loom::thread::spawn(move || (1..=writes).for_each(|value| device.write(0, value)));
            let mut copies = [0; 2];
            memory.copy_marked(&mut copies);
            device.join().unwrap();
            memory.copy_marked(&mut copies);
            assert_eq!(copies, [writes, 0], "a written page was not copied");
        }
    };
}

/// Defines the model of two devices that mark pages in the same byte.
macro_rules! marks_model {
    () => {
        /// Has two ports' devices write a page each, whose marks are in one byte.
        pub(super) fn mark_in_one_byte() {
            let memory = LoggedPages::new(0);
            let other = memory.clone();
            let other = loom::thread::spawn(move || other.write(1, 1));
            memory.write(0, 1);
            other.join().unwrap();
            let mut copies = [0; 2];
            memory.copy_marked(&mut copies);
            assert_eq!(copies, [1, 1], "a mark is lost");
        }
    };
}

mod product;
mod split;
mod unfenced;

#[test]
fn page_written_during_a_copy_is_copied_again() {
    loom::model(|| product::copy_beside_writes(2, 0));
    loom::model(|| product::copy_beside_writes(2, 1));
}

#[test]
fn marks_of_two_pages_in_one_byte_are_both_set() {
    loom::model(product::mark_in_one_byte);
}

#[test]
#[should_panic(expected = "a written page was not copied")]
fn control_marks_without_a_fence() {
    loom::model(|| unfenced::copy_beside_writes(1, 1));
}

#[test]
#[should_panic(expected = "a mark is lost")]
fn control_marks_that_are_set_in_two_steps() {
    loom::model(split::mark_in_one_byte);
}
