//! SIGBUS table: a handler searches it while other threads register and release mappings.

/// Defines an empty SIGBUS table of the module.
macro_rules! sigbus_table {
    () => {
        use atomic::{AtomicBool, AtomicU32, AtomicUsize};
        use loom::sync::Arc;
        use table::{FREE, MappedAddressRange, MappingTableEntry, poison_holder, take_entry};

        fn empty_table() -> Arc<[MappingTableEntry; 2]> {
            let entry = || MappingTableEntry {
                generation: AtomicU32::new(0),
                start: AtomicUsize::new(FREE),
                len: AtomicUsize::new(0),
                poisoned: AtomicBool::new(false),
            };
            Arc::new([entry(), entry()])
        }
    };
}

/// Defines the model of a fault beside a replaced mapping.
macro_rules! replacement_model {
    () => {
        /// Handles a fault in mapping `held` while another thread replaces a mapping by a second one in the same entry.
        /// Mappings are start and length.
        pub(super) fn fault_beside_a_replacement([old, new, held]: [(usize, usize); 3]) {
            let span = |(start, len): (usize, usize)| MappedAddressRange { start, len };
            let table = empty_table();
            let replaced = take_entry(&*table, 0, span(old)).unwrap();
            let mine = take_entry(&*table, 0, span(held)).unwrap();
            let other = table.clone();
            let other = loom::thread::spawn(move || {
                other[replaced].release();
                assert_eq!(take_entry(&*other, 0, span(new)), Some(replaced));
            });
            assert_eq!(poison_holder(&*table, held.0 + 16), Some(span(held)));
            other.join().unwrap();
            assert!(table[mine].poisoned() && !table[replaced].poisoned());
        }
    };
}

/// Defines the model of two threads with a fault each.
macro_rules! two_faults_model {
    () => {
        /// Two threads register a mapping each, have a fault in it, and release it.
        pub(super) fn two_faults() {
            let table = empty_table();
            let fault = |table: Arc<[MappingTableEntry; 2]>, start: usize| {
                let span = MappedAddressRange { start, len: 4096 };
                let entry = take_entry(&*table, 0, span).unwrap();
                assert!(!table[entry].poisoned());
                assert_eq!(poison_holder(&*table, start + 16), Some(span));
                assert!(table[entry].poisoned());
                table[entry].release();
            };
            let other = table.clone();
            let other = loom::thread::spawn(move || fault(other, 0x10000));
            fault(table, 0x20000);
            other.join().unwrap();
        }
    };
}

mod product;
mod relaxed;
mod unclaimed;
mod uncounted;
mod weakened;

/// Mappings whose first start and second length together would hold the fault's address.
const FIRST_START: [(usize, usize); 3] = [(0x1_0000, 0x1000), (0x4_0000, 0x2_0000), (0x2_0000, 0x1000)];
/// Mappings whose second start and first length together would hold the fault's address.
const FIRST_LENGTH: [(usize, usize); 3] = [(0x4_0000, 0x2_0000), (0x1_f000, 0x1000), (0x2_0000, 0x1000)];

#[test]
fn sigbus_handler_finds_its_mapping_beside_a_replaced_one() {
    for mappings in [FIRST_START, FIRST_LENGTH] {
        loom::model(move || product::fault_beside_a_replacement(mappings));
    }
}

#[test]
fn sigbus_handlers_of_two_threads_find_their_own_mappings() {
    loom::model(product::two_faults);
}

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn control_table_without_generations() {
    loom::model(|| uncounted::fault_beside_a_replacement(FIRST_START));
}

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn control_starts_with_relaxed_stores() {
    loom::model(|| relaxed::fault_beside_a_replacement(FIRST_START));
}

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn control_lengths_with_relaxed_stores() {
    loom::model(|| relaxed::fault_beside_a_replacement(FIRST_LENGTH));
}

#[test]
#[should_panic(expected = "assertion")]
fn control_table_without_exclusive_entries() {
    loom::model(unclaimed::two_faults);
}
