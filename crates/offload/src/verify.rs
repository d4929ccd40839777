//! Checks the checksums of a received frame. The card decides whether to check and how its descriptor reports the
//! result.

use core::ops::Range;

use crate::checksum::PartialChecksum;
use crate::crc::crc32c;
use crate::headers::{
    FrameHeaders, IPV4_HEADER, NetworkHeaderKind, SCTP_CHECKSUM, TCP_CHECKSUM, TransportHeaderKind,
    UDP_CHECKSUM, UDP_HEADER, protocol,
};
use crate::narrow::length32;
use plane::bytes::be16;
use plane::frame::{TransportProtocol, TrustedChecksum};

/// Returns true if the checksum of a frame's IPv4 header is right, or `None` without such a header. The headers must be
/// parsed from the same bytes.
#[must_use]
#[inline]
pub fn network(frame: &[u8], headers: &FrameHeaders) -> Option<bool> {
    if headers.l3 != NetworkHeaderKind::Ipv4 {
        return None;
    }
    let header = frame.get(headers.l3_offset..headers.l3_offset + headers.l3_length).unwrap_or_default();
    Some(sum_of_header(header).checksum() == 0)
}

/// Returns the sum of an IPv4 header; computed without a loop for the length that nearly all headers have.
#[inline]
fn sum_of_header(header: &[u8]) -> PartialChecksum {
    match header.as_array::<IPV4_HEADER>() {
        Some(plain) => PartialChecksum::of(plain),
        None => PartialChecksum::of(header),
    }
}

/// Returns true if a frame's transport checksum is right, or `None` if it cannot be checked: the transport is unknown,
/// the frame is shorter than its lengths, UDP has no checksum, or the packet's endpoints differ from its addresses. A
/// payload whose checksum is trusted (`sealed`) is not summed up again.
#[must_use]
#[inline]
pub fn transport(frame: &[u8], headers: &FrameHeaders, sealed: Option<TrustedChecksum>) -> Option<bool> {
    if headers.is_readdressed() {
        return None;
    }
    let segment = frame.get(headers.l4_offset..headers.l3_end?)?;
    let whole = headers.l4_offset..headers.l3_end?;
    // The seal counts only for exactly these bytes and this transport.
    let seal = |transport, length| {
        sealed.filter(|s| (s.start..s.end) == whole && s.transport == transport && segment.len() == length)
    };
    match headers.l4 {
        TransportHeaderKind::None => None,
        TransportHeaderKind::Tcp => {
            let seal = seal(TransportProtocol::Tcp, segment.len());
            Some(is_right(&pseudo(frame, headers, segment.len(), protocol::TCP), segment, seal))
        }
        TransportHeaderKind::Udp => {
            let datagram = segment.get(..usize::from(be16(segment, 4)?)).filter(|d| d.len() >= UDP_HEADER)?;
            let seal = seal(TransportProtocol::Udp, datagram.len());
            let pseudo = pseudo(frame, headers, datagram.len(), protocol::UDP);
            (be16(datagram, UDP_CHECKSUM)? != 0).then(|| is_right(&pseudo, datagram, seal))
        }
        TransportHeaderKind::Sctp => {
            let (before, rest) = segment.split_at_checked(SCTP_CHECKSUM)?;
            let (sent, after) = rest.split_first_chunk::<4>()?;
            let seal = seal(TransportProtocol::Sctp, segment.len()).is_some();
            Some(seal || crc32c(&[before, &[0; 4], after]) == u32::from_le_bytes(*sent))
        }
    }
}

/// Finds the missing TCP or UDP checksum of a frame whose sender has left it to a card: the field has the sum of
/// the pseudo header, as Linux leaves it. Returns the range of the bytes to sum, and the offset of the field in the
/// frame. A right checksum may look so too, once in 65,536 frames; inserting it again then changes nothing. `None`
/// for all other frames.
#[must_use]
pub fn unfinished(frame: &[u8]) -> Option<(Range<usize>, usize)> {
    let headers = FrameHeaders::parse(frame);
    if headers.is_readdressed() {
        return None;
    }
    let segment = frame.get(headers.l4_offset..headers.l3_end?)?;
    let (length, place, protocol) = match headers.l4 {
        TransportHeaderKind::Tcp => (segment.len(), TCP_CHECKSUM, protocol::TCP),
        TransportHeaderKind::Udp => (be16(segment, 4)?.into(), UDP_CHECKSUM, protocol::UDP),
        TransportHeaderKind::Sctp | TransportHeaderKind::None => return None,
    };
    let sent = be16(segment.get(..length)?, place)?;
    let sum = pseudo(frame, &headers, length, protocol).value();
    let start = headers.l4_offset;
    // Zero has two forms, and for UDP one of them means "no checksum".
    (sent != 0 && sent % 0xffff == sum % 0xffff).then_some((start..start + length, start + place))
}

/// Returns true if a trusted checksum is right, given the sum of the pseudo header. The summed bytes sum up to ones
/// exactly if the seed was the pseudo header's sum. A sum of zero has two forms.
#[must_use]
#[inline]
pub(crate) fn is_seal_right(sealed: &TrustedChecksum, pseudo: PartialChecksum) -> bool {
    pseudo.value() % 0xffff == sealed.seed % 0xffff
}

/// Returns the sum of the frame's pseudo header.
fn pseudo(frame: &[u8], headers: &FrameHeaders, length: usize, protocol: u8) -> PartialChecksum {
    let packet = frame.get(headers.l3_offset..).unwrap_or_default();
    let addresses = match headers.l3 {
        NetworkHeaderKind::Ipv4 => PartialChecksum::of(&part::<8>(packet, 12)),
        _ => PartialChecksum::of(&part::<32>(packet, 8)),
    };
    addresses.number(protocol.into()).number(length32(length))
}

/// Returns `N` bytes of a packet from an offset on, or zeros if the packet ends before.
#[inline]
fn part<const N: usize>(packet: &[u8], at: usize) -> [u8; N] {
    packet.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// Returns true if pseudo header and segment sum up to ones, as with a right checksum.
fn is_right(pseudo: &PartialChecksum, segment: &[u8], seal: Option<TrustedChecksum>) -> bool {
    match seal {
        Some(sealed) => is_seal_right(&sealed, *pseudo),
        None => pseudo.bytes(segment).checksum() == 0,
    }
}
