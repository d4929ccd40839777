//! Finds the headers of a frame: VLAN tags, IPv4 or IPv6 with its extensions, TCP, UDP or SCTP. A truncated or
//! contradictory header is not reported, so a reported header is wholly inside the frame.
//!
//! The search ends at tunnels and at authentication and encryption headers.

use plane::bytes::be16;
use plane::tag::{self, TAG};

/// Number of bytes in the two Ethernet addresses.
const ADDRESSES: usize = 12;
/// Ether type of a service (outer) VLAN tag. Such a tag is skipped even if outer tags are not in use.
const TYPE_SERVICE_VLAN: u16 = 0x88a8;
/// Ether type of IP version 4.
pub const TYPE_IPV4: u16 = 0x0800;
/// Ether type of IP version 6.
pub const TYPE_IPV6: u16 = 0x86dd;
/// Ether type of ARP.
pub const TYPE_ARP: u16 = 0x0806;

/// Number of bytes before an IP header: Ethernet addresses and type, without tags.
pub const ETHERNET_HEADER: usize = 14;
/// Bytes of an IPv4 header without options.
pub const IPV4_HEADER: usize = 20;
/// Offset of the checksum in an IPv4 header.
pub const IPV4_CHECKSUM: usize = 10;
/// Bytes of an IPv6 header without extensions.
pub const IPV6_HEADER: usize = 40;
/// Bytes of a TCP header without options.
pub const TCP_HEADER: usize = 20;
/// Offset of the checksum in a TCP header.
pub const TCP_CHECKSUM: usize = 16;
/// Bytes of a UDP header.
pub const UDP_HEADER: usize = 8;
/// Offset of the checksum in a UDP header.
pub const UDP_CHECKSUM: usize = 6;
/// Bytes of SCTP's common header.
pub const SCTP_HEADER: usize = 12;
/// Offset of the checksum in SCTP's common header.
pub const SCTP_CHECKSUM: usize = 8;

/// Maximum number of IPv6 extension headers that are followed; a longer chain hides its transport.
const MAX_EXTENSIONS: usize = 8;
/// Type of the IPv6 destination option Pad1, one byte of padding (RFC 8200, 4.2).
const PAD_1: u8 = 0;
/// Type of the IPv6 destination option Home Address (RFC 6275, 6.3).
const HOME_ADDRESS: u8 = 0xc9;

/// IP protocol numbers.
pub mod protocol {
    /// IP protocol number of ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// IP protocol number of TCP.
    pub const TCP: u8 = 6;
    /// IP protocol number of UDP.
    pub const UDP: u8 = 17;
    /// IP protocol number of ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// IP protocol number of SCTP.
    pub const SCTP: u8 = 132;
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const NONE: u8 = 59;
    pub(super) const DESTINATION: u8 = 60;
}

/// Kind of network header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NetworkHeaderKind {
    /// Network header that is neither IPv4 nor IPv6.
    #[default]
    None,
    /// Network header of IP version 4.
    Ipv4,
    /// Network header of IP version 6.
    Ipv6,
}

/// Kind of transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransportHeaderKind {
    /// Unknown transport, or a fragment, which has no transport header.
    #[default]
    None,
    /// Transport header of TCP.
    Tcp,
    /// Transport header of UDP.
    Udp,
    /// Transport header of SCTP.
    Sctp,
}

/// Headers of a frame. Offsets and lengths are in bytes; an offset counts from the start of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameHeaders {
    /// Number of VLAN tags in the frame, at most two.
    pub tags: u8,
    /// Kind of the network header.
    pub l3: NetworkHeaderKind,
    /// Offset of the network header.
    pub l3_offset: usize,
    /// Length of the network header, options or extensions included.
    pub l3_length: usize,
    /// True if the network header has options (IPv4) or extensions (IPv6).
    pub extended: bool,
    /// True if the packet is a fragment. Every IPv6 packet with a fragment header counts as one.
    pub fragment: bool,
    /// Offset of the end of the IP packet according to its header; `None` if the end is not inside the frame.
    pub l3_end: Option<usize>,
    /// Offset of the sender's home address, in a home address option (RFC 6275, 6.3); 0 if there is none.
    pub home: usize,
    /// Offset of the receiver's home address, in a routing header of type 2 (RFC 6275, 6.4); 0 if there is none.
    pub routed: usize,
    /// IP protocol number of the transport, from the last header before the transport header.
    pub protocol: u8,
    /// Kind of the transport header.
    pub l4: TransportHeaderKind,
    /// Offset of the transport header.
    pub l4_offset: usize,
    /// Length of the transport header, options included.
    pub l4_length: usize,
    /// Number of bytes from the frame's start to the end of the last header found.
    pub header_length: usize,
}

impl FrameHeaders {
    /// Finds the headers of a frame (without frame check sequence).
    #[must_use]
    pub fn parse(frame: &[u8]) -> Self {
        Self::parse_behind(frame, false, tag::TYPE)
    }

    /// Finds the headers of a frame with outer tags. If `outer` is true, the first tag is an outer one and may have any
    /// type. All other tags have type `inner`.
    #[must_use]
    #[inline]
    pub fn parse_behind(frame: &[u8], outer: bool, inner: u16) -> Self {
        let mut headers = Self { tags: outer.into(), ..Self::default() };
        match headers.link(frame, inner) {
            Some(TYPE_IPV4) => headers.ipv4(frame),
            Some(TYPE_IPV6) => headers.ipv6(frame),
            _ => {}
        }
        headers
    }

    /// Returns true if the transport checksum covers a home address instead of an address of the IPv6 header.
    #[must_use]
    #[inline]
    pub fn is_readdressed(&self) -> bool {
        self.home | self.routed != 0
    }

    /// Skips the Ethernet addresses and VLAN tags, and returns the type of the next header.
    fn link(&mut self, frame: &[u8], inner: u16) -> Option<u16> {
        let mut at = ADDRESSES + usize::from(self.tags) * TAG;
        let mut kind = be16(frame, at)?;
        while kind == inner && self.tags < 2 || kind == TYPE_SERVICE_VLAN && self.tags == 0 {
            at += TAG;
            kind = be16(frame, at)?;
            self.tags += 1;
        }
        self.l3_offset = at + 2;
        self.header_length = self.l3_offset;
        Some(kind)
    }

    #[inline]
    fn ipv4(&mut self, frame: &[u8]) {
        let packet = frame.get(self.l3_offset..).unwrap_or_default();
        let Some(fixed) = packet.first_chunk::<IPV4_HEADER>() else { return };
        let length = usize::from(fixed[0] & 0xf) * 4;
        if fixed[0] >> 4 != 4 || length < IPV4_HEADER || length > packet.len() {
            return;
        }
        let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        self.extended = length > IPV4_HEADER;
        self.fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0;
        self.network(NetworkHeaderKind::Ipv4, length, total, packet.len());
        self.transport(frame, fixed[9]);
    }

    fn ipv6(&mut self, frame: &[u8]) {
        let packet = frame.get(self.l3_offset..).unwrap_or_default();
        let Some(fixed) = packet.first_chunk::<IPV6_HEADER>() else { return };
        if fixed[0] >> 4 != 6 {
            return;
        }
        let total = IPV6_HEADER + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let inside = packet.get(..total).unwrap_or(packet);
        let (mut length, mut next) = (IPV6_HEADER, fixed[6]);
        for _ in 0..MAX_EXTENSIONS {
            let Some(extension) = ExtensionHeader::parse(inside.get(length..).unwrap_or_default(), next)
            else {
                break;
            };
            self.extended = true;
            let place = |at: usize| self.l3_offset + length + at;
            match extension.address {
                Some(Ipv6ExtensionAddress::Home(at)) => self.home = place(at),
                Some(Ipv6ExtensionAddress::Routed(at)) => self.routed = place(at),
                None => {}
            }
            if next == protocol::FRAGMENT {
                // The next header belongs to the reassembled packet, so a fragment's headers end before it.
                (self.fragment, next) = (true, protocol::NONE);
                break;
            }
            length += extension.length;
            next = extension.next;
        }
        self.network(NetworkHeaderKind::Ipv6, length, total, packet.len());
        self.transport(frame, next);
    }

    /// Records a network header of `length` bytes. The packet has `total` bytes by the header's length field, of which
    /// `available` are in the frame.
    #[inline]
    fn network(&mut self, l3: NetworkHeaderKind, length: usize, total: usize, available: usize) {
        self.l3 = l3;
        self.l3_length = length;
        self.header_length = self.l3_offset + length;
        self.l3_end = (length <= total && total <= available).then_some(self.l3_offset + total);
    }

    #[inline]
    fn transport(&mut self, frame: &[u8], protocol: u8) {
        self.protocol = protocol;
        let start = self.l3_offset + self.l3_length;
        let segment = frame.get(start..self.l3_end.unwrap_or(frame.len())).unwrap_or_default();
        let (l4, length) = match protocol {
            protocol::TCP => {
                (TransportHeaderKind::Tcp, segment.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4))
            }
            protocol::UDP => (TransportHeaderKind::Udp, UDP_HEADER),
            protocol::SCTP => (TransportHeaderKind::Sctp, SCTP_HEADER),
            _ => return,
        };
        let shortest = if l4 == TransportHeaderKind::Tcp { TCP_HEADER } else { length };
        if !self.fragment && (shortest..=segment.len()).contains(&length) {
            self.l4 = l4;
            self.l4_offset = start;
            self.l4_length = length;
            self.header_length = start + length;
        }
    }
}

/// Extension header of an IPv6 packet.
struct ExtensionHeader {
    length: usize,
    next: u8,
    address: Option<Ipv6ExtensionAddress>,
}

/// Home address in an IPv6 extension header, as an offset in bytes from the header's start.
enum Ipv6ExtensionAddress {
    Home(usize),
    Routed(usize),
}

impl ExtensionHeader {
    /// Parses an IPv6 extension header of kind `kind` at the start of `bytes`. Returns `None` if it is no extension
    /// header or truncated.
    fn parse(bytes: &[u8], kind: u8) -> Option<Self> {
        let fixed = bytes.first_chunk::<8>()?;
        let length = if kind == protocol::FRAGMENT { 8 } else { (usize::from(fixed[1]) + 1) * 8 };
        let whole = bytes.get(..length)?;
        let (next, address) = match kind {
            protocol::HOP_BY_HOP | protocol::FRAGMENT => (fixed[0], None),
            protocol::DESTINATION => (fixed[0], home_address(whole)),
            protocol::ROUTING if fixed[2..4] == [2, 1] && length == 24 => {
                (fixed[0], Some(Ipv6ExtensionAddress::Routed(8)))
            }
            // Before the last hop the destination differs from the one in the transport's checksum.
            protocol::ROUTING if fixed[3] != 0 => (protocol::NONE, None),
            protocol::ROUTING => (fixed[0], None),
            _ => return None,
        };
        Some(Self { length, next, address })
    }
}

/// Finds the home address option in a destination options header.
fn home_address(header: &[u8]) -> Option<Ipv6ExtensionAddress> {
    let mut at = 2;
    while let [kind, rest @ ..] = header.get(at..)? {
        match (*kind, rest.first()) {
            (PAD_1, _) => at += 1,
            (HOME_ADDRESS, Some(16)) if rest.len() > 16 => return Some(Ipv6ExtensionAddress::Home(at + 2)),
            (_, length) => at += 2 + usize::from(*length?),
        }
    }
    None
}
