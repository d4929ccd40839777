//! A family's receive descriptors, as the ring needs them, and errors of received frames. Left out: the ring.

use crate::hal::DESCRIPTOR;

/// A receive descriptor, as many bytes of it as its size says.
pub(crate) type Raw = [u8; DESCRIPTOR];

/// A family's receive descriptors.
pub trait Layout: Copy {
    /// Description of a received frame.
    type Received;

    /// Returns the bytes of a descriptor, at most [`DESCRIPTOR`].
    fn size(self) -> usize;

    /// Returns the descriptor that posts a buffer.
    fn posted(self, buffer: u64) -> Raw;

    /// Reads a completed descriptor: the bytes in its buffer, and whether that is the frame's last.
    fn filled(self, raw: &Raw) -> (usize, bool);

    /// Reads the last descriptor of a frame of `length` bytes.
    fn received(self, raw: &Raw, length: usize) -> Self::Received;

    /// Reads the last descriptor of a frame: whether the card found a wrong checksum.
    fn has_bad_checksum(self, raw: &Raw) -> bool;
}

/// A received frame is lost. Its buffers go back to the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RxError {
    /// The caller's buffer is too short.
    #[error("a frame of {0} bytes does not fit the buffer")]
    TooLong(usize),
    /// The card wrote back a length beyond the buffer, or did not end the frame.
    #[error("the card wrote back a malformed descriptor")]
    Malformed,
}
