//! Copies bursts of frames over a bus: the first bytes of all frames are gathered, and later [`crate::Bus`] copies the
//! frames from one function's memory to another's.

/// Maximum number of frames in a burst.
pub const BURST: usize = 32;
/// Bytes at the start of a frame that hold its headers. A card examines these bytes in a private copy, and delivers
/// that copy.
pub const HEAD: usize = 64;
/// Maximum bytes of a frame in a burst: the size of most drivers' buffers.
pub const LONGEST: usize = 2048;

/// Maximum length in bytes of the headers that a card writes in front of a payload.
pub const HEADERS: usize = 128;

/// Hint by which a bus finds faster the part of a function's memory that holds a ring, or the buffers of a ring. Each
/// ring keeps one hint for itself and one for its buffers. Only the bus interprets and verifies it, so a stale hint
/// costs time and does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryHint(pub u32);

/// Function that completes the first bytes (head) of a frame that a bus copies, given the frame's index among the
/// copied frames, the head, and the sum of the bytes after it. The bus calls it when it has copied those bytes, and
/// before it delivers the head. A card inserts checksums in this way.
pub type HeadCompleter<'a> = dyn FnMut(usize, &mut [u8; HEAD], u64) + 'a;

/// Frames to copy from one function's buffers to another's, one element of each slice per frame.
#[derive(Debug)]
pub struct FrameCopyBatch<'a> {
    /// Private copies of the frames' first [`HEAD`] bytes, with zeros behind a shorter frame.
    pub heads: &'a mut [[u8; HEAD]],
    /// Addresses of the frames in the sender's buffers.
    pub sources: &'a [u64],
    /// Lengths of the frames in bytes, [`LONGEST`] at most.
    pub lengths: &'a [u32],
    /// Addresses in the receiver's buffers to which the frames are copied.
    pub targets: &'a [u64],
    /// Receives, for each frame, the ones' complement sum of the 16-bit little-endian words after its first [`HEAD`]
    /// bytes.
    pub sums: &'a mut [u64],
}

/// Frames to copy from a card's own memory to a function's buffers, one element of each slice per frame.
#[derive(Debug)]
pub struct FramePlaces<'a> {
    /// Offsets of the frames in the card's memory.
    pub sources: &'a [u64],
    /// Lengths of the frames in bytes, [`LONGEST`] at most.
    pub lengths: &'a [u32],
    /// Addresses in the function's buffers to which the frames are copied.
    pub targets: &'a [u64],
}

/// Payloads of one packet's segments, which go from buffers of one function to buffers of another, one element of each
/// slice per segment.
#[derive(Debug)]
pub struct SegmentPayloads<'a> {
    /// Addresses of the payloads in the sender's buffers.
    pub sources: &'a [u64],
    /// Lengths of the payloads in bytes, [`LONGEST`] at most.
    pub lengths: &'a [u32],
    /// Addresses in the receiver's buffers to which the payloads are copied.
    pub targets: &'a [u64],
    /// Receives the ones' complement sum of each payload's 16-bit little-endian words.
    pub sums: &'a mut [u64],
}
