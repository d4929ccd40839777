//! Offload requests of a packet: virtio's header after its check, and the packet's own headers where the request needs
//! them. The header length that a driver states is ignored (VIRTIO 1.2, 5.1.6.2).

use offload::checksum::PartialChecksum;
use offload::headers::{FrameHeaders, NetworkHeaderKind, TransportHeaderKind};
use offload::{OffloadRequest, insert};
use plane::frame::{TransportProtocol, TrustedChecksum};
use rings::{InvalidChecksumRequest, PacketOffloads};
use virtio::net::{NetOffloadRequest, PartialTransport};

/// Offload requests of a packet that a driver sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PacketOffloadRequest {
    /// Checksum request with the positions of the packet's headers; empty if no checksum is requested.
    request: OffloadRequest,
    /// Number of payload bytes per segment, if the packet is to be segmented.
    mss: Option<u16>,
    /// Checksum of a transport protocol that the forwarding plane does not support, such as GRE: offsets of the first
    /// summed byte and of the checksum field.
    other: Option<(usize, usize)>,
}

impl PacketOffloadRequest {
    /// Returns the offload requests of a packet, given its first bytes. Returns `None` if the packet is to be segmented
    /// and its headers do not match the request.
    pub(crate) fn of(asked: &NetOffloadRequest, head: &[u8]) -> Option<Self> {
        let Some(checksum) = asked.checksum else { return Some(Self::default()) };
        let l4 = match checksum.transport() {
            PartialTransport::Tcp => Some(TransportProtocol::Tcp),
            PartialTransport::Udp => Some(TransportProtocol::Udp),
            PartialTransport::Other => {
                return Some(Self { other: Some((checksum.start(), checksum.field())), ..Self::default() });
            }
        };
        // A checksum alone needs no header but its own place, so the bytes before it count as one header.
        let plain = OffloadRequest {
            mac_length: checksum.start(),
            l4,
            l4_checksum: true,
            ..OffloadRequest::default()
        };
        let Some(cut) = asked.segmentation else { return Some(Self { request: plain, ..Self::default() }) };
        // The header of a packet to segment requests TCP's checksum, so the packet has to start its TCP header where the sum begins.
        let starts_there =
            |request: &OffloadRequest| request.mac_length + request.ip_length == checksum.start();
        Self::segmented(head, cut.size.get()).filter(|packet| starts_there(&packet.request))
    }

    /// Returns the offload requests of a packet to cut into segments of `size` payload bytes, given its first bytes. Returns `None`
    /// if it is no TCP packet.
    pub(crate) fn segmented(head: &[u8], size: u16) -> Option<Self> {
        let headers = FrameHeaders::parse(head);
        let is_ipv4 = headers.l3 == NetworkHeaderKind::Ipv4;
        let request = OffloadRequest {
            mac_length: headers.l3_offset,
            ip_length: headers.l4_offset.checked_sub(headers.l3_offset)?,
            l4_length: headers.l4_length,
            ipv4: is_ipv4,
            ip_checksum: is_ipv4,
            l4: Some(TransportProtocol::Tcp),
            l4_checksum: true,
            seed_has_length: true,
        };
        (headers.l4 == TransportHeaderKind::Tcp).then_some(Self { request, mss: Some(size), other: None })
    }

    /// Returns true if the packet requests a checksum.
    pub(crate) fn requests_checksum(&self) -> bool {
        self.request.l4_checksum || self.other.is_some()
    }

    /// Completes the requested checksum of a whole frame. Returns the checksum as trusted if the forwarding
    /// plane supports the transport protocol.
    pub(crate) fn complete(
        &self,
        frame: &mut [u8],
    ) -> Result<Option<TrustedChecksum>, InvalidChecksumRequest> {
        match self.other {
            Some((start, field)) => {
                let sum = PartialChecksum::of(frame.get(start..).ok_or(InvalidChecksumRequest)?).checksum();
                let place = frame.get_mut(field..field + 2).ok_or(InvalidChecksumRequest)?;
                place.copy_from_slice(&sum.to_be_bytes());
                Ok(None)
            }
            None => complete(frame, &self.request),
        }
    }
}

impl PacketOffloads for PacketOffloadRequest {
    #[inline]
    fn request(&self) -> OffloadRequest {
        self.request
    }

    #[inline]
    fn mss(&self) -> Option<u16> {
        self.mss
    }
}

/// Request for the checksum of TCP or UDP in IPv4 without options, which frames of a burst may have.
pub(crate) const fn plain_request(udp: bool) -> OffloadRequest {
    let l4 = Some(if udp { TransportProtocol::Udp } else { TransportProtocol::Tcp });
    let (mac_length, ip_length) = (offload::headers::ETHERNET_HEADER, offload::headers::IPV4_HEADER);
    OffloadRequest {
        mac_length,
        ip_length,
        l4_length: 0,
        ipv4: true,
        l4,
        ip_checksum: false,
        l4_checksum: true,
        seed_has_length: false,
    }
}

/// Completes a frame's checksum of a transport protocol that the forwarding plane supports. Returns the checksum as
/// trusted.
pub(crate) fn complete(
    frame: &mut [u8],
    request: &OffloadRequest,
) -> Result<Option<TrustedChecksum>, InvalidChecksumRequest> {
    insert::insert(frame, request).map_err(|_| InvalidChecksumRequest)
}
