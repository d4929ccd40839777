//! Description of a packet's headers by its sender, and the sender's checksum requests. The card trusts the
//! description and not the packet, as silicon does; it only refuses to access bytes outside the packet. The
//! descriptors that carry a request belong to the card's family.

use crate::headers::{ETHERNET_HEADER, IPV4_HEADER};
use crate::plain::InsertedChecksums;
use plane::frame::TransportProtocol;

/// Description of a packet by its sender, and its checksum requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffloadRequest {
    /// Number of bytes before the packet's IP header.
    pub mac_length: usize,
    /// Number of bytes of the packet's IP header, options or extensions included.
    pub ip_length: usize,
    /// Number of bytes of the transport header, options included. It counts only for a packet that is segmented.
    pub l4_length: usize,
    /// True if the packet has an IPv4 header, false for IPv6.
    pub ipv4: bool,
    /// Transport of the packet; `None` if the card does not know it.
    pub l4: Option<TransportProtocol>,
    /// True to insert the checksum of the IPv4 header.
    pub ip_checksum: bool,
    /// True to insert the checksum of the packet's transport.
    pub l4_checksum: bool,
    /// True if the sum of the pseudo header that the sender left in the checksum field includes the length, as virtio drivers
    /// do. It counts only for a packet that is segmented.
    pub seed_has_length: bool,
}

impl OffloadRequest {
    /// Returns the offset of the packet's transport header.
    #[must_use]
    #[inline]
    pub fn l4_start(&self) -> usize {
        self.mac_length + self.ip_length
    }

    /// Returns the offset of the packet's payload.
    #[must_use]
    #[inline]
    pub fn payload_start(&self) -> usize {
        self.l4_start() + self.l4_length
    }

    /// Returns the checksums to insert if the request describes TCP or UDP in IPv4 without options, behind an Ethernet header
    /// without tags; `None` for every other request, and if no checksum of the transport is to be inserted.
    #[must_use]
    #[inline]
    pub fn plain(&self) -> Option<InsertedChecksums> {
        let lengths = (self.mac_length, self.ip_length) == (ETHERNET_HEADER, IPV4_HEADER);
        let udp = match self.l4? {
            TransportProtocol::Tcp => false,
            TransportProtocol::Udp => true,
            TransportProtocol::Sctp => return None,
        };
        (lengths && self.ipv4 && self.l4_checksum)
            .then_some(InsertedChecksums { udp, network: self.ip_checksum })
    }
}
