//! Tests that DMA regions of one file share memory mappings, and when the mappings are removed.

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::{PAGE, fault, memfd};
use crate::dma::{DmaFaultKind, DmaPermissions, DmaTable};

/// Returns the number of memory mappings of this process whose file has the given name.
fn mapped(name: &str) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains(name)).count()
}

#[test]
fn single_page_dma_regions_of_one_file_share_mappings() {
    let name = "dma-test-pages";
    let fd = memfd_create(name, MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, 8 << 30).unwrap();
    let mut table = DmaTable::default();
    // Like the driver of an IOMMU, which hands out addresses from the top down for pages anywhere in memory.
    let page = |number: u64| (number * 0x9e37_79b9) % ((8 << 30) / PAGE) * PAGE;
    let iova = |number: u64| (1 << 40) - (number + 1) * PAGE;
    for number in 0..5_000 {
        let memory = Some((fd.try_clone().unwrap(), page(number)));
        table.map(iova(number), PAGE, DmaPermissions::READ_WRITE, memory).unwrap();
    }
    assert_eq!((table.shareable_regions(), table.mapped_bytes()), (5_000, 5_000 * PAGE));
    assert!((1..=8).contains(&mapped(name)), "{} mappings", mapped(name));
    table.write(iova(4_000), &4_000u64.to_le_bytes()).unwrap();
    let mut seen = [0; 8];
    rustix::io::pread(&fd, &mut seen, page(4_000)).unwrap();
    assert_eq!(u64::from_le_bytes(seen), 4_000);

    // Regions are unmapped one by one in order; their neighbours stay.
    for number in (0..5_000).filter(|number| number % 2 == 0) {
        drop(table.unmap(iova(number), PAGE).unwrap());
    }
    assert_eq!(table.read(iova(4_000), &mut [0]), fault(iova(4_000), DmaFaultKind::Unmapped));
    table.read(iova(4_001), &mut [0]).unwrap();
    assert_eq!(table.read(iova(4_001) + PAGE - 1, &mut [0; 2]), fault(iova(4_000), DmaFaultKind::Unmapped));
    for number in (0..5_000).filter(|number| number % 2 == 1) {
        drop(table.unmap(iova(number), PAGE).unwrap());
    }
    assert_eq!((table.len(), mapped(name)), (0, 0));
}

#[test]
fn dma_regions_of_one_mapping_keep_their_own_permissions() {
    let fd = memfd(16);
    let mut table = DmaTable::default();
    let mut map = |page: u64, at: u64, permissions| {
        table.map(page * PAGE, PAGE, permissions, Some((fd.try_clone().unwrap(), at * PAGE))).unwrap();
    };
    map(0, 4, DmaPermissions::READ_WRITE);
    map(8, 5, DmaPermissions::READ_ONLY);
    map(9, 4, DmaPermissions::READ_WRITE);
    table.write(PAGE - 1, &[7]).unwrap();
    assert_eq!(table.write(PAGE - 1, &[7; 2]), fault(PAGE, DmaFaultKind::Unmapped));
    assert_eq!(table.write(8 * PAGE, &[7]), fault(8 * PAGE, DmaFaultKind::Forbidden));
    let mut seen = [0];
    table.read(10 * PAGE - 1, &mut seen).unwrap();
    assert_eq!(seen, [7], "the same page at another address");
    let described: Vec<_> = table.regions().map(|region| region.file.unwrap().1 / PAGE).collect();
    assert_eq!(described, [4, 5, 4], "a successor maps the same pages");
}

#[test]
fn memory_file_that_changed_its_size_is_mapped_again() {
    let fd = memfd(2);
    let mut table = DmaTable::default();
    let map = |table: &mut DmaTable, page: u64, at: u64| {
        table.map(page * PAGE, PAGE, DmaPermissions::READ_WRITE, Some((fd.try_clone().unwrap(), at * PAGE)))
    };
    map(&mut table, 0, 0).unwrap();
    assert_eq!(map(&mut table, 1, 2).unwrap_err().errno(), libc::EINVAL);
    ftruncate(&fd, 4 * PAGE).unwrap();
    map(&mut table, 1, 2).unwrap();
    table.write(PAGE, &[5]).unwrap();
    ftruncate(&fd, 0).unwrap();
    table.read(0, &mut [0]).unwrap();
    assert!(table.poisoned());
    ftruncate(&fd, 4 * PAGE).unwrap();
    map(&mut table, 2, 1).unwrap();
    table.write(2 * PAGE, &[6]).unwrap();
    let mut seen = [0];
    rustix::io::pread(&fd, &mut seen, PAGE).unwrap();
    assert_eq!(seen, [6], "not the zeros of the poisoned first mapping");
}

#[test]
fn removed_dma_region_is_unreachable_before_it_is_unmapped() {
    let name = "dma-test-removed";
    let fd = memfd_create(name, MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, 4 * PAGE).unwrap();
    let mut table = DmaTable::default();
    table.map(0, 4 * PAGE, DmaPermissions::READ_WRITE, Some((fd, 0))).unwrap();
    let removed = table.unmap_all();
    assert_eq!(table.read(0, &mut [0]), fault(0, DmaFaultKind::Unmapped));
    assert_eq!((removed.is_light(), mapped(name)), (false, 1));
    drop(removed);
    assert_eq!(mapped(name), 0);
}

#[test]
fn dma_region_is_returned_if_an_overlapping_one_was_added() {
    let mut table = DmaTable::default();
    let pending = table.admit(0, PAGE, DmaPermissions::READ_WRITE, Some(0)).unwrap().unwrap();
    table.map(0, PAGE, DmaPermissions::READ_ONLY, None).unwrap();
    let late = pending.map(memfd(1)).unwrap();
    assert!(table.insert(late).is_err());
    assert_eq!((table.len(), table.shareable_regions()), (1, 0));
}

#[test]
fn huge_page_file_is_mapped_for_the_requested_dma_range() {
    let huge = 2 << 20;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
    let fd = memfd_create("dma-test-huge", flags).and_then(|fd| ftruncate(&fd, 4 * huge).map(|()| fd));
    let fd = match fd {
        Ok(fd) => fd,
        Err(error) => return crate::test_support::skipped("huge pages for a device", &error.to_string()),
    };
    let mut table = DmaTable::default();
    // The low 640 KiB of a PC, then the memory above its video memory, in QEMU's order.
    for (iova, size) in [(0, 0xa_0000), (0x10_0000, huge)] {
        if let Err(error) =
            table.map(iova, size, DmaPermissions::READ_WRITE, Some((fd.try_clone().unwrap(), iova)))
        {
            return crate::test_support::skipped(
                "huge pages for a device",
                &format!("none reserved: {error}"),
            );
        }
    }
    table.write(0x10_0000, b"above").unwrap();
    table.write(0, b"below").unwrap();
    let mut seen = [0; 5];
    table.read(0x10_0000, &mut seen).unwrap();
    assert_eq!(&seen, b"above");
    assert_eq!(table.read(0xa_0000, &mut [0]), fault(0xa_0000, DmaFaultKind::Unmapped));
    assert_eq!(
        mapped("dma-test-huge"),
        2,
        "the first huge page, and the one that the second region needs besides"
    );
    drop(table.unmap_all());
    assert_eq!(mapped("dma-test-huge"), 0);
}
