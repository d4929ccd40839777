//! TCP packets that cross the uplink unsegmented, because the kernel there segments them, or delivers them whole. Linux
//! expects their headers in a special form: the length of the whole packet in the network header, the pseudo header's
//! sum in the checksum field.
//!
//! UDP packets are always cut by the card: Linux accepts this form of them from few senders. The card also cuts
//! packets that differ from their sender's description.

use crate::OffloadRequest;
use crate::checksum::PartialChecksum;
use crate::headers::{
    ETHERNET_HEADER, FrameHeaders, IPV4_CHECKSUM, IPV4_HEADER, IPV6_HEADER, NetworkHeaderKind, TCP_CHECKSUM,
    TCP_HEADER, TYPE_IPV4, TYPE_IPV6, TransportHeaderKind, protocol,
};
use crate::narrow::{length16, length32};
use crate::segment::{SegmentationError, Segmenter, TcpFlagMasks};
use plane::UnsegmentedPacketLayout;
use plane::bytes::{be16, put16};
use plane::frame::TransportProtocol;

/// Maximum number of segments that one packet is cut into: 64 KB at the smallest MSS that Linux allows (48) is
/// 1,366.
pub const MAX_SEGMENTS: u32 = 2048;
/// Number of bytes in the longest IP packet.
const LONGEST: usize = 65_535;
/// Offset of the flags byte in a TCP header.
const FLAGS: usize = 13;
/// TCP flag CWR, which answers one congestion event (RFC 3168, 6.1.2): Linux must be informed of a packet with it.
const CWR: u8 = 0x80;

/// Returns the description of a transmit queue's packet, if the kernel may segment the packet: it matches its sender's
/// description, is plain TCP over IP without a tag, and `masks` are the usual ones.
#[must_use]
pub fn sent(
    packet: &[u8],
    request: &OffloadRequest,
    mss: u16,
    masks: TcpFlagMasks,
) -> Option<UnsegmentedPacketLayout> {
    let (l3, l4) = (request.mac_length, request.l4_start());
    let uncut = UnsegmentedPacketLayout { ipv4: request.ipv4, l3, l4, payload: request.payload_start(), mss };
    let sums = request.l4_checksum && (request.ip_checksum || !request.ipv4);
    let tcp = request.l4 == Some(TransportProtocol::Tcp);
    let usual = sums && tcp && masks == TcpFlagMasks::DEFAULT && l3 == ETHERNET_HEADER;
    let many = (2..=u64::from(MAX_SEGMENTS)).contains(&uncut.frames(packet.len()));
    let usual = usual && mss > 0 && packet.len().saturating_sub(l3) <= LONGEST;
    let seeded = is_seeded(&uncut, packet, request.seed_has_length);
    (usual && many && describes(&uncut, packet) && seeded).then_some(uncut)
}

/// Returns true if the TCP checksum field has the sum of the pseudo header, with the length or without it. Zero has two forms.
fn is_seeded(uncut: &UnsegmentedPacketLayout, packet: &[u8], with_length: bool) -> bool {
    let seed = be16(packet, uncut.l4 + TCP_CHECKSUM).unwrap_or(0);
    let length = if with_length { packet.len().saturating_sub(uncut.l4) } else { 0 };
    pseudo(uncut, packet).number(length32(length)).value() % 0xffff == seed % 0xffff
}

/// Returns true if the packet's headers match the sender's description.
fn describes(uncut: &UnsegmentedPacketLayout, packet: &[u8]) -> bool {
    let length = uncut.l4.saturating_sub(uncut.l3);
    let network = packet.get(uncut.l3..uncut.l4).unwrap_or_default();
    let tcp = packet.get(uncut.l4..).and_then(|tcp| tcp.first_chunk::<TCP_HEADER>());
    let network = if uncut.ipv4 {
        network.first_chunk::<IPV4_HEADER>().is_some_and(|ip| {
            let whole = ip[0] >> 4 == 4 && usize::from(ip[0] & 0xf) * 4 == length;
            whole && ip[9] == protocol::TCP && u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff == 0
        })
    } else {
        let ip = network.first_chunk::<IPV6_HEADER>();
        length == IPV6_HEADER && ip.is_some_and(|ip| ip[0] >> 4 == 6 && ip[6] == protocol::TCP)
    };
    let kind = if uncut.ipv4 { TYPE_IPV4 } else { TYPE_IPV6 };
    let length = uncut.payload.saturating_sub(uncut.l4);
    network
        && be16(packet, uncut.l3 - 2) == Some(kind)
        && tcp.is_some_and(|tcp| usize::from(tcp[12] >> 4) * 4 == length && tcp[FLAGS] & CWR == 0)
}

/// Returns the description of a packet that arrived unsegmented at the uplink, and prepares its headers for
/// segmentation. The packet is TCP over the given IP version, with `mss` bytes of payload per segment. Returns `None`
/// if it is no such packet, makes more segments than a card takes of one packet, or makes a segment with more than
/// `longest` bytes.
#[must_use]
pub fn arrived(packet: &mut [u8], ipv4: bool, mss: u16, longest: usize) -> Option<UnsegmentedPacketLayout> {
    let headers = FrameHeaders::parse(packet);
    let l3 = if ipv4 { NetworkHeaderKind::Ipv4 } else { NetworkHeaderKind::Ipv6 };
    let whole = headers.l3_end == Some(packet.len()) && !headers.is_readdressed();
    if (headers.l3, headers.l4) != (l3, TransportHeaderKind::Tcp) || !whole {
        return None;
    }
    let (l3, l4) = (headers.l3_offset, headers.l4_offset);
    let uncut = UnsegmentedPacketLayout { ipv4, l3, l4, payload: l4 + headers.l4_length, mss };
    put16(packet, l4 + TCP_CHECKSUM, pseudo(&uncut, packet).value());
    let segments = segments(&uncut, packet).ok()?;
    (segments.count() <= MAX_SEGMENTS && segments.longest() <= longest).then_some(uncut)
}

/// Returns true if a packet that has [`arrived`] may pass unsegmented: its TCP header has no flag that only its first segment gets.
#[must_use]
pub fn may_pass(uncut: &UnsegmentedPacketLayout, packet: &[u8]) -> bool {
    packet.get(uncut.l4 + FLAGS).is_some_and(|flags| flags & CWR == 0)
}

/// Prepares the headers of an unsegmented packet for segmentation.
///
/// # Errors
/// See [`Segmenter::new`].
pub fn segments<'a>(
    uncut: &UnsegmentedPacketLayout,
    packet: &'a [u8],
) -> Result<Segmenter<'a>, SegmentationError> {
    let request = OffloadRequest {
        mac_length: uncut.l3,
        ip_length: uncut.l4.saturating_sub(uncut.l3),
        l4_length: uncut.payload.saturating_sub(uncut.l4),
        ipv4: uncut.ipv4,
        l4: Some(TransportProtocol::Tcp),
        ip_checksum: true,
        l4_checksum: true,
        seed_has_length: false,
    };
    Segmenter::new(packet, &request, uncut.mss, TcpFlagMasks::DEFAULT)
}

/// Writes the lengths and checksums into the headers of a packet that [`sent`] has accepted. The packet is then sent
/// unsegmented.
pub fn complete(uncut: &UnsegmentedPacketLayout, packet: &mut [u8]) {
    let length = packet.len() - uncut.l3;
    if uncut.ipv4 {
        put16(packet, uncut.l3 + 2, length16(length));
        put16(packet, uncut.l3 + IPV4_CHECKSUM, 0);
        let checksum = PartialChecksum::of(&packet[uncut.l3..uncut.l4]).checksum();
        put16(packet, uncut.l3 + IPV4_CHECKSUM, checksum);
    } else {
        put16(packet, uncut.l3 + 4, length16(length - IPV6_HEADER));
    }
    let pseudo = pseudo(uncut, packet).number(length32(packet.len() - uncut.l4));
    put16(packet, uncut.l4 + TCP_CHECKSUM, pseudo.value());
}

/// Returns the sum of the packet's pseudo header, without the length.
fn pseudo(uncut: &UnsegmentedPacketLayout, packet: &[u8]) -> PartialChecksum {
    let addresses = if uncut.ipv4 { uncut.l3 + 12..uncut.l3 + 20 } else { uncut.l3 + 8..uncut.l3 + 40 };
    PartialChecksum::of(packet.get(addresses).unwrap_or_default()).number(protocol::TCP.into())
}
