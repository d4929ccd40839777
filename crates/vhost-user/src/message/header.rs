//! Message header: the first 12 bytes of every message ("Header" in the specification).

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const VERSION_MASK: u32 = 0x3;
const VERSION: u32 = 1;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;

/// Header of a vhost-user message. `size` does not include the header itself.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct MessageHeader {
    /// Number of the request, repeated in the reply.
    pub request: U32,
    /// Flags of the message: bits 0-1 are the version, bit 2 marks a reply, and bit 3 requests an acknowledgement.
    pub flags: U32,
    /// Number of bytes after the message header.
    pub size: U32,
}

impl MessageHeader {
    /// Bytes of a vhost-user message header.
    pub const LEN: usize = size_of::<Self>();

    /// Creates the header of a request with a body of `body` bytes.
    pub fn request(number: u32, body: usize, need_reply: bool) -> Self {
        let flags = VERSION | if need_reply { NEED_REPLY } else { 0 };
        // Bodies are bounded by `MAX_BODY`.
        Self { request: U32::new(number), flags: U32::new(flags), size: U32::new(body as u32) }
    }

    /// Creates the header of the reply to `self` with a body of `body` bytes. Clears the flag that requests an
    /// acknowledgement, because QEMU compares all flags of a reply.
    pub fn reply(&self, body: usize) -> Self {
        Self { request: self.request, flags: U32::new(VERSION | REPLY), size: U32::new(body as u32) }
    }

    /// Checks that the header's flags state version 1 of the protocol.
    ///
    /// # Errors
    /// The unsupported version.
    pub fn check_version(&self) -> Result<(), u32> {
        let version = self.flags.get() & VERSION_MASK;
        if version == VERSION { Ok(()) } else { Err(version) }
    }

    /// Returns true if the message is a reply.
    pub fn is_reply(&self) -> bool {
        self.flags.get() & REPLY != 0
    }

    /// Returns true if the front end waits for an acknowledgement (if `REPLY_ACK` is negotiated).
    pub fn needs_reply(&self) -> bool {
        self.flags.get() & NEED_REPLY != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vhost_user_header_layout_matches_the_specification() {
        let header = MessageHeader::request(5, 264, true);
        assert_eq!(header.as_bytes(), [5, 0, 0, 0, 9, 0, 0, 0, 8, 1, 0, 0]);
        assert_eq!((header.check_version(), header.is_reply(), header.needs_reply()), (Ok(()), false, true));
    }

    #[test]
    fn reply_header_has_version_and_reply_bit_only() {
        let reply = MessageHeader::request(5, 264, true).reply(8);
        assert_eq!(reply.as_bytes(), [5, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0]);
        assert!(reply.is_reply() && !reply.needs_reply());
    }

    #[test]
    fn header_version_other_than_1_is_an_error() {
        for version in [0, 2, 3] {
            let header = MessageHeader { flags: U32::new(version), ..MessageHeader::default() };
            assert_eq!(header.check_version(), Err(version));
        }
    }
}
