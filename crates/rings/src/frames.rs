//! Stores the frames of a burst: an array for each property of a frame, with an element per frame.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::Range;
use offload::plain::{InsertedChecksums, PlainFrameKind, UnsummedFrame};
use pcie::Iova;
use pcie::burst::{BURST, FrameCopyBatch, HEAD, HEADERS, HeadCompleter};
use plane::BurstFrameVerdict;
use plane::frame::HEADROOM;
use units::FCS;

/// Length of the shortest frame in bytes, check sequence excluded.
pub const SHORTEST: u32 = 60;
/// Length of the longest frame in bytes, check sequence excluded.
pub(crate) const LONGEST_FRAME: usize = 9728 - FCS;

/// Pads the frame of `length` bytes at the start of `place` with zeros to Ethernet's shortest length. Returns the
/// frame's new length.
#[inline(always)]
pub(crate) fn pad(place: &mut [u8], length: usize) -> usize {
    let padded = length.max(SHORTEST as usize).min(place.len());
    if length < padded {
        place[length..padded].fill(0);
    }
    padded
}

/// Private memory of a burst of frames.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(crate) struct BurstMemory {
    pub(crate) heads: [[u8; HEAD]; BURST],
    /// Addresses of the frames in the sender's buffers.
    pub(crate) sources: [Iova; BURST],
    /// Lengths of the frames in the sender's buffers, in bytes.
    pub(crate) lengths: [u32; BURST],
    /// Lengths of the frames as they are delivered, in bytes: short frames are padded.
    pub(crate) padded: [u32; BURST],
    /// Verdicts of frames whose addresses differ from those of the frame before.
    pub(crate) verdicts: [BurstFrameVerdict; BURST],
    pub(crate) glances: [UnsummedFrame; BURST],
    /// Frames whose descriptors request checksums, a bit each.
    pub(crate) summed: u32,
    /// Checksums to insert into each frame.
    pub(crate) insertions: [InsertedChecksums; BURST],
    /// Addresses of the frames in the receiver's buffers.
    pub(crate) targets: [Iova; BURST],
    pub(crate) sums: [u64; BURST],
    /// Receive queue and hash of each frame, while a run goes to a port that spreads frames over queues.
    pub(crate) spread: [(u8, Option<u32>); BURST],
    /// For each segment of one large packet, the number of pieces of payloads up to the segment's end. A piece is the
    /// part of a payload in one buffer of the sender.
    pub(crate) piece_ends: [usize; BURST],
    /// Address of each piece of a payload in the receiver's buffers.
    pub(crate) piece_targets: [Iova; BURST],
    /// Headers of each segment of one large packet.
    pub(crate) headers: [[u8; HEADERS]; BURST],
    /// Properties of each segment of one large packet for its receiver.
    pub(crate) kinds: [PlainFrameKind; BURST],
    /// Bytes of a frame that is sent alone: as its sender made it, as a segment of a packet, or from the uplink.
    pub(crate) staging: Box<[u8]>,
}

impl BurstMemory {
    /// Calls `carry` with the frames of a run, and with the function that inserts the checksums that they request. Returns the
    /// number of frames that `carry` has copied.
    #[inline(always)]
    pub(crate) fn with_insertions(
        &mut self,
        run: Range<usize>,
        carry: impl FnOnce(FrameCopyBatch<'_>, Option<&mut HeadCompleter<'_>>) -> usize,
    ) -> usize {
        let Self { heads, sources, padded, glances, summed, insertions, targets, sums, .. } = self;
        let summed = *summed >> run.start;
        let (glances, insertions) = (&mut glances[run.clone()], &insertions[run.clone()]);
        let mut insert = |at: usize, head: &mut [u8; HEAD], rest: u64| {
            if summed >> at & 1 != 0 {
                glances[at].insert(head, rest, insertions[at]);
            }
        };
        let complete: Option<&mut HeadCompleter<'_>> = if summed == 0 { None } else { Some(&mut insert) };
        let (heads, sources) = (&mut heads[run.clone()], &sources[run.clone()]);
        let (targets, sums) = (&targets[run.clone()], &mut sums[run.clone()]);
        carry(FrameCopyBatch { heads, sources, lengths: &padded[run], targets, sums }, complete)
    }

    /// Creates the private memory of a burst without a frame.
    pub(crate) fn new() -> Self {
        Self {
            heads: [[0; HEAD]; BURST],
            sources: [0; BURST],
            lengths: [0; BURST],
            padded: [0; BURST],
            verdicts: [BurstFrameVerdict::ALONE; BURST],
            glances: [UnsummedFrame::default(); BURST],
            summed: 0,
            insertions: [InsertedChecksums::default(); BURST],
            targets: [0; BURST],
            sums: [0; BURST],
            spread: [(0, None); BURST],
            piece_ends: [0; BURST],
            piece_targets: [0; BURST],
            headers: [[0; HEADERS]; BURST],
            kinds: [PlainFrameKind::default(); BURST],
            staging: vec![0; HEADROOM + LONGEST_FRAME + FCS].into_boxed_slice(),
        }
    }
}
