//! Tests copies of segments' payloads between the memories of two clients, and of the headers in front of
//! them.

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::{DmaPermissions, PAGE, PayloadCopyList, memfd, sum_of, table};
use crate::dma::DmaTable;

/// Distance in bytes between two receive buffers.
const BUFFER: u64 = 2048;

/// Copies payloads from one DMA table to another. Returns the number of copied payloads, and each payload's sum for the
/// checksum.
fn copied(
    from: &DmaTable,
    to: &DmaTable,
    sources: &[u64],
    targets: &[u64],
    lengths: &[u32],
) -> (usize, Vec<u64>) {
    let mut sums = vec![0xff; sources.len()];
    let payloads = PayloadCopyList { sources, lengths, targets, sums: &mut sums };
    let copied = from.copy(&mut 7, to, &mut 7, payloads);
    sums.truncate(copied);
    (copied, sums)
}

#[test]
fn copying_payloads_to_guests_stops_at_the_first_dma_fault() {
    let mut table = table(&[(1, 2)]);
    table.map(8 * PAGE, PAGE, DmaPermissions::READ_ONLY, Some((memfd(1), 0))).unwrap();
    let (good, last) = ([PAGE, PAGE + 256, 8 * PAGE], 3 * PAGE);
    for (sources, targets, expected) in [
        (good, [PAGE + 1024, PAGE + 2048, PAGE + 3072], 3),
        ([PAGE, last - 99, PAGE], good, 1),
        (good, [PAGE + 1024, last - 99, PAGE + 2048], 1),
        (good, [PAGE + 1024, 8 * PAGE, PAGE + 2048], 1),
        ([0, PAGE, PAGE], good, 0),
    ] {
        let (found, _) = copied(&table, &table, &sources, &targets, &[100; 3]);
        assert_eq!(found, expected, "{sources:x?} {targets:x?}");
    }
}

#[test]
fn writing_headers_to_guests_stops_at_the_first_dma_fault() {
    let table = table(&[(1, 1), (3, 1)]);
    let headers = [[0x11; 128], [0x22; 128], [0x33; 128]];
    let targets = [PAGE + 64, 2 * PAGE - 66, 4 * PAGE - 65];
    assert_eq!(table.scatter(&mut 0, &headers, 66, &targets), 2);
    for (target, byte) in targets.into_iter().zip([0x11, 0x22]) {
        let mut seen = [0; 67];
        table.read(target - 1, &mut seen).unwrap();
        assert_eq!((seen[0], &seen[1..]), (0, &[byte; 66][..]));
    }
    let mut behind = [0xff; 62];
    table.read(PAGE + 64 + 66, &mut behind).unwrap();
    assert_eq!(behind, [0; 62], "no byte behind the headers is written");
}

proptest! {
    #[test]
    fn payload_copy_returns_the_checksum_sum_of_each_payload(
        lengths in vec(1..2049_u32, 1..20),
        (start, shift) in (0..200_u64, 0..100_u64),
        seed in vec(any::<u8>(), 5..90),
    ) {
        let (from, to) = (table(&[(1, 10)]), table(&[(1, 4), (9, 16)]));
        let bytes: Vec<u8> = seed.iter().copied().cycle().take(10 * PAGE as usize).collect();
        from.write(PAGE, &bytes).unwrap();
        let mut next = PAGE + start;
        let sources: Vec<u64> = lengths.iter().map(|length| { next += u64::from(*length); next - u64::from(*length) }).collect();
        let buffer = |at: u64| if at < 3 { PAGE + at * 2 * BUFFER } else { 9 * PAGE + at * BUFFER } + shift;
        let targets: Vec<u64> = (0..lengths.len() as u64).map(buffer).collect();
        let (found, sums) = copied(&from, &to, &sources, &targets, &lengths);
        let readable = sources.iter().zip(&lengths).filter(|(at, length)| **at + u64::from(**length) <= 11 * PAGE).count();
        prop_assert_eq!(found, readable);
        for at in 0..found {
            let mut seen = vec![0; lengths[at] as usize];
            to.read(targets[at], &mut seen).unwrap();
            let begin = (sources[at] - PAGE) as usize;
            prop_assert!(seen == bytes[begin..begin + seen.len()]);
            prop_assert_eq!(sums[at] % 0xffff, sum_of(&seen) % 0xffff);
        }
    }
}
