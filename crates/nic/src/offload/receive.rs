//! Describes a frame for its receive descriptor: the headers found, the verified checksums, and the wrong ones.
//! Datasheet 7.1.10 and 7.1.5 have packet type, extended status and errors. Without RXCSUM.PCSD it also sums up the
//! packet, or the payload of a UDP fragment, in the place of the RSS hash.
//!
//! LinkSec is not implemented.

use i82576::bits::rxcsum::{CRCOFL, IPOFL, IPPCSE, PCSD, PCSS_MASK, TUOFL};
use i82576::descriptor::rx::{packet_type as kind, status};
use offload::checksum::PartialChecksum;
use offload::headers::{FrameHeaders, NetworkHeaderKind, TransportHeaderKind, protocol};
use offload::verify;
use plane::bytes::be16;
use plane::frame::TrustedChecksum;

/// Fields of a receive descriptor that depend on the frame's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FrameContentFields {
    /// Bits of the packet type in the receive descriptor (`rx::packet_type`): the headers found in the frame.
    pub packet_type: u16,
    /// Bits of the status in the receive descriptor (`rx::status`): the frame's checksum results.
    pub status: u32,
}

/// Returns the descriptor fields of a frame, as RXCSUM selects them. The headers were parsed from the same bytes. A
/// transport checksum that the sending card has inserted (`sealed`) is not computed again.
#[must_use]
#[inline]
pub(crate) fn classify(
    frame: &[u8],
    headers: &FrameHeaders,
    rxcsum: u32,
    sealed: Option<TrustedChecksum>,
) -> FrameContentFields {
    let mut status = 0;
    if rxcsum & IPOFL != 0
        && let Some(good) = verify::network(frame, headers)
    {
        status |= status::IPCS | if good { 0 } else { status::IPE };
    }
    let asked = if headers.l4 == TransportHeaderKind::Sctp { CRCOFL } else { TUOFL };
    if rxcsum & asked != 0
        && let Some(good) = verify::transport(frame, headers, sealed)
    {
        status |= status::L4CS | if good { 0 } else { status::L4E };
        status |= if headers.l4 == TransportHeaderKind::Udp { status::UDPCS } else { 0 };
    }
    FrameContentFields { packet_type: packet_type(headers), status }
}

/// Returns the packet checksum: the sum of the frame, as it is delivered, from RXCSUM.PCSS on. `None` if RXCSUM does
/// not select it.
#[must_use]
#[inline]
pub(crate) fn packet_sum(frame: &[u8], rxcsum: u32) -> Option<u16> {
    if rxcsum & (PCSD | IPPCSE) != 0 {
        return None;
    }
    let summed = frame.get((rxcsum & PCSS_MASK) as usize..).unwrap_or_default();
    Some(PartialChecksum::of(summed).value())
}

/// Descriptor fields of an IPv4 packet in the place of the RSS hash: identification, and a fragment's sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FragmentFields {
    /// Identification field of the IPv4 packet.
    pub identification: u16,
    /// Sum of the packet's payload, if the packet is a fragment of a UDP datagram and RXCSUM.IPPCSE is set.
    pub sum: u16,
    /// Status bits for the descriptor of the packet, as in `rx::status`.
    pub status: u32,
}

/// Returns the descriptor fields that an IPv4 packet has in the place of the RSS hash. The sums of all fragments of a
/// datagram and of its pseudo header add up to 0xffff, if the first fragment says that the datagram has a checksum.
#[must_use]
pub(crate) fn fragment(frame: &[u8], headers: &FrameHeaders, rxcsum: u32) -> FragmentFields {
    let packet = frame.get(headers.l3_offset..).unwrap_or_default();
    let identification = if headers.l3 == NetworkHeaderKind::Ipv4 { be16(packet, 4).unwrap_or(0) } else { 0 };
    let plain = FragmentFields { identification, ..FragmentFields::default() };
    let udp = packet.get(9) == Some(&protocol::UDP);
    let payload = frame.get(headers.l3_offset + headers.l3_length..headers.l3_end.unwrap_or(0));
    let Some(payload) = payload
        .filter(|_| rxcsum & IPPCSE != 0 && headers.l3 == NetworkHeaderKind::Ipv4 && headers.fragment && udp)
    else {
        return plain;
    };
    let first = be16(packet, 6).is_some_and(|field| field & 0x1fff == 0);
    let summed = first && be16(payload, 6).is_some_and(|checksum| checksum != 0);
    let status = status::UDPCS | if summed { status::UDPV } else { 0 };
    FragmentFields { sum: PartialChecksum::of(payload).value(), status, ..plain }
}

fn packet_type(headers: &FrameHeaders) -> u16 {
    let network = match (headers.l3, headers.extended) {
        (NetworkHeaderKind::None, _) => 0,
        (NetworkHeaderKind::Ipv4, false) => kind::IPV4,
        (NetworkHeaderKind::Ipv4, true) => kind::IPV4 | kind::IPV4_OPTIONS,
        (NetworkHeaderKind::Ipv6, false) => kind::IPV6,
        (NetworkHeaderKind::Ipv6, true) => kind::IPV6 | kind::IPV6_EXTENSIONS,
    };
    network
        | match headers.l4 {
            TransportHeaderKind::None => 0,
            TransportHeaderKind::Tcp => kind::TCP,
            TransportHeaderKind::Udp => kind::UDP,
            TransportHeaderKind::Sctp => kind::SCTP,
        }
}
