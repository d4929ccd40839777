//! Says whether the checksums of a received frame are right. Left out: whether anybody asks, and how a descriptor says it.

use core::ops::Range;

use crate::checksum::Sum;
use crate::crc::crc32c;
use crate::headers::{
    Headers, IPV4_HEADER, L3, L4, SCTP_CHECKSUM, TCP_CHECKSUM, UDP_CHECKSUM, UDP_HEADER, protocol,
};
use plane::bytes::be16;
use plane::frame::{Sealed, Transport};

/// Whether the checksum of the IPv4 header is right; `None` if there is no such header. The headers were parsed from the
/// same bytes.
#[must_use]
#[inline]
pub fn network(frame: &[u8], headers: &Headers) -> Option<bool> {
    if headers.l3 != L3::Ipv4 {
        return None;
    }
    let header = frame.get(headers.l3_offset..headers.l3_offset + headers.l3_length).unwrap_or_default();
    Some(sum_of_header(header).checksum() == 0)
}

/// The sum of an IPv4 header, without a loop for the length that nearly all have.
#[inline]
fn sum_of_header(header: &[u8]) -> Sum {
    match header.as_array::<IPV4_HEADER>() {
        Some(plain) => Sum::of(plain),
        None => Sum::of(header),
    }
}

/// Whether the transport checksum is right; `None` if it cannot be told: there is no known transport, the frame does not
/// hold what the lengths say, UDP was sent without a checksum, or the packet has other ends than its addresses. What was
/// `sealed` on the plane needs no second look at the payload.
#[must_use]
#[inline]
pub fn transport(frame: &[u8], headers: &Headers, sealed: Option<Sealed>) -> Option<bool> {
    if headers.is_readdressed() {
        return None;
    }
    let segment = frame.get(headers.l4_offset..headers.l3_end?)?;
    let whole = headers.l4_offset..headers.l3_end?;
    // Only if just this was summed up, as just this.
    let vouched = |transport, length| {
        sealed.filter(|s| (s.start..s.end) == whole && s.transport == transport && segment.len() == length)
    };
    match headers.l4 {
        L4::None => None,
        L4::Tcp => {
            let vouched = vouched(Transport::Tcp, segment.len());
            Some(is_right(&pseudo(frame, headers, segment.len(), protocol::TCP), segment, vouched))
        }
        L4::Udp => {
            let datagram = segment.get(..usize::from(be16(segment, 4)?)).filter(|d| d.len() >= UDP_HEADER)?;
            let vouched = vouched(Transport::Udp, datagram.len());
            let pseudo = pseudo(frame, headers, datagram.len(), protocol::UDP);
            (be16(datagram, UDP_CHECKSUM)? != 0).then(|| is_right(&pseudo, datagram, vouched))
        }
        L4::Sctp => {
            let (before, rest) = segment.split_at_checked(SCTP_CHECKSUM)?;
            let (sent, after) = rest.split_first_chunk::<4>()?;
            let vouched = vouched(Transport::Sctp, segment.len()).is_some();
            Some(vouched || crc32c(&[before, &[0; 4], after]) == u32::from_le_bytes(*sent))
        }
    }
}

/// Where a frame lacks its TCP or UDP checksum, which its sender has left to a card: the place has the sum of the pseudo header, as
/// Linux leaves it. Answers the bytes that the checksum is of, and where in the frame it belongs. A right checksum may look
/// so too, once in 65,536 frames; putting it in again then changes nothing. `None` of all else.
#[must_use]
pub fn unfinished(frame: &[u8]) -> Option<(Range<usize>, usize)> {
    let headers = Headers::parse(frame);
    if headers.is_readdressed() {
        return None;
    }
    let segment = frame.get(headers.l4_offset..headers.l3_end?)?;
    let (length, place, protocol) = match headers.l4 {
        L4::Tcp => (segment.len(), TCP_CHECKSUM, protocol::TCP),
        L4::Udp => (be16(segment, 4)?.into(), UDP_CHECKSUM, protocol::UDP),
        L4::Sctp | L4::None => return None,
    };
    let sent = be16(segment.get(..length)?, place)?;
    let sum = pseudo(frame, &headers, length, protocol).value();
    let start = headers.l4_offset;
    // Zero has two forms, and of UDP one of them says that there is no checksum.
    (sent != 0 && sent % 0xffff == sum % 0xffff).then_some((start..start + length, start + place))
}

/// Whether a checksum that was sealed is right, given the sum of the pseudo header. The seal makes it all sum up to ones
/// exactly if its seed was that sum, of which zero has two forms.
#[must_use]
#[inline]
pub(crate) fn is_seal_right(sealed: &Sealed, pseudo: Sum) -> bool {
    pseudo.value() % 0xffff == sealed.seed % 0xffff
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

/// Whether pseudo header and segment sum up to ones.
fn is_right(pseudo: &Sum, segment: &[u8], vouched: Option<Sealed>) -> bool {
    match vouched {
        Some(sealed) => is_seal_right(&sealed, *pseudo),
        None => pseudo.bytes(segment).checksum() == 0,
    }
}
