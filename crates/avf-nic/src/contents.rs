//! Finds packet type, checksum status and hashed bytes of a received frame, once for all VFs that get the frame. Plain
//! frames use a table instead (`plain`). The hash itself depends on the VF's key (`scaling`).
//!
//! The descriptor has one bit for checked checksums (L3L4P), and drivers apply it to both the IPv4 header and the transport. So it
//! is set only if both were checked, or if one of them is wrong.

use avf::descriptor::rx::RxChecksumResult;
use avf::packet_type::{self, IpPayloadKind, IpVersion};
use offload::headers::{FrameHeaders, NetworkHeaderKind, TYPE_ARP, TransportHeaderKind, protocol};
use offload::verify;
use plane::bytes::be16;
use plane::frame::TrustedChecksum;

/// Offset of the address pair in an IPv4 header, and the pair's length, in bytes (RFC 791, 3.1).
const ENDS_V4: (usize, usize) = (12, 8);
/// Offset of the address pair in an IPv6 header, and the pair's length, in bytes (RFC 8200, 3).
const ENDS_V6: (usize, usize) = (8, 32);
/// Number of bytes of the two ports at the start of a transport header.
const PORTS: usize = 4;

/// Properties of a frame's contents, as receive descriptors name them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameContentFields {
    packet_type: u8,
    checksums: Option<RxChecksumResult>,
    ip: Option<(IpVersion, IpPayloadKind)>,
    /// Offsets of the IP header and of the transport header in the frame, bytes. `l4` is 0 without a transport header.
    l3: u16,
    l4: u16,
}

impl FrameContentFields {
    /// Parses a frame without its VLAN tag. A transport checksum that the sending card has inserted (`sealed`) is not
    /// computed again.
    #[must_use]
    pub(crate) fn of(frame: &[u8], sealed: Option<TrustedChecksum>) -> Self {
        let headers = FrameHeaders::parse(frame);
        let version = match headers.l3 {
            NetworkHeaderKind::None => None,
            NetworkHeaderKind::Ipv4 => Some(IpVersion::V4),
            NetworkHeaderKind::Ipv6 => Some(IpVersion::V6),
        };
        let ip = version.map(|version| (version, payload(&headers)));
        let kind = headers.l3_offset.checked_sub(2).and_then(|at| be16(frame, at));
        let packet_type = match ip {
            Some((version, payload)) => packet_type::ip(version, payload),
            None if kind == Some(TYPE_ARP) => packet_type::ARP,
            None => packet_type::L2,
        };
        let network = verify::network(frame, &headers);
        let checksums = checksum_status(network, verify::transport(frame, &headers, sealed));
        Self { packet_type, checksums, ip, l3: headers.l3_offset as u16, l4: headers.l4_offset as u16 }
    }

    /// Returns the frame's packet type, see [`avf::packet_type`].
    #[must_use]
    pub(crate) fn packet_type(&self) -> u8 {
        self.packet_type
    }

    /// Returns the checksum status for the receive descriptor, or `None` if the card has checked nothing.
    #[must_use]
    pub(crate) fn checksums(&self) -> Option<RxChecksumResult> {
        self.checksums
    }

    /// Returns the bit of the frame's packet type in the enabled hash types (HENA).
    pub(crate) fn hash_type(&self) -> u64 {
        self.ip.map_or(packet_type::HASH_L2, |(version, payload)| packet_type::hash_type(version, payload))
    }

    /// Returns the bytes of a frame that RSS hashes: both addresses, and both ports if the transport has ports.
    pub(crate) fn ends<'a>(&self, frame: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let (start, length) = match self.ip {
            None => return (&[], &[]),
            Some((IpVersion::V4, _)) => ENDS_V4,
            Some((IpVersion::V6, _)) => ENDS_V6,
        };
        let part = |at: usize, length: usize| frame.get(at..at + length).unwrap_or_default();
        let ports = if self.l4 == 0 { 0 } else { PORTS };
        (part(usize::from(self.l3) + start, length), part(self.l4.into(), ports))
    }
}

/// Returns the checksum status of the descriptor. `network` and `transport` are `Some(true)` if the checksum of the
/// IPv4 header or of the transport is right, and `None` if the packet has no such checksum or the card cannot check it.
pub(crate) const fn checksum_status(
    network: Option<bool>,
    transport: Option<bool>,
) -> Option<RxChecksumResult> {
    let ip_wrong = matches!(network, Some(false));
    match transport {
        Some(right) => Some(RxChecksumResult { ip_wrong, l4_wrong: !right }),
        None if ip_wrong => Some(RxChecksumResult { ip_wrong, l4_wrong: false }),
        None => None,
    }
}

fn payload(headers: &FrameHeaders) -> IpPayloadKind {
    let icmp = matches!(
        (headers.l3, headers.protocol),
        (NetworkHeaderKind::Ipv4, protocol::ICMP) | (NetworkHeaderKind::Ipv6, protocol::ICMPV6)
    );
    match headers.l4 {
        _ if headers.fragment => IpPayloadKind::Fragment,
        TransportHeaderKind::Tcp => IpPayloadKind::Tcp,
        TransportHeaderKind::Udp => IpPayloadKind::Udp,
        TransportHeaderKind::Sctp => IpPayloadKind::Sctp,
        TransportHeaderKind::None if icmp => IpPayloadKind::Icmp,
        TransportHeaderKind::None => IpPayloadKind::Other,
    }
}
