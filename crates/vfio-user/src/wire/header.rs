//! Message header: the first 16 bytes of every message (vfio-user specification, "Header").

use core::mem::size_of;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Command, Errno};

const TYPE_MASK: u32 = 0xf;
const TYPE_COMMAND: u32 = 0;
const TYPE_REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

/// Type of a message, as its header states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageType {
    /// Message type: a request.
    Command,
    /// Message type: a reply to a request.
    Reply,
    /// Message type that the specification does not define.
    Unknown,
}

/// Header of a vfio-user message. `size` includes the header itself.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct MessageHeader {
    /// Id that the sender of a request has chosen, repeated in the reply.
    pub id: U16,
    /// Command number of the message.
    pub command: U16,
    /// Bytes of the whole message, header included.
    pub size: U32,
    /// Flags of the message: bits 0-3 are the type, bit 4 requests no reply, and bit 5 marks an error.
    pub flags: U32,
    /// UNIX error number of an error reply.
    pub error: U32,
}

impl MessageHeader {
    /// Bytes of a vfio-user message header.
    pub const LEN: usize = size_of::<Self>();

    /// Creates the header of a request with a body of `body` bytes.
    pub(crate) fn request(id: u16, command: Command, body: usize, no_reply: bool) -> Self {
        let flags = TYPE_COMMAND | if no_reply { NO_REPLY } else { 0 };
        Self::with_flags(U16::new(id), U16::new(command.number()), body, flags)
    }

    /// Creates the header of the reply to `self` with a body of `body` bytes.
    pub(crate) fn reply(&self, body: usize) -> Self {
        Self::with_flags(self.id, self.command, body, TYPE_REPLY)
    }

    /// Creates the error reply to `self`, a header without a body.
    pub(crate) fn error_reply(&self, errno: Errno) -> Self {
        let mut header = Self::with_flags(self.id, self.command, 0, TYPE_REPLY | ERROR);
        header.error = U32::new(errno.to_wire());
        header
    }

    fn with_flags(id: U16, command: U16, body: usize, flags: u32) -> Self {
        // Bodies are bounded by `MAX_DATA_XFER` and a few bytes: the sum is far below 2^32.
        let size = U32::new((Self::LEN + body) as u32);
        Self { id, command, size, flags: U32::new(flags), error: U32::ZERO }
    }

    /// Returns the type of the message.
    pub(crate) fn kind(&self) -> MessageType {
        match self.flags.get() & TYPE_MASK {
            TYPE_COMMAND => MessageType::Command,
            TYPE_REPLY => MessageType::Reply,
            _ => MessageType::Unknown,
        }
    }

    /// Returns true if the sender of this request wants no reply, not even an error.
    pub(crate) fn no_reply(&self) -> bool {
        self.flags.get() & NO_REPLY != 0
    }

    /// Returns true if the error bit is set in the header, which only replies use.
    pub(crate) fn is_error(&self) -> bool {
        self.flags.get() & ERROR != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vfio_user_header_layout_matches_the_specification() {
        let header = MessageHeader::request(0x1234, Command::RegionWrite, 20, true);
        assert_eq!(header.as_bytes(), [0x34, 0x12, 10, 0, 36, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn error_reply_has_the_error_bit_and_an_errno() {
        let request = MessageHeader::request(7, Command::DmaMap, 32, false);
        let reply = request.error_reply(Errno::EEXIST);
        assert_eq!(reply.as_bytes(), [7, 0, 2, 0, 16, 0, 0, 0, 0x21, 0, 0, 0, 17, 0, 0, 0]);
        assert_eq!(request.error_reply(Errno(0)).error.get(), Errno::EIO.0);
    }
}
