//! The frames of a burst: an array for each thing that is known of them, with a slot per frame.

use alloc::boxed::Box;
use alloc::vec;
use offload::plain::{Glance, Insertion, PlainKind};
use pcie::Iova;
use pcie::burst::{BURST, HEAD, HEADERS};
use plane::Verdict;
use plane::frame::HEADROOM;
use units::FCS;

/// Bytes of the shortest frame, check sequence excluded.
pub(crate) const SHORTEST: u32 = 60;
/// Bytes of the longest frame, check sequence excluded.
pub(crate) const LONGEST_FRAME: usize = 9728 - FCS;

/// Pads the frame of `length` bytes at the start of `place` with zeros to the shortest that Ethernet has; returns its length then.
#[inline(always)]
pub(crate) fn pad(place: &mut [u8], length: usize) -> usize {
    let padded = length.max(SHORTEST as usize).min(place.len());
    if length < padded {
        place[length..padded].fill(0);
    }
    padded
}

/// A place for a burst of frames.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(crate) struct Frames {
    pub(crate) heads: [[u8; HEAD]; BURST],
    /// Addresses of the sender's buffers.
    pub(crate) sources: [Iova; BURST],
    /// Bytes that the sender has of each frame.
    pub(crate) lengths: [u32; BURST],
    /// Bytes that are delivered: short frames are padded.
    pub(crate) padded: [u32; BURST],
    /// Verdicts of frames whose addresses differ from those of the frame before.
    pub(crate) verdicts: [Verdict; BURST],
    pub(crate) glances: [Glance; BURST],
    /// Frames that ask for checksums, a bit each.
    pub(crate) summed: u32,
    /// The checksums to insert into them.
    pub(crate) insertions: [Insertion; BURST],
    /// Addresses of the receiver's buffers.
    pub(crate) targets: [Iova; BURST],
    pub(crate) sums: [u64; BURST],
    /// Receive queue and hash, while a run goes to a port that spreads frames over queues.
    pub(crate) spread: [(u8, Option<u32>); BURST],
    /// Headers of segments that are cut from one packet, and what the segments are to their receiver.
    pub(crate) headers: [[u8; HEADERS]; BURST],
    pub(crate) kinds: [PlainKind; BURST],
    /// A frame that travels alone: sent as it is, cut from a packet, or from the uplink.
    pub(crate) staging: Box<[u8]>,
}

impl Frames {
    /// A place without a frame in it.
    pub(crate) fn new() -> Self {
        Self {
            heads: [[0; HEAD]; BURST],
            sources: [0; BURST],
            lengths: [0; BURST],
            padded: [0; BURST],
            verdicts: [Verdict::ALONE; BURST],
            glances: [Glance::default(); BURST],
            summed: 0,
            insertions: [Insertion::default(); BURST],
            targets: [0; BURST],
            sums: [0; BURST],
            spread: [(0, None); BURST],
            headers: [[0; HEADERS]; BURST],
            kinds: [PlainKind::default(); BURST],
            staging: vec![0; HEADROOM + LONGEST_FRAME + FCS].into_boxed_slice(),
        }
    }
}
