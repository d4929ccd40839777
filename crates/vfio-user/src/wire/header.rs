//! The 16 bytes in front of every message (specification, "Header").

use core::mem::size_of;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Command, Errno};

const TYPE_MASK: u32 = 0xf;
const TYPE_COMMAND: u32 = 0;
const TYPE_REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

/// What the type bits of a header say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A request.
    Command,
    /// An answer.
    Reply,
    /// A value the specification does not define.
    Unknown,
}

/// Message header. `size` counts the header itself.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Chosen by the sender of the command, echoed in the reply; means nothing to the receiver.
    pub id: U16,
    /// Command number.
    pub command: U16,
    /// Bytes of the whole message.
    pub size: U32,
    /// Type in bits 0-3, bit 4 no reply wanted, bit 5 error.
    pub flags: U32,
    /// Error number of an error reply.
    pub error: U32,
}

impl Header {
    /// Bytes of a header.
    pub const LEN: usize = size_of::<Self>();

    /// The header of a request with `body` bytes after it.
    pub fn request(id: u16, command: Command, body: usize, no_reply: bool) -> Self {
        let flags = TYPE_COMMAND | if no_reply { NO_REPLY } else { 0 };
        Self::with_flags(U16::new(id), U16::new(command.number()), body, flags)
    }

    /// The header of the reply to `self` with `body` bytes after it.
    pub fn reply(&self, body: usize) -> Self {
        Self::with_flags(self.id, self.command, body, TYPE_REPLY)
    }

    /// The error reply to `self`: a header and nothing else.
    pub fn error_reply(&self, errno: Errno) -> Self {
        let mut header = Self::with_flags(self.id, self.command, 0, TYPE_REPLY | ERROR);
        header.error = U32::new(errno.to_wire());
        header
    }

    fn with_flags(id: U16, command: U16, body: usize, flags: u32) -> Self {
        // Bodies are bounded by `MAX_DATA_XFER` and a few bytes: the sum is far below 2^32.
        let size = U32::new((Self::LEN + body) as u32);
        Self { id, command, size, flags: U32::new(flags), error: U32::ZERO }
    }

    /// Command or reply.
    pub fn kind(&self) -> Kind {
        match self.flags.get() & TYPE_MASK {
            TYPE_COMMAND => Kind::Command,
            TYPE_REPLY => Kind::Reply,
            _ => Kind::Unknown,
        }
    }

    /// The sender of this command wants no answer, not even an error.
    pub fn no_reply(&self) -> bool {
        self.flags.get() & NO_REPLY != 0
    }

    /// The error bit, valid in replies only.
    pub fn is_error(&self) -> bool {
        self.flags.get() & ERROR != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_is_the_specifications() {
        let header = Header::request(0x1234, Command::RegionWrite, 20, true);
        assert_eq!(header.as_bytes(), [0x34, 0x12, 10, 0, 36, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn error_reply_is_a_reply_with_the_error_bit_and_a_number() {
        let request = Header::request(7, Command::DmaMap, 32, false);
        let reply = request.error_reply(Errno::EEXIST);
        assert_eq!(reply.as_bytes(), [7, 0, 2, 0, 16, 0, 0, 0, 0x21, 0, 0, 0, 17, 0, 0, 0]);
        assert_eq!(request.error_reply(Errno(0)).error.get(), Errno::EIO.0);
    }
}
