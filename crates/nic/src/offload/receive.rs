//! What the receive descriptor says of a frame: the headers found, and which checksums were looked at and are
//! wrong (datasheet 7.1.10 and 7.1.5: packet type, extended status and errors). Without RXCSUM.PCSD it also sums
//! up the packet, or the payload of a UDP fragment, in the place of the RSS hash.
//!
//! Left out: LinkSec.

use super::be16;
use super::checksum::Sum;
use super::crc::crc32c;
use super::headers::{Headers, L3, L4, protocol};
use super::transmit::Sealed;
use i82576::bits::rxcsum::{CRCOFL, IPOFL, IPPCSE, PCSD, PCSS_MASK, TUOFL};
use i82576::descriptor::rx::{packet_type as kind, status};
use i82576::descriptor::tx;

/// The part of a receive write-back that depends on the frame's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Receive {
    /// Headers found: bits of `rx::packet_type`.
    pub packet_type: u16,
    /// Checksum bits of `rx::status`.
    pub status: u32,
}

/// Classifies a frame whose headers were parsed from the same bytes, as RXCSUM asks. What the card itself has
/// `sealed` needs no second look at the payload.
#[must_use]
#[inline]
pub fn classify(frame: &[u8], headers: &Headers, rxcsum: u32, sealed: Option<Sealed>) -> Receive {
    let mut status = 0;
    if rxcsum & IPOFL != 0 && headers.l3 == L3::Ipv4 {
        let header = frame.get(headers.l3_offset..headers.l3_offset + headers.l3_length).unwrap_or_default();
        status |= status::IPCS | if sum_of_header(header).checksum() == 0 { 0 } else { status::IPE };
    }
    if let Some(good) = transport(frame, headers, rxcsum, sealed) {
        status |= status::L4CS | if good { 0 } else { status::L4E };
        status |= if headers.l4 == L4::Udp { status::UDPCS } else { 0 };
    }
    Receive { packet_type: packet_type(headers), status }
}

/// The sum of an IPv4 header, without a loop for the length that nearly all have.
#[inline]
fn sum_of_header(header: &[u8]) -> Sum {
    match header.as_array::<20>() {
        Some(plain) => Sum::of(plain),
        None => Sum::of(header),
    }
}

/// The packet checksum: the sum of the frame, as it is delivered, from RXCSUM.PCSS on. `None` if RXCSUM does not
/// ask for it.
#[must_use]
#[inline]
pub fn packet_sum(frame: &[u8], rxcsum: u32) -> Option<u16> {
    if rxcsum & (PCSD | IPPCSE) != 0 {
        return None;
    }
    let summed = frame.get((rxcsum & PCSS_MASK) as usize..).unwrap_or_default();
    Some(Sum::of(summed).value())
}

/// What a descriptor says of an IPv4 packet in the place of the RSS hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fragment {
    /// Its identification.
    pub identification: u16,
    /// The sum of its payload, if it is a fragment of a UDP datagram and RXCSUM.IPPCSE is set.
    pub sum: u16,
    /// Status bits of `rx::status`.
    pub status: u32,
}

/// Looks at a packet as a fragment. All fragments of a datagram and its pseudo header sum up to 0xffff, if the
/// first says that it has a checksum.
#[must_use]
pub fn fragment(frame: &[u8], headers: &Headers, rxcsum: u32) -> Fragment {
    let packet = frame.get(headers.l3_offset..).unwrap_or_default();
    let identification = if headers.l3 == L3::Ipv4 { be16(packet, 4).unwrap_or(0) } else { 0 };
    let plain = Fragment { identification, ..Fragment::default() };
    let udp = packet.get(9) == Some(&protocol::UDP);
    let payload = frame.get(headers.l3_offset + headers.l3_length..headers.l3_end.unwrap_or(0));
    let Some(payload) =
        payload.filter(|_| rxcsum & IPPCSE != 0 && headers.l3 == L3::Ipv4 && headers.fragment && udp)
    else {
        return plain;
    };
    let first = be16(packet, 6).is_some_and(|field| field & 0x1fff == 0);
    let summed = first && be16(payload, 6).is_some_and(|checksum| checksum != 0);
    let status = status::UDPCS | if summed { status::UDPV } else { 0 };
    Fragment { sum: Sum::of(payload).value(), status, ..plain }
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
/// is no known transport, the frame does not hold what the lengths say, UDP was sent without a checksum, or the
/// packet has other ends than its addresses (datasheet, table of supported receive checksums).
fn transport(frame: &[u8], headers: &Headers, rxcsum: u32, sealed: Option<Sealed>) -> Option<bool> {
    if headers.is_readdressed() {
        return None;
    }
    let segment = frame.get(headers.l4_offset..headers.l3_end?)?;
    let whole = headers.l4_offset..headers.l3_end?;
    // Only if the card summed up just this, as just this.
    let vouched =
        |l4, length| sealed.filter(|s| (s.start..s.end) == whole && s.l4 == l4 && segment.len() == length);
    match headers.l4 {
        L4::Tcp if rxcsum & TUOFL != 0 => {
            let vouched = vouched(tx::L4::Tcp, segment.len());
            Some(is_right(&pseudo(frame, headers, segment.len(), protocol::TCP), segment, vouched))
        }
        L4::Udp if rxcsum & TUOFL != 0 => {
            let datagram = segment.get(..usize::from(be16(segment, 4)?)).filter(|d| d.len() >= 8)?;
            let vouched = vouched(tx::L4::Udp, datagram.len());
            let pseudo = pseudo(frame, headers, datagram.len(), protocol::UDP);
            (be16(datagram, 6)? != 0).then(|| is_right(&pseudo, datagram, vouched))
        }
        L4::Sctp if rxcsum & CRCOFL != 0 => {
            let (before, rest) = segment.split_at_checked(8)?;
            let (sent, after) = rest.split_first_chunk::<4>()?;
            let vouched = vouched(tx::L4::Sctp, segment.len()).is_some();
            Some(vouched || crc32c(&[before, &[0; 4], after]) == u32::from_le_bytes(*sent))
        }
        _ => None,
    }
}

/// The sum of the pseudo header.
fn pseudo(frame: &[u8], headers: &Headers, length: usize, protocol: u8) -> Sum {
    let packet = frame.get(headers.l3_offset..).unwrap_or_default();
    let addresses = match headers.l3 {
        L3::Ipv4 => Sum::of(&part::<8>(packet, 12)),
        _ => Sum::of(&part::<32>(packet, 8)),
    };
    addresses.number(protocol.into()).number(length as u32)
}

/// Bytes of a packet that is known to hold them.
#[inline]
fn part<const N: usize>(packet: &[u8], at: usize) -> [u8; N] {
    packet.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// Whether pseudo header and segment sum up to ones. The card's own checksum makes them do so exactly if its
/// seed was the pseudo header's sum, of which zero has two forms.
fn is_right(pseudo: &Sum, segment: &[u8], vouched: Option<Sealed>) -> bool {
    match vouched {
        Some(sealed) => pseudo.value() % 0xffff == sealed.seed % 0xffff,
        None => pseudo.bytes(segment).checksum() == 0,
    }
}
