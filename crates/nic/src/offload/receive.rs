//! What the receive descriptor says of a frame: the headers found, and which checksums were looked at and are
//! wrong (datasheet 7.1.10 and 7.1.5: packet type, extended status and errors).
//!
//! Left out: the packet checksum and fragment checksum of RXCSUM.PCSD = 0, and with them UDPV.

use super::be16;
use super::checksum::Sum;
use super::crc32c::crc32c;
use super::headers::{Headers, L3, L4, protocol};
use i82576::bits::rxcsum::{IPOFL, TUOFL};
use i82576::descriptor::rx::{packet_type as kind, status};

/// RXCSUM: SCTP checksum offload.
const CRCOFL: u32 = 1 << 11;

/// The part of a receive write-back that depends on the frame's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Receive {
    /// Headers found: bits of `rx::packet_type`.
    pub packet_type: u16,
    /// Checksum bits of `rx::status`.
    pub status: u32,
}

/// Classifies a frame whose headers were parsed from the same bytes, as RXCSUM asks.
#[must_use]
pub fn classify(frame: &[u8], headers: &Headers, rxcsum: u32) -> Receive {
    let mut status = 0;
    if rxcsum & IPOFL != 0 && headers.l3 == L3::Ipv4 {
        let header = frame.get(headers.l3_offset..headers.l3_offset + headers.l3_length).unwrap_or_default();
        status |= status::IPCS | if Sum::of(header).checksum() == 0 { 0 } else { status::IPE };
    }
    if let Some(good) = transport(frame, headers, rxcsum) {
        status |= status::L4CS | if good { 0 } else { status::L4E };
        status |= if headers.l4 == L4::Udp { status::UDPCS } else { 0 };
    }
    Receive { packet_type: packet_type(headers), status }
}

fn packet_type(headers: &Headers) -> u16 {
    let network = match (headers.l3, headers.extended) {
        (L3::None, _) => 0,
        (L3::Ipv4, false) => kind::IPV4,
        (L3::Ipv4, true) => kind::IPV4 | kind::IPV4_OPTIONS,
        (L3::Ipv6, false) => kind::IPV6,
        (L3::Ipv6, true) => kind::IPV6 | kind::IPV6_EXTENSIONS,
    };
    network
        | match headers.l4 {
            L4::None => 0,
            L4::Tcp => kind::TCP,
            L4::Udp => kind::UDP,
            L4::Sctp => kind::SCTP,
        }
}

/// Whether the transport checksum is right; `None` if the card does not look at it: it is not asked to, there
/// is no known transport, the frame does not hold what the lengths say, or UDP was sent without a checksum.
fn transport(frame: &[u8], headers: &Headers, rxcsum: u32) -> Option<bool> {
    let segment = frame.get(headers.l4_offset..headers.l3_end?)?;
    match headers.l4 {
        L4::Tcp if rxcsum & TUOFL != 0 => Some(sums_to_zero(frame, headers, segment, protocol::TCP)),
        L4::Udp if rxcsum & TUOFL != 0 => {
            let datagram = segment.get(..usize::from(be16(segment, 4)?)).filter(|d| d.len() >= 8)?;
            (be16(datagram, 6)? != 0).then(|| sums_to_zero(frame, headers, datagram, protocol::UDP))
        }
        L4::Sctp if rxcsum & CRCOFL != 0 => {
            let (before, rest) = segment.split_at_checked(8)?;
            let (sent, after) = rest.split_first_chunk::<4>()?;
            Some(crc32c(&[before, &[0; 4], after]) == u32::from_le_bytes(*sent))
        }
        _ => None,
    }
}

fn sums_to_zero(frame: &[u8], headers: &Headers, segment: &[u8], protocol: u8) -> bool {
    let addresses = match headers.l3 {
        L3::Ipv4 => 12..20,
        _ => 8..40,
    };
    let addresses = frame.get(headers.l3_offset + addresses.start..headers.l3_offset + addresses.end);
    let pseudo = Sum::of(addresses.unwrap_or_default()).number(protocol.into()).number(segment.len() as u32);
    pseudo.bytes(segment).checksum() == 0
}
