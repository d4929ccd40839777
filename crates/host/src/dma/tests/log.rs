//! Tests migration logs: every way to write guest memory marks its pages, and hostile logs mark nothing else.

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any};
use proptest::{prop_assert_eq, proptest};

use super::{DmaPermissions, FrameCopyList, PAGE, PayloadCopyList, memfd, table};
use crate::dma::{DmaTable, LogAlias, MapDmaRegionError};
use crate::memory::{FileMapError, MappedFile, MemoryProtection};
use rustix::fs::ftruncate;
use std::os::fd::{AsFd, OwnedFd};

/// Gives a table a log of `size` bytes that is enabled. Returns the log's file and its mapping.
fn log(table: &mut DmaTable, size: u64) -> (OwnedFd, MappedFile) {
    let file = memfd(1);
    let copy = file.as_fd().try_clone_to_owned().unwrap();
    drop(table.set_log(table.admit_log(size, 0).unwrap().map(copy).unwrap()));
    assert!(table.enable_log(true).is_none());
    let seen = MappedFile::map(&file, 0, PAGE, MemoryProtection::ReadWrite).unwrap();
    (file, seen)
}

/// Returns the marked pages of a log, and clears them.
fn marked(log: &MappedFile) -> Vec<u64> {
    let mut bytes = [0; PAGE as usize];
    log.read(0, &mut bytes).unwrap();
    log.write(0, &[0; PAGE as usize]).unwrap();
    (0..8 * PAGE).filter(|page| bytes[(page / 8) as usize] >> (page % 8) & 1 != 0).collect()
}

#[test]
fn every_way_to_write_guest_memory_marks_its_pages() {
    let (from, mut to) = (table(&[(1, 4)]), table(&[(1, 4), (5, 2), (9, 2)]));
    let (_file, log) = log(&mut to, PAGE);
    to.write(2 * PAGE - 1, &[1; 2]).unwrap();
    assert_eq!(marked(&log), [1, 2], "a write");
    to.write(5 * PAGE - 1, &[1; 4098]).unwrap();
    assert_eq!(marked(&log), [4, 5, 6], "a write across regions");
    to.write_descriptors_by(&mut 0, 10 * PAGE - 16, &[1; 64], 16).unwrap();
    assert_eq!(marked(&log), [9, 10], "descriptors");
    assert!(to.write_descriptors(11 * PAGE - 16, &[1; 32], 16).is_err());
    assert!(marked(&log).contains(&10), "descriptors before a fault");
    let (targets, lengths) = ([PAGE + 64, 3 * PAGE - 100, 9 * PAGE], [60, 1514, 64]);
    let (mut heads, mut sums) = ([[0; 64]; 3], [0; 3]);
    let sources = &[PAGE; 3];
    let run =
        FrameCopyList { heads: &mut heads, sources, lengths: &lengths, targets: &targets, sums: &mut sums };
    assert_eq!(from.carry(&mut 0, (&to, &mut 0), run, None), 3);
    assert_eq!(marked(&log), [1, 2, 3, 9], "frames");
    let payloads = PayloadCopyList { sources, lengths: &lengths, targets: &targets, sums: &mut sums };
    assert_eq!(from.copy(&mut 0, &to, &mut 0, payloads), 3);
    assert_eq!(marked(&log), [1, 2, 3, 9], "payloads");
    assert_eq!(to.scatter(&mut 0, &[[0; 128]; 3], 66, &targets), 3);
    assert_eq!(marked(&log), [1, 2, 9], "headers");
    let (mut bytes, mut head) = ([0; 8192], [[0; 64]; 1]);
    to.read(PAGE, &mut bytes).unwrap();
    assert_eq!((to.gather(&mut 0, &[PAGE], &[64], &mut head), marked(&log)), (1, vec![]), "reads");
}

#[test]
fn log_marks_only_while_it_is_mapped_and_enabled() {
    let mut table = table(&[(1, 2)]);
    let (_file, first) = log(&mut table, PAGE);
    drop(table.enable_log(false).expect("the log is removed"));
    table.write(PAGE, &[1]).unwrap();
    assert!(table.enable_log(true).is_none() && !table.is_logged());
    table.write(PAGE, &[1]).unwrap();
    assert_eq!(marked(&first), []);
    let file = memfd(1);
    let second = MappedFile::map(&file, 0, PAGE, MemoryProtection::ReadWrite).unwrap();
    assert!(table.set_log(table.admit_log(PAGE, 0).unwrap().map(file).unwrap()).is_none());
    assert_eq!(marked(&second), [1, 2], "the log comes late");
    table.write(PAGE, &[1]).unwrap();
    assert_eq!((marked(&first), marked(&second)), (vec![], vec![1]));
    // A new log replaces the log under traffic.
    let file = memfd(1);
    let third = MappedFile::map(&file, 0, PAGE, MemoryProtection::ReadWrite).unwrap();
    drop(table.set_log(table.admit_log(PAGE, 0).unwrap().map(file).unwrap()).expect("the second log"));
    table.write(2 * PAGE, &[1]).unwrap();
    assert_eq!((marked(&second), marked(&third)), (vec![], vec![2]));
}

#[test]
fn log_that_comes_late_has_all_memory_marked() {
    let mut table = table(&[(1, 30), (40, 1)]);
    table.map(50 * PAGE, PAGE, DmaPermissions::READ_ONLY, Some((memfd(1), 0))).unwrap();
    assert!(table.enable_log(true).is_none());
    table.write(PAGE, &[1]).unwrap();
    let (_file, late) = log(&mut table, PAGE);
    assert_eq!(marked(&late), (1..31).chain([40]).collect::<Vec<_>>());
    let (_file, next) = log(&mut table, PAGE);
    assert_eq!(marked(&next), []);
}

#[test]
fn log_set_after_a_ring_start_has_all_memory_marked() {
    let mut table = table(&[(1, 3)]);
    let (_file, freed) = log(&mut table, PAGE);
    // The client stops its device, frees the log without a message, and starts the device again.
    table.note_ring_start();
    table.write(2 * PAGE, &[1]).unwrap();
    assert_eq!(marked(&freed), [2]);
    let (_file, next) = log(&mut table, PAGE);
    assert_eq!(marked(&next), [1, 2, 3]);
    let (_file, replaced) = log(&mut table, PAGE);
    assert_eq!(marked(&replaced), [], "no ring has started since");
}

#[test]
fn cve_2020_10722_mark_beyond_the_log_is_dropped() {
    let mut table = table(&[(14, 4)]);
    table.map(PAGE.wrapping_neg(), PAGE, DmaPermissions::READ_WRITE, Some((memfd(1), 0))).unwrap();
    // The log has 16 pages, and memory continues behind them.
    let (_file, log) = log(&mut table, 2);
    table.write(14 * PAGE, &[1; 4 * PAGE as usize]).unwrap();
    table.write(u64::MAX, &[1]).unwrap();
    assert_eq!(marked(&log), [14, 15]);
}

#[test]
fn invalid_log_is_refused() {
    let table = table(&[(1, 1)]);
    for (size, offset) in [(0, 0), (1, 1), (u64::MAX, PAGE), ((256 << 20) + 1, 0)] {
        assert_eq!(
            table.admit_log(size, offset).unwrap_err(),
            MapDmaRegionError::InvalidLog { size, offset }
        );
    }
    let short = table.admit_log(PAGE + 1, 0).unwrap().map(memfd(1)).unwrap_err();
    let outside = FileMapError::OutsideFile { offset: 0, len: PAGE + 1, size: PAGE };
    assert_eq!(short, MapDmaRegionError::Memory(outside));
    let (pipe, _writer) = rustix::pipe::pipe().unwrap();
    let wrong = table.admit_log(PAGE, 0).unwrap().map(pipe).unwrap_err();
    assert_eq!(wrong, MapDmaRegionError::Memory(FileMapError::WrongKind));
}

#[test]
fn truncated_log_poisons_its_client_alone() {
    let (mut hostile, mut honest) = (table(&[(1, 1)]), table(&[(1, 1)]));
    let ((file, _), (_kept, log)) = (log(&mut hostile, PAGE), log(&mut honest, PAGE));
    ftruncate(&file, 0).unwrap();
    hostile.write(PAGE, &[1]).unwrap();
    honest.write(PAGE, &[1]).unwrap();
    assert!(hostile.poisoned() && !honest.poisoned());
    assert_eq!(marked(&log), [1]);
    drop(hostile.remove_log());
    assert!(!hostile.poisoned());
}

#[test]
fn log_in_guest_memory_marks_that_memory_alone() {
    let file = memfd(4);
    let mut table = DmaTable::default();
    let copy = || Some((file.as_fd().try_clone_to_owned().unwrap(), 0));
    table.map(0, 4 * PAGE, DmaPermissions::READ_WRITE, copy()).unwrap();
    let own = table.admit_log(PAGE, PAGE).unwrap().map(copy().unwrap().0).unwrap();
    drop((table.set_log(own), table.enable_log(true)));
    table.write(3 * PAGE, &[7]).unwrap();
    let mut byte = [0];
    table.read(PAGE, &mut byte).unwrap();
    assert_eq!(byte, [1 << 3]);
}

#[test]
fn aliased_write_is_also_marked_at_the_other_address() {
    let mut table = table(&[(1, 8)]);
    let (_file, log) = log(&mut table, PAGE);
    let alias = |logged_at| Some(LogAlias { address: 2 * PAGE + 100, size: PAGE, logged_at });
    table.alias_log(0, alias(20 * PAGE + 100));
    table.alias_log(1, alias(u64::MAX));
    for (first, length, expected) in [
        (2 * PAGE, 100, vec![2]),
        (2 * PAGE, 101, vec![2, 20]),
        (3 * PAGE + 99, 1, vec![3, 21]),
        (3 * PAGE + 100, 1, vec![3]),
        (PAGE, 3 * PAGE, vec![1, 2, 3, 20, 21]),
    ] {
        table.write(first, &vec![1; length as usize]).unwrap();
        assert_eq!(marked(&log), expected, "{first:#x}+{length}");
    }
    table.alias_log(0, None);
    table.write(2 * PAGE + 100, &[1]).unwrap();
    assert_eq!(marked(&log), [2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn marks_are_exactly_the_pages_of_writes(writes in vec((0_u64..8 * PAGE, 0_usize..9000, any::<bool>()), 1..20)) {
        let mut table = table(&[(1, 3), (4, 1), (6, 1)]);
        let (_file, log) = log(&mut table, PAGE);
        let mut expected = std::collections::BTreeSet::new();
        for (address, length, descriptors) in writes {
            let length = if descriptors { length / 16 * 16 } else { length };
            let bytes = vec![1; length];
            let last = address + (length as u64).saturating_sub(1);
            let written = if descriptors {
                table.write_descriptors(address, &bytes, 16)
            } else {
                table.write(address, &bytes)
            };
            if written.is_ok() && length > 0 {
                expected.extend(address / PAGE..=last / PAGE);
            } else if length > 0 {
                // A fault may mark pages that were not written.
                marked(&log);
                expected.clear();
            }
        }
        prop_assert_eq!(marked(&log), expected.into_iter().collect::<Vec<_>>());
    }
}
