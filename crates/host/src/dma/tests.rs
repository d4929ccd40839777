//! Tests DMA tables with honest and hostile clients and devices. Tests of mappings are in [`sharing`].

mod burst;
mod log;
mod payloads;
mod samples;
mod sharing;

use std::os::fd::OwnedFd;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any};
use proptest::{prop_assert, prop_assert_eq, proptest};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::*;

const PAGE: u64 = PAGE_SIZE;

/// Returns the sum of the 16-bit little-endian words of `bytes`.
fn sum_of(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|word| u64::from(word[0]) | u64::from(*word.get(1).unwrap_or(&0)) << 8).sum()
}

impl DmaTable {
    /// Adds a DMA region to the table: admits it, maps its memory if there is any, and inserts it.
    fn map(
        &mut self,
        iova: u64,
        size: u64,
        permissions: DmaPermissions,
        memory: Option<(OwnedFd, u64)>,
    ) -> Result<(), MapDmaRegionError> {
        let (fd, offset) = memory.unzip();
        let pending = self.admit(iova, size, permissions, offset)?;
        if let (Some(pending), Some(fd)) = (pending, fd) {
            self.insert(pending.map(fd)?).expect("no other DMA region may have the addresses");
        }
        Ok(())
    }
}

fn memfd(pages: u64) -> OwnedFd {
    let fd = memfd_create("dma-test", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, pages * PAGE).unwrap();
    fd
}

fn fault<T>(iova: u64, kind: DmaFaultKind) -> Result<T, DmaFault> {
    Err(DmaFault { iova, kind })
}

/// Creates a table of readable and writable regions, each (first page, pages) with a memory file of its own.
fn table(regions: &[(u64, u64)]) -> DmaTable {
    let mut table = DmaTable::default();
    for (page, pages) in regions {
        let memory = Some((memfd(*pages), 0));
        table.map(page * PAGE, pages * PAGE, DmaPermissions::READ_WRITE, memory).unwrap();
    }
    table
}

#[test]
fn ring_descriptors_are_written_whole_at_any_dma_address() {
    for size in [16, 32] {
        // Inside a region, across two, and at an address that is no multiple of 8.
        for start in [PAGE, 2 * PAGE - 40, 2 * PAGE - 24, 2 * PAGE - 13] {
            let table = table(&[(1, 1), (2, 1)]);
            let descriptors: Vec<u8> = (1..=3 * size as u8).collect();
            table.write_descriptors(start, &descriptors, size).unwrap();
            let mut seen = vec![0; descriptors.len()];
            table.read(start, &mut seen).unwrap();
            assert_eq!(seen, descriptors, "{size} bytes from {start:#x} on");
        }
    }
}

#[test]
fn ring_descriptor_write_faults_if_its_end_is_unmapped() {
    let table = table(&[(1, 1)]);
    let end = 2 * PAGE;
    assert_eq!(table.write_descriptors(end - 40, &[1; 64], 32), fault(end, DmaFaultKind::Unmapped));
    let last = u64::MAX - 7;
    assert_eq!(table.write_descriptors(last, &[1; 32], 32), fault(last, DmaFaultKind::Wraps));
}

#[test]
fn prefetch_of_unmapped_memory_does_nothing() {
    let table = table(&[(1, 1)]);
    table.read(PAGE, &mut [0; 8]).unwrap();
    for iova in [0, PAGE - 1, PAGE, 2 * PAGE - 1, 2 * PAGE, u64::MAX] {
        for length in [0, 1, 1500, usize::MAX] {
            table.prefetch((iova, length), true);
            table.prefetch((iova, length), false);
        }
    }
}

#[test]
fn ring_descriptors_word_with_the_done_bit_is_written_last() {
    assert!(crate::memory::done_last(2).eq([0, 1]));
    assert!(crate::memory::done_last(4).eq([0, 2, 3, 1]));
}

#[test]
fn dma_access_may_cross_adjacent_regions_but_no_gap() {
    let table = table(&[(1, 1), (2, 1), (3, 2), (6, 1)]);
    let long: Vec<u8> = (0..2 * PAGE + 10).map(|value| value as u8).collect();
    table.write(2 * PAGE - 5, &long).unwrap();
    let mut seen = vec![0; long.len()];
    table.read(2 * PAGE - 5, &mut seen).unwrap();
    assert_eq!(seen, long);

    let mut seen = [9; 8];
    assert_eq!(table.read(5 * PAGE - 4, &mut seen), fault(5 * PAGE, DmaFaultKind::Unmapped));
    assert_eq!(seen, [9; 8], "a fault moves nothing");
    assert_eq!(table.write(5 * PAGE - 4, &[1; 8]), fault(5 * PAGE, DmaFaultKind::Unmapped));
    let mut tail = [9; 4];
    table.read(5 * PAGE - 4, &mut tail).unwrap();
    assert_eq!(tail, [0; 4], "a fault moves nothing");
}

#[test]
fn regions_that_move_are_those_behind() {
    let table = table(&[(2, 1), (4, 2), (7, 1)]);
    let from = |page, pages| table.regions_from(page * PAGE, pages * PAGE);
    assert_eq!([from(0, 0), from(4, 0), from(8, 0)], [(0, 3), (0, 2), (0, 0)]);
    assert_eq!([from(4, 2), from(2, 5), from(2, 6)], [(1, 1), (2, 1), (3, 0)]);
    assert_eq!(table.regions_from(0, u64::MAX), (3, 0));
    assert_eq!(table.regions_from(7 * PAGE, u64::MAX), (1, 0));
}

#[test]
fn dma_access_past_the_last_address_faults() {
    let mut table = DmaTable::default();
    let last_page = u64::MAX - PAGE + 1;
    table.map(last_page, PAGE, DmaPermissions::READ_WRITE, Some((memfd(1), 0))).unwrap();
    assert_eq!(table.write(u64::MAX, &[7]), Ok(()));
    assert_eq!(table.write(u64::MAX, &[7, 8]), fault(u64::MAX, DmaFaultKind::Wraps));
    assert_eq!(table.read(u64::MAX - 1, &mut [0; 3]), fault(u64::MAX - 1, DmaFaultKind::Wraps));
    let mut seen = [0];
    table.read(u64::MAX, &mut seen).unwrap();
    assert_eq!(seen, [7]);
}

#[test]
fn dma_region_without_file_is_listed_but_not_accessible() {
    let mut table = table(&[(0, 1)]);
    table.map(PAGE, PAGE, DmaPermissions::READ_ONLY, None).unwrap();
    assert_eq!((table.len(), table.shareable_regions(), table.mapped_bytes()), (2, 1, PAGE));
    assert_eq!(table.read(PAGE, &mut [0]), fault(PAGE, DmaFaultKind::NotShared));
    assert_eq!(table.read(PAGE - 1, &mut [0; 2]), fault(PAGE, DmaFaultKind::NotShared));
    let again = table.map(PAGE, PAGE, DmaPermissions::READ_WRITE, Some((memfd(1), 0))).unwrap_err();
    assert_eq!(again.errno(), libc::EEXIST);
    drop(table.unmap(PAGE, PAGE).unwrap());
    assert_eq!(table.read(PAGE, &mut [0]), fault(PAGE, DmaFaultKind::Unmapped));
}

#[test]
fn dma_map_fails_eexist_for_overlap_einval_for_bad_range() {
    let mut table = table(&[(4, 4), (10, 1)]);
    let mut map = |page, pages| {
        let outcome = table.map(page * PAGE, pages * PAGE, DmaPermissions::READ_WRITE, None);
        outcome.map_err(|error| error.errno())
    };
    for (page, pages) in [(4, 4), (0, 5), (7, 1), (5, 1), (0, 100), (10, 1), (9, 2)] {
        assert_eq!(map(page, pages), Err(libc::EEXIST), "{pages} pages at page {page}");
    }
    assert_eq!(map(3, 0), Err(libc::EINVAL));
    assert_eq!(map(u64::MAX / PAGE, 2), Err(libc::EINVAL), "ends beyond 2^64");
    assert_eq!(map(8, 2), Ok(()));
    let mut map = |iova, size| table.map(iova, size, DmaPermissions::READ_WRITE, None).map_err(|e| e.errno());
    assert_eq!(map(5, PAGE), Err(libc::EINVAL));
    assert_eq!(map(0, PAGE + 1), Err(libc::EINVAL));
    let offset = Some((memfd(2), 100));
    assert_eq!(table.map(0, PAGE, DmaPermissions::READ_WRITE, offset).unwrap_err().errno(), libc::EINVAL);
}

#[test]
fn range_without_its_highest_regions_ends_before_them() {
    let mut table = DmaTable::new(DmaLimits::default());
    for page in [1, 4, 6, 9, 20] {
        assert!(table.admit(page * PAGE, PAGE, DmaPermissions::READ_WRITE, None).is_ok());
    }
    // Pages 2 to 11 hold the regions of pages 4, 6 and 9.
    let rest = |count| table.without_highest(2 * PAGE, 10 * PAGE, count) / PAGE;
    assert_eq!([0, 1, 2, 3, usize::MAX].map(rest), [10, 7, 4, 0, 0]);
    assert_eq!(table.without_highest(0, u64::MAX, 1), 20 * PAGE);
    assert_eq!(table.without_highest(10 * PAGE, 5 * PAGE, 1), 0, "no region is inside");
}

#[test]
fn dma_unmap_removes_every_region_inside_the_range() {
    let mut table = table(&[(4, 4), (8, 1), (20, 1), (21, 1), (30, 2)]);
    assert!(table.unmap(19 * PAGE, 12 * PAGE).is_err(), "the range cuts the last region");
    drop(table.unmap(19 * PAGE, 11 * PAGE).unwrap());
    assert_eq!((table.len(), table.mapped_bytes()), (3, 7 * PAGE));
    drop(table.unmap(30 * PAGE, 2 * PAGE).unwrap());
    for (page, pages) in [(4, 3), (5, 3), (5, 4), (0, 4), (4, 0)] {
        assert_eq!(
            table.unmap(page * PAGE, pages * PAGE).map(drop).map_err(|e| e.errno()),
            Err(libc::ENOENT)
        );
    }
    table.read(8 * PAGE, &mut [0]).unwrap();
    drop(table.unmap(4 * PAGE, 4 * PAGE).unwrap());
    assert_eq!(table.read(4 * PAGE, &mut [0]), fault(4 * PAGE, DmaFaultKind::Unmapped));
    table.read(8 * PAGE, &mut [0]).unwrap();
    drop(table.unmap_all());
    assert!(table.is_empty());
    assert_eq!((table.shareable_regions(), table.mapped_bytes()), (0, 0));
    assert_eq!(table.read(8 * PAGE, &mut [0]), fault(8 * PAGE, DmaFaultKind::Unmapped));
}

#[test]
fn unmapped_guest_memory_can_be_mapped_at_another_address() {
    let fd = memfd(1);
    let mut table = DmaTable::default();
    table.map(0, PAGE, DmaPermissions::READ_WRITE, Some((fd.try_clone().unwrap(), 0))).unwrap();
    table.write(0, b"moved").unwrap();
    drop(table.unmap(0, PAGE).unwrap());
    table.map(9 * PAGE, PAGE, DmaPermissions::READ_WRITE, Some((fd, 0))).unwrap();
    let mut seen = [0; 5];
    table.read(9 * PAGE, &mut seen).unwrap();
    assert_eq!((&seen, table.read(0, &mut seen.clone())), (b"moved", fault(0, DmaFaultKind::Unmapped)));
}

#[test]
fn dma_region_permissions_restrict_the_cards_accesses() {
    let mut table = DmaTable::default();
    let write_only = DmaPermissions { read: false, write: true };
    let nothing = DmaPermissions { read: false, write: false };
    for (page, permissions) in [(0, DmaPermissions::READ_ONLY), (1, write_only), (2, nothing)] {
        table.map(page * PAGE, PAGE, permissions, Some((memfd(1), 0))).unwrap();
    }
    assert_eq!(table.write(0, &[1]), fault(0, DmaFaultKind::Forbidden));
    assert_eq!(table.read(0, &mut [0]), Ok(()));
    assert_eq!(table.read(PAGE, &mut [0]), fault(PAGE, DmaFaultKind::Forbidden));
    assert_eq!(table.write(PAGE, &[1]), Ok(()));
    assert_eq!(table.read(2 * PAGE, &mut [0]), fault(2 * PAGE, DmaFaultKind::Forbidden));
    assert_eq!(table.shareable_regions(), 2, "a region without permissions needs no memory");
}

#[test]
fn dma_region_of_a_file_other_than_memory_is_refused() {
    let mut table = DmaTable::default();
    let (pipe, _) = rustix::pipe::pipe().unwrap();
    let refused = table.map(0, PAGE, DmaPermissions::READ_WRITE, Some((pipe, 0))).unwrap_err();
    assert_eq!((refused, table.len()), (MapDmaRegionError::Memory(FileMapError::WrongKind), 0));
    let short = table.map(0, 2 * PAGE, DmaPermissions::READ_WRITE, Some((memfd(1), 0))).unwrap_err();
    assert_eq!((short.errno(), table.len()), (libc::EINVAL, 0));
}

#[test]
fn client_limits_of_dma_regions_files_and_bytes_are_enforced() {
    let limits = DmaLimits { regions: 5, mappings: 3, files: 2, bytes: 8 * PAGE };
    let mut table = DmaTable::new(limits);
    let (a, b, c) = (memfd(8), memfd(1), memfd(1));
    let mut map = |page: u64, pages: u64, fd: Option<&OwnedFd>| {
        let memory = fd.map(|fd| (fd.try_clone().unwrap(), 0));
        let outcome = table.map(page * PAGE, pages * PAGE, DmaPermissions::READ_WRITE, memory);
        outcome.map_err(|error| error.errno())
    };
    assert_eq!(map(0, 8, Some(&a)), Ok(()));
    assert_eq!(map(8, 1, Some(&b)), Err(libc::ENOMEM), "bytes");
    let _ = map;
    drop(table.unmap_all());
    let mut map = |page: u64, fd: Option<&OwnedFd>| {
        let memory = fd.map(|fd| (fd.try_clone().unwrap(), 0));
        table.map(page * PAGE, PAGE, DmaPermissions::READ_WRITE, memory).map_err(|error| error.errno())
    };
    assert_eq!((map(0, Some(&a)), map(1, Some(&b))), (Ok(()), Ok(())));
    assert_eq!(map(2, Some(&c)), Err(libc::ENOSPC), "files");
    assert_eq!(map(2, Some(&a)), Ok(()), "one file counts once");
    assert_eq!((map(3, None), map(4, None)), (Ok(()), Ok(())));
    assert_eq!(map(5, None), Err(libc::ENOSPC), "regions");
}

#[test]
fn all_65535_dma_regions_of_a_client_are_found() {
    let mut table = DmaTable::default();
    for page in 0..65_535 {
        table.map(2 * page * PAGE, PAGE, DmaPermissions::READ_WRITE, None).unwrap();
    }
    assert_eq!(
        table.map(0x4000_0000, PAGE, DmaPermissions::READ_WRITE, None).unwrap_err().errno(),
        libc::ENOSPC
    );
    assert_eq!(table.read(2 * 40_000 * PAGE, &mut [0]), fault(2 * 40_000 * PAGE, DmaFaultKind::NotShared));
    assert_eq!(table.read(PAGE, &mut [0]), fault(PAGE, DmaFaultKind::Unmapped));
}

#[test]
fn truncated_guest_memory_is_reported_by_its_dma_table_only() {
    let hostile = memfd(4);
    let mut theirs = DmaTable::default();
    theirs.map(0, 4 * PAGE, DmaPermissions::READ_WRITE, Some((hostile.try_clone().unwrap(), 0))).unwrap();
    let honest = table(&[(0, 1)]);
    assert!(!theirs.poisoned());
    ftruncate(&hostile, 0).unwrap();
    theirs.read(PAGE, &mut [0; 1500]).unwrap();
    assert!(theirs.poisoned() && !honest.poisoned());
    assert!(theirs.poisoned(), "the table stays poisoned");
    drop(theirs.unmap_all());
    assert!(!theirs.poisoned());
}

#[test]
fn dma_regions_report_file_and_offset_for_the_next_process() {
    let table = table(&[(2, 1)]);
    table.write(2 * PAGE, b"state").unwrap();
    let region = table.regions().next().unwrap();
    let (fd, offset) = region.file.unwrap();
    let mut successor = DmaTable::default();
    let memory = Some((fd.try_clone_to_owned().unwrap(), offset));
    successor.map(region.iova, region.last - region.iova + 1, region.permissions, memory).unwrap();
    let mut seen = [0; 5];
    successor.read(2 * PAGE, &mut seen).unwrap();
    assert_eq!(&seen, b"state");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Compares a DMA table with a flat array of bytes: equal bytes, and a fault exactly where the array has a hole.
    #[test]
    fn dma_accesses_match_a_model_with_a_flat_array(
        pages in vec(0u64..12, 1..8),
        accesses in vec((0u64..12 * PAGE, 1usize..9000, any::<u8>(), any::<bool>()), 1..20),
    ) {
        let mut table = DmaTable::default();
        let mut model: Vec<Option<u8>> = vec![None; 14 * PAGE as usize];
        for page in pages {
            let fresh = model[(page * PAGE) as usize].is_none();
            let mapped = table.map(page * PAGE, PAGE, DmaPermissions::READ_WRITE, Some((memfd(1), 0)));
            prop_assert_eq!(mapped.is_ok(), fresh);
            model[(page * PAGE) as usize..][..PAGE as usize].iter_mut().for_each(|b| *b = b.or(Some(0)));
        }
        for (iova, len, value, write) in accesses {
            let span = &mut model[iova as usize..(iova as usize + len).min(14 * PAGE as usize)];
            let hole = span.iter().position(Option::is_none).map(|at| iova + at as u64);
            let mut buffer = vec![value; len];
            let outcome = if write { table.write(iova, &buffer) } else { table.read(iova, &mut buffer) };
            prop_assert_eq!(outcome.err().map(|fault| fault.iova), hole);
            if hole.is_none() && write {
                span.fill(Some(value));
            }
            if hole.is_none() {
                prop_assert!(span.iter().zip(&buffer).all(|(model, seen)| *model == Some(*seen)));
            }
        }
    }
}
