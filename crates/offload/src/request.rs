//! What a sender says of the headers of its packet, and which checksums it asks for. The card believes it and not the
//! packet, as silicon does; it only refuses to leave the packet. Left out: how a descriptor says so.

use plane::frame::Transport;

/// A packet by its sender's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// Bytes before the IP header.
    pub mac_length: usize,
    /// Bytes of the IP header, options or extensions included.
    pub ip_length: usize,
    /// Bytes of the transport header, options included. Counts only where a packet is cut.
    pub l4_length: usize,
    /// The IP header is version 4's, else version 6's.
    pub ipv4: bool,
    /// The transport; `None` if it is none that the card knows.
    pub l4: Option<Transport>,
    /// Insert the checksum of the IPv4 header.
    pub ip_checksum: bool,
    /// Insert the transport's.
    pub l4_checksum: bool,
}

impl Request {
    /// Where the transport header starts.
    #[must_use]
    #[inline]
    pub fn l4_start(&self) -> usize {
        self.mac_length + self.ip_length
    }

    /// Where the payload starts.
    #[must_use]
    #[inline]
    pub fn payload_start(&self) -> usize {
        self.l4_start() + self.l4_length
    }
}
