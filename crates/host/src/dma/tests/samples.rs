//! Tests of the samples of a client's memory.

use super::*;

fn are_blank(table: &DmaTable) -> bool {
    table.samples().are_blank()
}

#[test]
fn guest_memory_counts_as_blank_until_sampled_pages_change() {
    let pages = 64 << 10;
    let blank = || table(&[(0, 4), (16, pages)]);
    assert!(are_blank(&DmaTable::default()));
    assert!(are_blank(&blank()));

    let low = blank();
    low.write(20 * PAGE, &[0; 100]).unwrap();
    assert!(are_blank(&low), "zeros do not count");
    low.write(260 * PAGE - 1, &[1]).unwrap();
    assert!(!are_blank(&low));

    let high = blank();
    for page in pages / 2..pages {
        high.write((16 + page) * PAGE, &[1]).unwrap();
    }
    assert!(!are_blank(&high));
}

#[test]
fn at_most_512_pages_of_many_regions_are_sampled() {
    let (regions, mut table) = (3_000, DmaTable::default());
    let file = memfd(regions);
    for page in 0..regions {
        let memory = Some((file.try_clone().unwrap(), page * PAGE));
        table.map(2 * page * PAGE, PAGE, DmaPermissions::READ_WRITE, memory).unwrap();
    }
    let samples: Vec<u64> = table.samples().0.iter().map(|(_, offset)| *offset).collect();
    assert_eq!(samples[..256], *(0..256).map(|page| page * PAGE).collect::<Vec<_>>());
    assert!((400..=512).contains(&samples.len()), "{} samples", samples.len());
    assert!(samples.is_sorted() && samples.last().is_some_and(|last| *last > (regions - 20) * PAGE));
}

/// A page that a look allocates costs time: for a huge page, up to a second.
#[test]
fn sampling_file_holes_allocates_no_page() {
    let file: OwnedFd = memfd(1024);
    let mut table = DmaTable::default();
    let memory = Some((file.try_clone().unwrap(), 0));
    table.map(0, 1024 * PAGE, DmaPermissions::READ_WRITE, memory).unwrap();
    assert!(are_blank(&table));
    assert_eq!(rustix::fs::fstat(&file).unwrap().st_blocks, 0);
}
