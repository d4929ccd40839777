//! Batch of frames on the way from one part of a device to another: their bytes, and the decisions on them. Consecutive frames
//! with one decision are a run.

use crate::PortIndex;
use crate::frame::{Frame, HEADROOM, TrustedChecksum};
use crate::sink::DeliveryFlags;
use crate::uplink::UnsegmentedPacketLayout;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of the longest packet in a batch: one that is not segmented, with its Ethernet header and a VLAN tag.
const LONGEST: usize = 65_536 + 18;
/// Bytes between the starts of two frames are a multiple of this, a line of the cache.
const LINE: usize = 64;
/// Bytes of a batch: room for the longest packet, or for 45 long frames.
const BYTES: usize = (LONGEST + LINE).next_multiple_of(LINE) + 64 * LINE;
/// Maximum number of frames in a batch.
const FRAMES: usize = 128;

/// Decision on the frames of a run in a trunk, and the properties that are not in the frames' bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrunkFrameHeader {
    /// Port that receives the frame.
    pub port: PortIndex,
    /// Properties of the frame for the receiving port.
    pub about: DeliveryFlags,
    /// VLAN tag beside the frame, if it has one.
    pub tag: Option<u16>,
    /// Trusted transport checksum of the frame, with offsets from the frame's start.
    pub sealed: Option<TrustedChecksum>,
    /// Layout of a TCP packet that is not segmented; `None` for a frame.
    pub uncut: Option<UnsegmentedPacketLayout>,
}

impl TrunkFrameHeader {
    /// Returns the header of a frame for the uplink, where the receiving port is of no importance.
    #[must_use]
    pub fn to_uplink(uncut: Option<UnsegmentedPacketLayout>) -> Self {
        let about = DeliveryFlags { from_uplink: false, alone: true, inexact: false, strips: false };
        Self { port: PortIndex::of_field(0), about, tag: None, sealed: None, uncut }
    }

    /// Returns the header of a frame for a port, and the frame's bytes without its VLAN tag.
    pub fn of<'f>(
        port: PortIndex,
        frame: &'f mut Frame<'_>,
        about: DeliveryFlags,
        uncut: Option<UnsegmentedPacketLayout>,
    ) -> (Self, &'f [u8]) {
        let tag = frame.tag;
        let sealed = frame.seal();
        // `untagged` moves a tag out of the bytes, which moves no byte of the sealed part within the buffer.
        (Self { port, about, tag, sealed, uncut }, frame.untagged())
    }
}

/// Consecutive frames of a batch with one decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrunkRun {
    /// Decision on the frames of the run.
    pub header: TrunkFrameHeader,
    /// True if each frame of the run is plain, and its sender has found its kind ([`TrunkFramePlaces::kinds`]).
    pub plain: bool,
    /// Number of the run's first frame in the batch.
    first: usize,
    /// Number of the first frame behind the run.
    end: usize,
}

impl TrunkRun {
    /// Returns the numbers of the run's frames in the batch.
    #[must_use]
    pub fn frames(&self) -> Range<usize> {
        self.first..self.end
    }
}

/// Places of consecutive frames of a batch, one element of each slice per frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrunkFramePlaces<'a> {
    /// Offsets of the frames' first bytes.
    pub starts: &'a [u64],
    /// Lengths of the frames in bytes.
    pub lengths: &'a [u32],
    /// Numbers of the kinds of plain frames. Only crate `rings` knows their meaning.
    pub kinds: &'a [u8],
}

/// Frames on the way to one part of a device, in order.
#[derive(Debug)]
pub struct TrunkBatch {
    runs: Vec<TrunkRun>,
    starts: Vec<u64>,
    lengths: Vec<u32>,
    kinds: Vec<u8>,
    bytes: Box<[u8]>,
    /// Offset of the first byte that no frame uses.
    end: usize,
}

impl Default for TrunkBatch {
    fn default() -> Self {
        Self {
            runs: Vec::with_capacity(FRAMES),
            starts: Vec::with_capacity(FRAMES),
            lengths: Vec::with_capacity(FRAMES),
            kinds: Vec::with_capacity(FRAMES),
            bytes: vec![0; BYTES].into_boxed_slice(),
            end: 0,
        }
    }
}

impl TrunkBatch {
    /// Returns the offset of a frame behind one that ends at `end`. Each frame has [`HEADROOM`], for a VLAN tag.
    const fn start_behind(end: usize) -> usize {
        (end + HEADROOM + LINE - 1) & !(LINE - 1)
    }

    /// Returns true if the batch has no frames.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns the number of frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns true if the batch has room for a frame of `bytes` bytes.
    #[must_use]
    #[inline]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.len() < FRAMES && Self::start_behind(self.end) + bytes <= self.bytes.len()
    }

    /// Removes all frames.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.starts.clear();
        self.lengths.clear();
        self.kinds.clear();
        self.end = 0;
    }

    /// Adds a frame with the decision on it. Returns false, with nothing added, if there is no room.
    pub fn put(&mut self, header: &TrunkFrameHeader, frame: &[u8]) -> bool {
        let start = Self::start_behind(self.end);
        if !self.has_room(frame.len()) {
            return false;
        }
        self.bytes[start..start + frame.len()].copy_from_slice(frame);
        let first = self.len();
        self.add_places(
            &[start as u64],
            &[u32::try_from(frame.len()).unwrap_or(u32::MAX)],
            core::iter::once(0),
        );
        self.runs.push(TrunkRun { header: *header, plain: false, first, end: first + 1 });
        self.end = start + frame.len();
        true
    }

    /// Finds places for the first frames with these lengths, and stores their offsets in `starts`. Returns the number of frames
    /// that have room.
    pub fn find_places(&self, lengths: &[u32], starts: &mut [u64]) -> usize {
        let room = lengths.len().min(starts.len()).min(FRAMES - self.len());
        let (mut end, mut found) = (self.end, 0);
        for (length, place) in lengths[..room].iter().zip(&mut starts[..room]) {
            let start = Self::start_behind(end);
            *place = start as u64;
            end = start + *length as usize;
            found += usize::from(end <= BYTES);
        }
        found
    }

    /// Returns the bytes of the batch, for frames in places of [`TrunkBatch::find_places`].
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Returns the bytes of the batch.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a run of plain frames, whose bytes are in the places (`starts`) that [`TrunkBatch::find_places`] has found for their
    /// lengths. `kinds` has the number of each frame's kind.
    pub fn add_run(
        &mut self,
        header: &TrunkFrameHeader,
        (starts, lengths): (&[u64], &[u32]),
        kinds: impl Iterator<Item = u8>,
    ) {
        let first = self.len();
        self.add_places(starts, lengths, kinds);
        if let (Some(start), Some(length)) = (starts.last(), lengths.last()) {
            self.end = usize::try_from(*start).unwrap_or(BYTES) + *length as usize;
        }
        self.runs.push(TrunkRun { header: *header, plain: true, first, end: self.len() });
    }

    fn add_places(&mut self, starts: &[u64], lengths: &[u32], kinds: impl Iterator<Item = u8>) {
        self.starts.extend_from_slice(starts);
        self.lengths.extend_from_slice(lengths);
        self.kinds.extend(kinds);
    }

    /// Returns a run by its number.
    #[must_use]
    pub fn run(&self, at: usize) -> Option<TrunkRun> {
        self.runs.get(at).copied()
    }

    /// Returns the places of frames by their numbers.
    #[must_use]
    pub fn places(&self, range: Range<usize>) -> TrunkFramePlaces<'_> {
        TrunkFramePlaces {
            starts: self.starts.get(range.clone()).unwrap_or_default(),
            lengths: self.lengths.get(range.clone()).unwrap_or_default(),
            kinds: self.kinds.get(range).unwrap_or_default(),
        }
    }

    /// Returns the bytes of a frame by its number.
    #[must_use]
    pub fn frame_bytes(&self, at: usize) -> Option<&[u8]> {
        self.bytes.get(self.range_of(at)?)
    }

    /// Returns a frame by its number. Returns `None` if the frame is shorter than an Ethernet header.
    pub fn frame(&mut self, at: usize) -> Option<Frame<'_>> {
        let range = self.range_of(at)?;
        Frame::new(self.bytes.get_mut(range.start - HEADROOM..range.end)?)
    }

    fn range_of(&self, at: usize) -> Option<Range<usize>> {
        let start = usize::try_from(*self.starts.get(at)?).ok()?;
        Some(start..start + *self.lengths.get(at)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::HEADER;

    #[test]
    fn batch_takes_one_packet_of_64_kib() {
        let mut batch = TrunkBatch::default();
        let packet = vec![7; LONGEST];
        assert!(batch.has_room(LONGEST));
        assert!(batch.put(&TrunkFrameHeader::to_uplink(None), &packet));
        assert!(!batch.has_room(LONGEST) && !batch.put(&TrunkFrameHeader::to_uplink(None), &packet));
        assert_eq!((batch.len(), batch.frame_bytes(0)), (1, Some(&packet[..])));
        batch.clear();
        assert!(batch.is_empty() && batch.put(&TrunkFrameHeader::to_uplink(None), &packet));
    }

    #[test]
    fn places_of_a_run_have_headroom_and_do_not_overlap() {
        let mut batch = TrunkBatch::default();
        assert!(batch.put(&TrunkFrameHeader::to_uplink(None), &[7; HEADER]));
        let (lengths, mut starts) = ([60, 64, 1_514, 2_048, 61].repeat(8), [0; 40]);
        let found = batch.find_places(&lengths, &mut starts);
        assert_eq!(found, 40);
        batch.add_run(&TrunkFrameHeader::to_uplink(None), (&starts, &lengths), core::iter::repeat_n(3, 40));
        let mut end = 0;
        for at in 0..batch.len() {
            let range = batch.range_of(at).unwrap();
            assert!(range.start >= end + HEADROOM, "frame {at}");
            assert!(batch.frame(at).is_some());
            end = range.end;
        }
        assert_eq!(batch.run(1).map(|run| (run.plain, run.frames())), Some((true, 1..41)));
        assert!(batch.places(1..41).kinds.iter().all(|kind| *kind == 3));
    }

    #[test]
    fn full_batch_has_no_place() {
        let mut batch = TrunkBatch::default();
        let frames = (0..).take_while(|_| batch.put(&TrunkFrameHeader::to_uplink(None), &[7; 60])).count();
        assert_eq!(frames, FRAMES);
        assert_eq!(batch.find_places(&[60], &mut [0]), 0);
        batch.clear();
        let (lengths, mut starts) = ([2_048; 40], [0; 40]);
        assert_eq!(batch.find_places(&lengths, &mut starts), BYTES / (2_048 + LINE));
    }
}
