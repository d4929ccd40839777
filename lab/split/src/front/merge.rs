//! Merges consecutive TCP segments into one packet before the stack sees them (large receive offload). Merged segments
//! differ only in position, acknowledgement and window; the last one's acknowledgement and window are kept. Segments
//! with changing options, such as time stamps, and those out of order or repeated are passed on unmerged.

use super::FrontendReceivedFrame;
use crate::{MAX_FRAME, PendingOffloads};
use alloc::boxed::Box;

const IP: usize = 14;
const TCP: usize = IP + 20;
/// Bytes of a TCP header without options.
const SHORTEST_TCP: usize = 20;
/// TCP flags that a merged segment may have: ACK.
const ALLOWED_FLAGS: u8 = 0x10;

/// Merger of received TCP segments. If the frame read ahead cannot be merged, the merger keeps it for the next call.
#[derive(Debug)]
pub(super) struct SegmentMerger {
    buffer: Box<[u8]>,
    waiting: Option<FrontendReceivedFrame>,
}

/// Sequence and acknowledgement numbers of a TCP segment, and the offsets of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TcpSegmentOffsets {
    sequence: u32,
    acknowledgement: u32,
    /// Offset of the TCP payload's first byte in the frame.
    payload: usize,
    /// Offset in the frame of the byte behind the TCP payload.
    end: usize,
}

impl SegmentMerger {
    pub(super) fn new() -> Self {
        Self { buffer: alloc::vec![0; MAX_FRAME].into(), waiting: None }
    }

    /// Returns `true` if the merger keeps a frame that was read ahead and could not be merged.
    pub(super) fn has_frame(&self) -> bool {
        self.waiting.is_some()
    }

    /// Takes the kept frame, which could not be merged: copies it to the front of `into`, and returns its description.
    pub(super) fn take(&mut self, into: &mut [u8]) -> Option<FrontendReceivedFrame> {
        let received = self.waiting.take()?;
        into.get_mut(..received.length)?.copy_from_slice(&self.buffer[..received.length]);
        Some(received)
    }

    /// Returns the buffer for the frame that the merger reads ahead.
    pub(super) fn next(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Merges the frame read ahead into the frame in `frame`. Returns the merged length, or `None` if the frames cannot
    /// be merged and the second is kept. Frames with pending offloads are not merged: they come from another guest of
    /// this machine, and most were never segmented.
    pub(super) fn append(
        &mut self,
        frame: &mut [u8],
        first: FrontendReceivedFrame,
        next: FrontendReceivedFrame,
    ) -> Option<usize> {
        let both_are_whole = [first, next].iter().all(|one| one.offload == PendingOffloads::default());
        let candidate = self.buffer.get(..next.length).filter(|_| both_are_whole);
        let merged = candidate.and_then(|next| join(frame, first.length, next));
        self.waiting = if merged.is_none() { Some(next) } else { None };
        merged
    }
}

fn half(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn word(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
}

/// Parses a TCP segment that may be merged: IPv4 without options, unfragmented, with payload and no flag but ACK.
fn segment(frame: &[u8]) -> Option<TcpSegmentOffsets> {
    let headers = frame.get(..TCP + SHORTEST_TCP)?;
    let is_tcp = headers[12..15] == [8, 0, 0x45] && headers[IP + 9] == 6;
    let is_fragment = half(headers, IP + 6) & 0x3fff != 0;
    let payload = TCP + usize::from(headers[TCP + 12] >> 4) * 4;
    let end = IP + usize::from(half(headers, IP + 2));
    let is_ordinary = headers[TCP + 13] & !ALLOWED_FLAGS == 0 && half(headers, TCP + 18) == 0;
    let is_whole = payload >= TCP + SHORTEST_TCP && payload < end && end <= frame.len();
    (is_tcp && !is_fragment && is_ordinary && is_whole).then(|| TcpSegmentOffsets {
        sequence: word(headers, TCP + 4),
        acknowledgement: word(headers, TCP + 8),
        payload,
        end,
    })
}

/// Returns `true` if two frames have equal addresses, DSCP, time to live, ports, flags and options.
fn is_same_stream(one: (&[u8], TcpSegmentOffsets), two: (&[u8], TcpSegmentOffsets)) -> bool {
    let fixed = [0..IP + 2, IP + 8..IP + 9, IP + 12..TCP + 4, TCP + 12..TCP + 14];
    let same = |range: core::ops::Range<usize>| one.0.get(range.clone()) == two.0.get(range);
    let options = TCP + SHORTEST_TCP..one.1.payload;
    one.1.payload == two.1.payload && fixed.into_iter().all(same) && same(options)
}

/// Appends the payload of TCP segment `next` to the segment in `frame`, if it follows in the same stream. Returns the
/// merged length.
fn join(frame: &mut [u8], length: usize, next: &[u8]) -> Option<usize> {
    let (one, two) = (segment(frame.get(..length)?)?, segment(next)?);
    let follows = two.sequence == one.sequence.wrapping_add((one.end - one.payload) as u32);
    let advances = two.acknowledgement.wrapping_sub(one.acknowledgement) < 1 << 31;
    if !(follows && advances && is_same_stream((frame, one), (next, two))) {
        return None;
    }
    let end = one.end + (two.end - two.payload);
    let total = u16::try_from(end - IP).ok().filter(|_| end <= MAX_FRAME)?;
    frame.get_mut(one.end..end)?.copy_from_slice(&next[two.payload..two.end]);
    for field in [TCP + 8..TCP + 12, TCP + 14..TCP + 16] {
        frame[field.clone()].copy_from_slice(&next[field]);
    }
    frame[IP + 2..IP + 4].copy_from_slice(&total.to_be_bytes());
    frame[IP + 10..IP + 12].fill(0);
    let sum = crate::checksum(&frame[IP..TCP]);
    frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::{IP, SegmentMerger, TCP, join, segment};
    use crate::front::FrontendReceivedFrame;
    use crate::{MAX_FRAME, PendingOffloads};
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::{any, prop, proptest};

    /// Returns a frame with a TCP segment of `bytes` payload bytes, which encode their positions in the stream.
    fn frame(sequence: u32, bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; TCP + 32 + bytes];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[IP + 2..IP + 4].copy_from_slice(&((20 + 32 + bytes) as u16).to_be_bytes());
        frame[IP + 9] = 6;
        frame[TCP + 4..TCP + 8].copy_from_slice(&sequence.to_be_bytes());
        frame[TCP + 12] = 0x80;
        frame[TCP + 13] = 0x10;
        for (at, byte) in frame[TCP + 32..].iter_mut().enumerate() {
            *byte = sequence.wrapping_add(at as u32) as u8;
        }
        frame
    }

    fn joined(one: &[u8], two: &[u8]) -> Option<Vec<u8>> {
        let mut into = vec![0; MAX_FRAME];
        into[..one.len()].copy_from_slice(one);
        let length = join(&mut into, one.len(), two)?;
        into.truncate(length);
        Some(into)
    }

    #[test]
    fn consecutive_tcp_segments_merge_into_one_packet() {
        let mut whole = frame(u32::MAX - 99, 300);
        let sum = crate::checksum(&whole[IP..TCP]);
        whole[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(joined(&frame(u32::MAX - 99, 100), &frame(0, 200)), Some(whole));
    }

    #[test]
    fn tcp_segments_that_differ_in_a_header_are_not_merged() {
        let one = frame(0, 100);
        let changed = |at: usize, to: u8| {
            let mut two = frame(100, 100);
            two[at] = to;
            two
        };
        for (what, at, to) in [
            ("destination address", 0, 9),
            ("source address", 6, 9),
            ("kind of service, congestion", IP + 1, 3),
            ("a fragment", IP + 6, 0x20),
            ("time to live", IP + 8, 7),
            ("protocol", IP + 9, 17),
            ("source", IP + 12, 9),
            ("port", TCP, 9),
            ("length of the header", TCP + 12, 0x70),
            ("PSH", TCP + 13, 0x18),
            ("FIN", TCP + 13, 0x11),
            ("ECE", TCP + 13, 0x50),
            ("urgent", TCP + 19, 1),
            ("an option", TCP + 20, 1),
        ] {
            assert_eq!(joined(&one, &changed(at, to)), None, "{what}");
        }
        assert!(joined(&one, &frame(100, 100)).is_some());
        assert_eq!(joined(&one, &frame(101, 100)), None, "a segment after a gap is not merged");
        assert_eq!(joined(&one, &frame(0, 100)), None, "a repeated segment is not merged");
        assert_eq!(joined(&one, &frame(100, 0)), None, "a pure acknowledgement is not merged");
        let mut late = frame(100, 100);
        late[TCP + 8..TCP + 12].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(joined(&one, &late), None, "a segment that acknowledges less is not merged");
    }

    #[test]
    fn merged_tcp_packet_has_the_last_acknowledgement_and_window() {
        let mut two = frame(100, 50);
        two[TCP + 11] = 77;
        two[TCP + 15] = 5;
        let merged = joined(&frame(0, 100), &two).unwrap();
        assert_eq!((merged[TCP + 11], merged[TCP + 15]), (77, 5));
    }

    #[test]
    fn tcp_segment_merge_ignores_padding_and_stops_at_64_kib() {
        let padded = [frame(0, 5), vec![0xff; 3]].concat();
        let merged = joined(&padded, &frame(5, 5)).unwrap();
        assert_eq!(&merged[TCP + 32..], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let long = frame(0, 65_000);
        assert_eq!(joined(&long, &frame(65_000, 1_000)), None);
    }

    #[test]
    fn received_frame_that_cannot_merge_is_returned_separately() {
        let mut merge = SegmentMerger::new();
        let mut into = vec![0; MAX_FRAME];
        let of = |frame: &[u8], csum_blank| FrontendReceivedFrame {
            length: frame.len(),
            frames: 1,
            offload: PendingOffloads { csum_blank, segment: None },
        };
        let one = frame(0, 100);
        into[..one.len()].copy_from_slice(&one);
        for (next, csum_blank) in [(frame(500, 20), false), (frame(100, 20), true)] {
            merge.next()[..next.len()].copy_from_slice(&next);
            assert_eq!(merge.append(&mut into, of(&one, false), of(&next, csum_blank)), None);
            assert!(merge.has_frame());
            let mut out = vec![0; MAX_FRAME];
            assert_eq!(merge.take(&mut out), Some(of(&next, csum_blank)));
            assert_eq!(out[..next.len()], next);
            assert_eq!((merge.has_frame(), merge.take(&mut out)), (false, None));
        }
    }

    proptest! {
        /// Checks that a merged packet has the bytes of both frames, and that an unmerged one is unchanged, for any
        /// input.
        #[test]
        fn any_two_frames_are_merged_whole_or_not_at_all(
            changes in prop::collection::vec((0usize..80, any::<u8>()), 0..4),
            cut in 0usize..200,
        ) {
            let (one, mut two) = (frame(7, 64), frame(71, 64));
            for (at, value) in changes {
                two[at] = value;
            }
            two.truncate(cut.max(1));
            if let Some(merged) = joined(&one, &two) {
                let second = segment(&two).unwrap();
                let expected = [&one[TCP + 32..], &two[second.payload..second.end]].concat();
                assert_eq!(merged[TCP + 32..], expected);
            }
        }
    }
}
