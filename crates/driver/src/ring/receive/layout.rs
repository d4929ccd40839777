//! Interface of a family's receive descriptors to the ring, and errors of received frames.

use crate::hal::DESCRIPTOR;

/// Receive descriptor, of which the layout's size in bytes is used.
pub(crate) type RawRxDescriptor = [u8; DESCRIPTOR];

/// Layout of a device family's receive descriptors.
pub trait RxDescriptorLayout: Copy {
    /// Description of a received frame, parsed from the frame's last descriptor.
    type Received;

    /// Returns the size of a receive descriptor in bytes, at most [`DESCRIPTOR`].
    fn size(self) -> usize;

    /// Returns the receive descriptor that posts a buffer to the card.
    fn posted(self, buffer: u64) -> RawRxDescriptor;

    /// Parses a completed receive descriptor. Returns the number of bytes in its buffer, and true if the descriptor is
    /// the frame's last.
    fn filled(self, raw: &RawRxDescriptor) -> (usize, bool);

    /// Parses the last descriptor of a frame of `length` bytes.
    fn received(self, raw: &RawRxDescriptor, length: usize) -> Self::Received;

    /// Returns true if the last descriptor of a frame reports a wrong checksum.
    fn has_bad_checksum(self, raw: &RawRxDescriptor) -> bool;
}

/// Error of a received frame, which is lost. Its buffers are returned to the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RxError {
    /// The caller's buffer is too short for the received frame.
    #[error("a received frame of {0} bytes exceeds the caller's buffer")]
    TooLong(usize),
    /// The card reported a length beyond the receive buffer, or did not mark the frame's end.
    #[error("the card wrote back a malformed receive descriptor")]
    Malformed,
}
