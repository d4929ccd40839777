//! Tests bursts of frames between the memories of two clients, and hints of regions that are out of date.

use std::ops::RangeInclusive;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{prop_assert_eq, proptest};

use super::{DmaPermissions, FrameCopyList, PAGE, memfd, sum_of, table};
use crate::dma::DmaTable;

/// Gathers the heads of frames and copies the frames to another client. Returns the number of copied frames, and each
/// payload's sum for the checksum.
fn carried(
    from: &DmaTable,
    to: &DmaTable,
    sources: &[u64],
    targets: &[u64],
    lengths: &[u32],
) -> (usize, Vec<u64>) {
    let (mut heads, mut sums) = (vec![[0xff; 64]; sources.len()], vec![0xff; sources.len()]);
    let gathered = from.gather(&mut 0, sources, lengths, &mut heads);
    let run = FrameCopyList {
        heads: &mut heads[..gathered],
        sources: &sources[..gathered],
        lengths: &lengths[..gathered],
        targets: &targets[..gathered],
        sums: &mut sums[..gathered],
    };
    let moved = from.carry(&mut 0, (to, &mut 0), run, None);
    sums.truncate(moved);
    (moved, sums)
}

#[test]
fn frames_are_copied_whole_between_two_dma_tables() {
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
fn bytes_changed_after_the_check_are_delivered_as_checked() {
    let (from, to) = (table(&[(1, 1)]), table(&[(1, 1)]));
    for length in [14, 60, 64, 65, 1514] {
        from.write(PAGE, &vec![1; length]).unwrap();
        let (mut heads, mut sums) = ([[0; 64]], [0]);
        assert_eq!(from.gather(&mut 0, &[PAGE], &[length as u32], &mut heads), 1);
        from.write(PAGE, &vec![2; length]).unwrap();
        let run = FrameCopyList {
            heads: &mut heads,
            sources: &[PAGE],
            lengths: &[length as u32],
            targets: &[PAGE],
            sums: &mut sums,
        };
        assert_eq!(from.carry(&mut 0, (&to, &mut 0), run, None), 1);
        let mut delivered = vec![0; length];
        to.read(PAGE, &mut delivered).unwrap();
        let (head, rest) = delivered.split_at(length.min(64));
        assert!(head.iter().all(|byte| *byte == 1), "addresses and tag are the judged ones");
        assert!(rest.iter().all(|byte| *byte == 2));
    }
}

/// A shorter slice than was asked for is no access. In the CVE (vm-memory, which the host does not use) typed accesses went
/// beyond the slice that they got.
#[test]
fn cve_2023_41051_access_across_the_end_of_a_region_is_refused() {
    let mut table = table(&[(1, 1)]);
    table.map(2 * PAGE, PAGE, DmaPermissions::READ_ONLY, Some((memfd(1), 0))).unwrap();
    let end = 2 * PAGE;
    for length in 1..=16_usize {
        for inside in 0..=length as u64 {
            let (first, mut bytes) = (end - inside, vec![0xaa; length]);
            // Writes end with the first region, reads with the second.
            assert_eq!(table.write(first, &bytes).is_ok(), inside == length as u64, "{first:#x}, {length}");
            bytes.fill(0xbb);
            let read = table.read_by(&mut 0, first + PAGE, &mut bytes);
            assert_eq!(read.is_ok(), inside == length as u64, "{first:#x}, {length}");
            assert!(read.is_ok() || bytes.iter().all(|byte| *byte == 0xbb), "a refused read writes nothing");
        }
    }
    let mut beyond = [0; 16];
    table.read(end, &mut beyond).unwrap();
    assert_eq!(beyond, [0; 16], "a refused write writes nothing");
}

#[test]
fn copying_frames_ends_before_a_frame_without_dma_permission() {
    let mut from = table(&[(1, 2)]);
    from.map(8 * PAGE, PAGE, DmaPermissions::READ_ONLY, Some((memfd(1), 0))).unwrap();
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
fn dma_access_finds_the_region_if_its_hint_is_out_of_date() {
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

/// Creates a DMA table with adjacent and separate regions: one read-only, one not shared, and one at the end of the
/// address space.
fn patchwork() -> DmaTable {
    let mut table = table(&[(1, 2), (3, 1), (8, 1)]);
    table.map(4 * PAGE, PAGE, DmaPermissions::READ_ONLY, Some((memfd(1), 0))).unwrap();
    table.map(9 * PAGE, PAGE, DmaPermissions::READ_WRITE, None).unwrap();
    table.map(PAGE.wrapping_neg(), PAGE, DmaPermissions::READ_WRITE, Some((memfd(1), 0))).unwrap();
    table
}

/// Generates I/O virtual addresses in and around the DMA regions that `patchwork` creates.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..11 * PAGE, 2 => (0..4096_u64).prop_map(u64::wrapping_neg), 1 => any::<u64>()]
}

fn length() -> impl Strategy<Value = u32> {
    prop_oneof![1..200_u32, 1..2049_u32, Just(64)]
}

/// Random frames to copy between two DMA tables: source addresses, target addresses and lengths.
struct RandomFrameCopyList {
    sources: Vec<u64>,
    targets: Vec<u64>,
    lengths: Vec<u32>,
}

impl RandomFrameCopyList {
    /// Returns the address range of frame `at`'s buffer, given the start addresses of all buffers.
    fn range(&self, starts: &[u64], at: usize) -> RangeInclusive<u64> {
        starts[at]..=starts[at].saturating_add(u64::from(self.lengths[at]) - 1)
    }

    /// Returns true if frame `at`'s buffer lies in one region of the table.
    fn is_in_one_region(&self, table: &DmaTable, starts: &[u64], at: usize) -> bool {
        let range = self.range(starts, at);
        table.regions().any(|region| region.iova <= *range.start() && *range.end() <= region.last)
    }

    /// Returns true if the target of frame `at` overlaps a buffer of the frames `others`.
    fn overlaps(&self, at: usize, starts: &[u64], mut others: impl Iterator<Item = usize>) -> bool {
        let target = self.range(&self.targets, at);
        others.any(|other| {
            let other = self.range(starts, other);
            target.start() <= other.end() && other.start() <= target.end()
        })
    }

    fn read(&self, table: &DmaTable, starts: &[u64], at: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; self.lengths[at] as usize];
        table.read(starts[at], &mut bytes).is_ok().then_some(bytes)
    }

    /// Gathers the heads of the frames from `from`, and asserts that they have the right bytes. Returns the gathered
    /// heads.
    fn gather(&self, from: &DmaTable, mut hint: u32) -> Vec<[u8; 64]> {
        let mut heads = vec![[0xff; 64]; 32];
        let gathered = from.gather(&mut hint, &self.sources, &self.lengths, &mut heads);
        heads.truncate(gathered);
        for (at, head) in heads.iter().enumerate() {
            let mut expected = self.read(from, &self.sources, at).unwrap();
            expected.resize(expected.len().max(64), 0);
            assert_eq!(head[..], expected[..64]);
        }
        if gathered < self.sources.len().min(32) {
            assert!(
                self.read(from, &self.sources, gathered).is_none()
                    || !self.is_in_one_region(from, &self.sources, gathered)
            );
        }
        heads
    }

    /// Copies the frames with these heads from one DMA table to another. Returns the number of copied frames, and each
    /// payload's sum for the checksum.
    fn carry(
        &self,
        from: &DmaTable,
        to: &DmaTable,
        hints: (u32, u32),
        heads: &[[u8; 64]],
    ) -> (usize, Vec<u64>) {
        let (count, (mut hint, mut to_hint)) = (heads.len(), hints);
        let mut sums = vec![0xff; count];
        let run = FrameCopyList {
            heads: &mut heads.to_vec(),
            sources: &self.sources[..count],
            lengths: &self.lengths[..count],
            targets: &self.targets[..count],
            sums: &mut sums,
        };
        let moved = from.carry(&mut hint, (to, &mut to_hint), run, None);
        if moved < count {
            // The target may overlap a frame that was moved before, so it keeps its bytes.
            let bytes = self.read(to, &self.targets, moved);
            let writable = bytes.is_some_and(|bytes| to.write(self.targets[moved], &bytes).is_ok());
            assert!(!writable || !self.is_in_one_region(to, &self.targets, moved));
        }
        (moved, sums)
    }
}

proptest! {
    #[test]
    fn frames_moved_in_bursts_equal_frames_moved_singly(
        frames in vec((address(), address(), length()), 1..40),
        contents in vec(any::<u8>(), 7..4096),
        hints in (0..9_u32, 0..9_u32),
        same in any::<bool>(),
    ) {
        let tables = [patchwork(), patchwork()];
        for (table, page) in tables.iter().flat_map(|table| [1, 2, 3, 8, u64::MAX / PAGE].map(|page| (table, page))) {
            let bytes = contents.iter().copied().cycle().skip(page as usize % 7);
            table.write(page * PAGE, &bytes.take(4096).collect::<Vec<u8>>()).unwrap();
        }
        let (from, to) = (&tables[0], &tables[usize::from(!same)]);
        let frames = RandomFrameCopyList {
            sources: frames.iter().map(|frame| frame.0).collect(),
            targets: frames.iter().map(|frame| frame.1).collect(),
            lengths: frames.iter().map(|frame| frame.2).collect(),
        };
        // The sender has changed the heads since they were gathered.
        let heads: Vec<_> = frames.gather(from, hints.0).iter().map(|head| head.map(|byte| !byte)).collect();
        let before: Vec<_> = (0..heads.len()).map(|at| frames.read(from, &frames.sources, at).unwrap()).collect();
        let (moved, sums) = frames.carry(from, to, hints, &heads);
        for at in (0..moved).filter(|at| !frames.overlaps(*at, &frames.targets, (0..moved).filter(|other| other != at))) {
            let bytes = frames.read(to, &frames.targets, at).unwrap();
            let (head, rest) = bytes.split_at(bytes.len().min(64));
            prop_assert_eq!(head, &heads[at][..head.len()]);
            prop_assert_eq!(sums[at] % 0xffff, sum_of(rest) % 0xffff, "the sum is of the delivered bytes");
            if !same || (0..moved).all(|other| !frames.overlaps(other, &frames.sources, std::iter::once(at))) {
                prop_assert_eq!(rest, &before[at][head.len()..]);
            }
        }
    }
}

proptest! {
    #[test]
    fn frames_moved_through_own_memory_equal_frames_moved_directly(
        frames in vec((address(), address(), length()), 1..40),
        contents in vec(any::<u8>(), 7..4096),
        hints in (0..9_u32, 0..9_u32),
    ) {
        let [from, direct, through] = [patchwork(), patchwork(), patchwork()];
        for page in [1, 2, 3, 8, u64::MAX / PAGE] {
            let bytes = contents.iter().copied().cycle().skip(page as usize % 7);
            from.write(page * PAGE, &bytes.take(4096).collect::<Vec<u8>>()).unwrap();
        }
        let frames = RandomFrameCopyList {
            sources: frames.iter().map(|frame| frame.0).collect(),
            targets: frames.iter().map(|frame| frame.1).collect(),
            lengths: frames.iter().map(|frame| frame.2).collect(),
        };
        let heads: Vec<_> = frames.gather(&from, hints.0).iter().map(|head| head.map(|byte| !byte)).collect();
        let (moved, sums) = frames.carry(&from, &direct, hints, &heads);

        let count = heads.len();
        let lengths = &frames.lengths[..count];
        let places: Vec<u64> = (0..count as u64).map(|at| at * 2200 + at % 64).collect();
        let (mut own, mut own_sums) = (vec![0; 40 * 2200], vec![0xff; count]);
        let run = FrameCopyList {
            heads: &mut heads.clone(),
            sources: &frames.sources[..count],
            lengths,
            targets: &places,
            sums: &mut own_sums,
        };
        let mut hints = hints;
        prop_assert_eq!(from.carry_out(&mut hints.0, &mut own, run, None), count, "own memory has room for all");
        let copied = through.copy_in(&mut hints.1, (&own, &places), lengths, &frames.targets[..count]);
        prop_assert_eq!(copied, moved);
        for at in 0..moved {
            prop_assert_eq!(own_sums[at] % 0xffff, sums[at] % 0xffff);
            if !frames.overlaps(at, &frames.targets, (0..moved).filter(|other| *other != at)) {
                prop_assert_eq!(frames.read(&through, &frames.targets, at), frames.read(&direct, &frames.targets, at));
            }
        }
    }
}

#[test]
fn frames_beyond_own_memory_are_not_copied() {
    let guest = table(&[(1, 1)]);
    guest.write(PAGE, &[7; 100]).unwrap();
    let (mut own, mut heads) = (vec![0; 300], [[7; 64]; 3]);
    for (places, count) in [([0, 200, 100], 3), ([0, 201, 100], 1), ([u64::MAX, 0, 0], 0)] {
        let run = FrameCopyList {
            heads: &mut heads,
            sources: &[PAGE; 3],
            lengths: &[100; 3],
            targets: &places,
            sums: &mut [0; 3],
        };
        assert_eq!(guest.carry_out(&mut 0, &mut own, run, None), count, "into {places:?}");
        let targets = [PAGE, PAGE + 100, PAGE + 200];
        assert_eq!(guest.copy_in(&mut 0, (&own, &places), &[100; 3], &targets), count, "from {places:?}");
    }
}

#[test]
fn frame_copy_gives_header_completion_the_payload_checksum() {
    let (from, to) = (table(&[(1, 1)]), table(&[(1, 1)]));
    let frame: Vec<u8> = (0..100).collect();
    from.write(PAGE, &frame).unwrap();
    // The second frame is not in the receiver's memory.
    let (mut heads, targets) = ([[0; 64]; 2], [PAGE, 9 * PAGE]);
    from.gather(&mut 0, &[PAGE; 2], &[100; 2], &mut heads);
    let mut seen = Vec::new();
    let mut complete = |at: usize, head: &mut [u8; 64], rest: u64| {
        seen.push((at, rest));
        head[0] = 0xee;
    };
    let run = FrameCopyList {
        heads: &mut heads,
        sources: &[PAGE; 2],
        lengths: &[100; 2],
        targets: &targets,
        sums: &mut [0; 2],
    };
    assert_eq!(from.carry(&mut 0, (&to, &mut 0), run, Some(&mut complete)), 1);
    assert_eq!(
        (heads[0][0], heads[1][0]),
        (0xee, 0),
        "only the head of a frame that is delivered is changed"
    );
    let mut delivered = vec![0; 100];
    to.read(PAGE, &mut delivered).unwrap();
    assert_eq!((delivered[0], &delivered[1..]), (0xee, &frame[1..]));
    let [(0, rest)] = seen[..] else { panic!("exactly one frame head must be completed") };
    assert_eq!(rest % 0xffff, sum_of(&frame[64..]) % 0xffff);
}
