//! Frames of a burst as a bus moves them: their heads are gathered, and later they are carried from one function's memory to
//! another's. Left out: the requests ([`crate::Bus`]), descriptors, and receivers.

/// Maximum number of frames in a burst.
pub const BURST: usize = 32;
/// Bytes at the start of a frame, where its headers are. A card judges these bytes in a private copy, and delivers that copy.
pub const HEAD: usize = 64;
/// Maximum bytes of a frame in a burst: the size of most drivers' buffers.
pub const LONGEST: usize = 2048;

/// The window of a function's memory in which a ring, or the buffers of a ring, were found last. Each ring keeps one for itself and
/// one for its buffers. The bus alone knows its meaning and checks it, so a stale hint costs time and does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hint(pub u32);

/// Frames that go from buffers of one function to buffers of another, a slot of each slice per frame.
#[derive(Debug)]
pub struct Run<'a> {
    /// Private copies of the first [`HEAD`] bytes, with zeros behind a shorter frame.
    pub heads: &'a [[u8; HEAD]],
    /// Addresses of the sender's buffers.
    pub sources: &'a [u64],
    /// Bytes to deliver, [`LONGEST`] at most.
    pub lengths: &'a [u32],
    /// Addresses of the receiver's buffers.
    pub targets: &'a [u64],
    /// Receives the ones' complement sum of the 16-bit little-endian words behind the head.
    pub sums: &'a mut [u64],
}
