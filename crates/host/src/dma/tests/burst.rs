//! Bursts of frames between the memories of two clients, and hints that are stale.

use super::{PAGE, Permissions, Run, memfd, table};
use crate::dma::DmaTable;

/// Gathers and carries frames; returns how many were moved, and their sums.
fn carried(
    from: &DmaTable,
    to: &DmaTable,
    sources: &[u64],
    targets: &[u64],
    lengths: &[u32],
) -> (usize, Vec<u64>) {
    let (mut heads, mut sums) = (vec![[0xff; 64]; sources.len()], vec![0xff; sources.len()]);
    let gathered = from.gather(&mut 0, sources, lengths, &mut heads);
    let run = Run {
        heads: &heads[..gathered],
        sources: &sources[..gathered],
        lengths: &lengths[..gathered],
        targets: &targets[..gathered],
        sums: &mut sums[..gathered],
    };
    let moved = from.carry(&mut 0, to, &mut 0, run);
    sums.truncate(moved);
    (moved, sums)
}

#[test]
fn frames_are_carried_whole_between_regions_of_two_tables() {
    let (from, to) = (table(&[(1, 1), (4, 2)]), table(&[(1, 1), (3, 1), (9, 2)]));
    let lengths = [14, 60, 63, 64, 65, 96, 97, 1514, 2048];
    let sources = lengths.map(|length| if length < 64 { PAGE + 512 } else { 4 * PAGE + u64::from(length) });
    let targets: [u64; 9] =
        core::array::from_fn(|n| [PAGE, 3 * PAGE, 9 * PAGE][n / 3] + 2048 * (n as u64 % 2) + 64);
    for (n, length) in lengths.into_iter().enumerate() {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + length) as u8).collect();
        from.write(sources[n], &bytes).unwrap();
        let (moved, sums) = carried(&from, &to, &sources[n..=n], &targets[n..=n], &lengths[n..=n]);
        let mut seen = vec![0; length as usize];
        to.read(targets[n], &mut seen).unwrap();
        assert_eq!((moved, seen == bytes), (1, true), "{length} bytes");
        let rest = bytes.get(64..).unwrap_or_default();
        let words =
            rest.chunks(2).map(|word| u64::from(word[0]) | u64::from(*word.get(1).unwrap_or(&0)) << 8);
        assert_eq!(sums[0] % 0xffff, words.sum::<u64>() % 0xffff, "{length} bytes");
    }
}

#[test]
fn a_burst_ends_before_the_frame_that_is_not_permitted() {
    let mut from = table(&[(1, 2)]);
    from.map(8 * PAGE, PAGE, Permissions::READ_ONLY, Some((memfd(1), 0))).unwrap();
    let to = &from;
    let end = 3 * PAGE;
    let good = [PAGE, PAGE + 256, 8 * PAGE];
    for (sources, targets, expected) in [
        (good, [PAGE + 1024, PAGE + 2048, PAGE + 3072], 3),
        ([PAGE, end - 99, PAGE], good, 1),
        (good, [PAGE + 1024, end - 99, PAGE + 2048], 1),
        (good, [PAGE + 1024, 8 * PAGE, PAGE + 2048], 1),
        ([0, PAGE, PAGE], good, 0),
        ([u64::MAX - 99, PAGE, PAGE], good, 0),
    ] {
        assert_eq!(
            carried(&from, to, &sources, &targets, &[100; 3]).0,
            expected,
            "{sources:x?} {targets:x?}"
        );
    }
}

#[test]
fn a_stale_hint_is_found_out_and_renewed() {
    let mut table = table(&[(1, 1), (2, 1), (5, 1)]);
    let (mut hint, mut heads) = (7, [[0; 64]; 1]);
    table.write(5 * PAGE, &[5; 64]).unwrap();
    assert_eq!(table.gather(&mut hint, &[5 * PAGE], &[64], &mut heads), 1);
    assert_eq!((hint, heads), (2, [[5; 64]]));
    drop(table.unmap(PAGE, PAGE).unwrap());
    assert_eq!(table.gather(&mut hint, &[5 * PAGE], &[64], &mut heads), 1);
    assert_eq!(hint, 1, "regions have moved up");
    drop(table.unmap_all());
    assert_eq!(table.gather(&mut hint, &[5 * PAGE], &[64], &mut heads), 0);
}
