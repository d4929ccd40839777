//! Checks the requests of a packet's header against the packet's length and the accepted features (section 5.1.6.2).
//! Offsets of the sender must lie inside the packet. The sender's header length is ignored.

use super::header::{NetHeader, flag, gso};
use crate::feature::VirtioFeatures;
use core::num::NonZeroU16;

/// Offset of the checksum in a TCP header (RFC 9293).
const TCP_CHECKSUM: u16 = 16;
/// Offset of the checksum in a UDP header (RFC 768).
const UDP_CHECKSUM: u16 = 6;

/// Transport protocol of a packet with a partial checksum, by the offset of its checksum field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialTransport {
    /// Transport protocol TCP: the checksum field is at offset 16.
    Tcp,
    /// Transport protocol UDP: the checksum field is at offset 6. A sum of zero is stored as all ones.
    Udp,
    /// Transport protocol other than TCP and UDP, whose checksum is of the same kind.
    Other,
}

/// Partial checksum that a receiver has to complete: its field is inside of the packet, and holds the pseudo header's
/// sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialChecksum {
    start: u16,
    offset: u16,
}

impl PartialChecksum {
    /// Returns the offset in the packet of the first byte that the sum includes: the transport header.
    #[must_use]
    #[inline]
    pub fn start(&self) -> usize {
        self.start.into()
    }

    /// Returns the offset in the packet of the checksum field of two bytes.
    #[must_use]
    #[inline]
    pub fn field(&self) -> usize {
        usize::from(self.start) + usize::from(self.offset)
    }

    /// Returns the transport protocol, as the offset of the checksum field in the transport header implies it.
    #[must_use]
    #[inline]
    pub fn transport(&self) -> PartialTransport {
        match self.offset {
            TCP_CHECKSUM => PartialTransport::Tcp,
            UDP_CHECKSUM => PartialTransport::Udp,
            _ => PartialTransport::Other,
        }
    }
}

/// Protocols of a packet to segment, and the method: segments, fragments or datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// Segmentation into TCP segments over IPv4.
    TcpV4,
    /// Segmentation into TCP segments over IPv6.
    TcpV6,
    /// Segmentation into IP fragments of a UDP datagram.
    UdpFragments,
    /// Segmentation into UDP datagrams over IPv4 or IPv6.
    UdpDatagrams,
}

/// Request to segment a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentationRequest {
    /// Protocols of the packet, and the method of segmentation.
    pub kind: SegmentKind,
    /// Maximum number of payload bytes in a segment.
    pub size: NonZeroU16,
    /// True if the TCP packet has a congestion mark (ECN).
    pub ecn: bool,
}

/// Checked requests of a packet's header: checksum and segmentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetOffloadRequest {
    /// Partial checksum of the packet that is to be completed.
    pub checksum: Option<PartialChecksum>,
    /// Request to segment the packet. Such a packet has a partial checksum too.
    pub segmentation: Option<SegmentationRequest>,
}

/// Reason why the header of a packet is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NetHeaderError {
    /// The packet has a partial checksum, but the feature was not negotiated.
    #[error("the packet has a partial checksum, which was not negotiated (VIRTIO_NET_F_CSUM)")]
    ChecksumNotNegotiated,
    /// The checksum field is not inside of the packet.
    #[error("the checksum field at {field} is outside of the packet of {length} bytes")]
    ChecksumOutside {
        /// Offset of the checksum field that the header states.
        field: usize,
        /// Length in bytes of the packet with the checksum.
        length: usize,
    },
    /// The type of segmentation in the header is unknown.
    #[error("unknown segmentation type {gso_type:#x}")]
    UnknownSegmentation {
        /// Type of segmentation in the header.
        gso_type: u8,
    },
    /// The driver has not negotiated the packet's type of segmentation, or congestion marks (ECN).
    #[error("segmentation type {gso_type:#x} was not negotiated")]
    SegmentationNotNegotiated {
        /// Type of segmentation in the header.
        gso_type: u8,
    },
    /// The header of a packet to segment has a segment size of 0.
    #[error("the packet's segment size is zero")]
    SegmentSize,
    /// A packet to segment requests no partial checksum, or one of another protocol than its segmentation type.
    #[error("a packet that is to be segmented needs a partial checksum of its protocol")]
    SegmentChecksum,
}

impl NetHeader {
    /// Checks the header of a packet of `length` bytes that a driver sends.
    ///
    /// # Errors
    /// [`NetHeaderError`] if a request was not negotiated, contradicts itself, or points outside of the packet.
    #[inline]
    pub fn check(
        &self,
        length: usize,
        accepted: VirtioFeatures,
    ) -> Result<NetOffloadRequest, NetHeaderError> {
        if self.is_plain() {
            return Ok(NetOffloadRequest::default());
        }
        let checksum = self.check_checksum(length, accepted)?;
        let segmentation = self.check_segmentation(accepted)?;
        // Linux drops a received packet whose checksum is not that of the protocol to be cut.
        let fits = segmentation.is_none_or(|cut| {
            let wanted = match cut.kind {
                SegmentKind::TcpV4 | SegmentKind::TcpV6 => PartialTransport::Tcp,
                SegmentKind::UdpFragments | SegmentKind::UdpDatagrams => PartialTransport::Udp,
            };
            checksum.is_some_and(|checksum| checksum.transport() == wanted)
        });
        if fits {
            Ok(NetOffloadRequest { checksum, segmentation })
        } else {
            Err(NetHeaderError::SegmentChecksum)
        }
    }

    fn check_checksum(
        &self,
        length: usize,
        accepted: VirtioFeatures,
    ) -> Result<Option<PartialChecksum>, NetHeaderError> {
        if self.flags & flag::NEEDS_CSUM == 0 {
            return Ok(None);
        }
        if !accepted.contains(VirtioFeatures::CSUM) {
            return Err(NetHeaderError::ChecksumNotNegotiated);
        }
        let checksum = PartialChecksum { start: self.checksum_start, offset: self.checksum_offset };
        if checksum.field() + 2 > length {
            return Err(NetHeaderError::ChecksumOutside { field: checksum.field(), length });
        }
        Ok(Some(checksum))
    }

    fn check_segmentation(
        &self,
        accepted: VirtioFeatures,
    ) -> Result<Option<SegmentationRequest>, NetHeaderError> {
        let gso_type = self.gso_type;
        let (kind, feature) = match gso_type & !gso::ECN {
            gso::NONE if gso_type == gso::NONE => return Ok(None),
            gso::TCPV4 => (SegmentKind::TcpV4, VirtioFeatures::HOST_TSO4),
            gso::TCPV6 => (SegmentKind::TcpV6, VirtioFeatures::HOST_TSO6),
            gso::UDP => (SegmentKind::UdpFragments, VirtioFeatures::HOST_UFO),
            gso::UDP_L4 => (SegmentKind::UdpDatagrams, VirtioFeatures::HOST_USO),
            _ => return Err(NetHeaderError::UnknownSegmentation { gso_type }),
        };
        let ecn = gso_type & gso::ECN != 0;
        let tcp = matches!(kind, SegmentKind::TcpV4 | SegmentKind::TcpV6);
        let ecn_allowed = tcp && accepted.contains(VirtioFeatures::HOST_ECN);
        if !accepted.contains(feature) || (ecn && !ecn_allowed) {
            return Err(NetHeaderError::SegmentationNotNegotiated { gso_type });
        }
        let size = NonZeroU16::new(self.gso_size).ok_or(NetHeaderError::SegmentSize)?;
        Ok(Some(SegmentationRequest { kind, size, ecn }))
    }
}

impl NetOffloadRequest {
    /// Returns true if a driver with these features can receive the packet with its partial checksum and unsegmented.
    /// If not, the device completes the checksum, or segments the packet, before the delivery.
    #[must_use]
    #[inline]
    pub fn fits_receiver(&self, accepted: VirtioFeatures) -> bool {
        use VirtioFeatures as F;
        let checksum = self.checksum.is_none() || accepted.contains(F::GUEST_CSUM);
        checksum
            && self.segmentation.is_none_or(|cut| {
                let needed = match cut.kind {
                    SegmentKind::TcpV4 => F::GUEST_TSO4,
                    SegmentKind::TcpV6 => F::GUEST_TSO6,
                    SegmentKind::UdpFragments => F::GUEST_UFO,
                    // The header does not say which version of IP the packet has.
                    SegmentKind::UdpDatagrams => F::GUEST_USO4.with(F::GUEST_USO6),
                };
                accepted.contains(if cut.ecn { needed.with(F::GUEST_ECN) } else { needed })
            })
    }

    /// Returns the header of the packet for a driver that receives it unchanged, in `buffers` receive buffers.
    /// `header_length` is the length of the packet's headers in bytes, as the device parsed them.
    #[must_use]
    pub fn received(&self, header_length: u16, buffers: u16) -> NetHeader {
        let mut header = NetHeader { buffers, ..NetHeader::default() };
        if let Some(checksum) = self.checksum {
            header.flags = flag::NEEDS_CSUM;
            (header.checksum_start, header.checksum_offset) = (checksum.start, checksum.offset);
        }
        if let Some(cut) = self.segmentation {
            let kind = match cut.kind {
                SegmentKind::TcpV4 => gso::TCPV4,
                SegmentKind::TcpV6 => gso::TCPV6,
                SegmentKind::UdpFragments => gso::UDP,
                SegmentKind::UdpDatagrams => gso::UDP_L4,
            };
            header.gso_type = kind | if cut.ecn { gso::ECN } else { 0 };
            (header.gso_size, header.header_length) = (cut.size.get(), header_length);
        }
        header
    }
}
