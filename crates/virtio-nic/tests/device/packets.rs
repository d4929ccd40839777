//! Generates packets and virtio headers of all kinds from a few numbers.

use crate::address;
use offload::checksum::PartialChecksum;
use virtio::net::{NetHeader, flag, gso};

/// Protocols of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketProtocols {
    pub(crate) tcp: bool,
    pub(crate) ipv6: bool,
    /// True if the packet has a VLAN tag.
    pub(crate) tagged: bool,
    /// True if the packet's IPv4 header has four bytes of options.
    pub(crate) options: bool,
}

impl PacketProtocols {
    pub(crate) fn of(bits: u8) -> Self {
        let on = |bit: u8| bits >> bit & 1 != 0;
        // Most packets are of the kind that travels in bursts.
        Self { tcp: on(0), ipv6: bits & 6 == 6, tagged: bits & 0x18 == 0x18, options: bits & 0x60 == 0x60 }
    }

    /// Returns the offset of the transport header.
    pub(crate) fn transport(self) -> u16 {
        let ip = if self.ipv6 { 40 } else { 20 + if self.options { 4 } else { 0 } };
        14 + if self.tagged { 4 } else { 0 } + ip
    }

    /// Returns the offset of the checksum in the transport header.
    pub(crate) fn field(self) -> u16 {
        if self.tcp { 16 } else { 6 }
    }
}

/// Returns a packet from a VF to a station (255: to all). Its transport checksum is complete, or with `partial` the sum
/// of the pseudo header.
pub(crate) fn packet(kind: PacketProtocols, (from, to): (u8, u8), payload: &[u8], partial: bool) -> Vec<u8> {
    let mut transport = if kind.tcp {
        vec![0x10, from, 0x20, to, 0, 0, 1, 0, 0, 0, 2, 0, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]
    } else {
        let length = (8 + payload.len()) as u16;
        [&[0x10, from, 0x20, to][..], &length.to_be_bytes(), &[0, 0]].concat()
    };
    let length = transport.len() + payload.len();
    let ip = if kind.ipv6 { ipv6(kind, (from, to), length) } else { ipv4(kind, (from, to), length) };
    let ends = if kind.ipv6 { &ip[8..40] } else { &ip[12..20] };
    let protocol = if kind.tcp { 6 } else { 17 };
    let pseudo = PartialChecksum::of(ends).number(protocol).number(length as u32);
    let sum = if partial {
        pseudo.value()
    } else if kind.tcp {
        pseudo.bytes(&transport).bytes(payload).checksum()
    } else {
        pseudo.bytes(&transport).bytes(payload).udp_checksum()
    };
    transport[usize::from(kind.field())..][..2].copy_from_slice(&sum.to_be_bytes());
    let destination = if to == 255 { [0xff; 6] } else { address(to) };
    let tag: &[u8] = if kind.tagged { &[0x81, 0, 0, 7] } else { &[] };
    let ethertype: &[u8] = if kind.ipv6 { &[0x86, 0xdd] } else { &[8, 0] };
    [&destination[..], &address(from), tag, ethertype, &ip, &transport, payload].concat()
}

fn ipv4(kind: PacketProtocols, (from, to): (u8, u8), length: usize) -> Vec<u8> {
    let options = if kind.options { 4 } else { 0 };
    let protocol = if kind.tcp { 6 } else { 17 };
    let mut ip = vec![0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
    ip[0] += options / 4;
    ip.resize(20 + usize::from(options), 1);
    let total = (ip.len() + length) as u16;
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    let sum = PartialChecksum::of(&ip).checksum();
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip
}

fn ipv6(kind: PacketProtocols, (from, to): (u8, u8), length: usize) -> Vec<u8> {
    let mut ip = vec![0x60, 0, 0, 0, 0, 0, if kind.tcp { 6 } else { 17 }, 64];
    ip[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    ip.extend([0xfd; 15].into_iter().chain([from]).chain([0xfd; 15]).chain([to]));
    ip
}

/// Returns a packet, and a virtio header that requests offloads of it, which need not suit the packet. The arguments
/// select both.
pub(crate) fn requested(kind: u8, ends: (u8, u8), length: u8, request: u8) -> (NetHeader, Vec<u8>) {
    let kind = PacketProtocols::of(kind);
    let large = request % 16 >= 9;
    let bytes = if large {
        [0, 1, 900, 1_448, 3_000, 9_000, 20_000, 60_000]
    } else {
        [0, 6, 18, 100, 600, 1_400, 1_990, 8_000]
    };
    let payload: Vec<u8> =
        (0..bytes[usize::from(length & 7)]).map(|n: usize| (n * 7) as u8 ^ length).collect();
    let partial = request % 16 >= 3;
    let mut frame = packet(kind, ends, &payload, partial);
    let (start, offset) = (kind.transport(), kind.field());
    let checksum = NetHeader {
        flags: flag::NEEDS_CSUM,
        checksum_start: start,
        checksum_offset: offset,
        ..NetHeader::default()
    };
    let gso_type = if kind.ipv6 { gso::TCPV6 } else { gso::TCPV4 };
    let cut = NetHeader { gso_type, gso_size: 1_448, header_length: start + 20, ..checksum };
    let header = match request % 16 {
        0..3 => NetHeader::default(),
        3..6 => checksum,
        6 => NetHeader { checksum_start: start - 1, ..checksum },
        7 => NetHeader {
            checksum_start: frame.len() as u16,
            checksum_offset: u16::from(request) << 8,
            ..checksum
        },
        8 => NetHeader { checksum_offset: 2 * u16::from(length), ..checksum },
        9..12 => cut,
        12 => NetHeader { gso_size: [0, 1, 30, 3_000, 65_535][usize::from(length % 5)], ..cut },
        13 => NetHeader {
            gso_type: [gso::UDP, gso::UDP_L4, gso::TCPV4 | gso::ECN, 7][usize::from(length & 3)],
            ..cut
        },
        14 => NetHeader { flags: 0, ..cut },
        _ => NetHeader { checksum_start: 14, ..cut },
    };
    // A few packets are not what they say.
    match request >> 4 {
        0 => frame.truncate(usize::from(length)),
        1 => frame[usize::from(length) % 42] ^= 0x11,
        2 => frame.push(request),
        3 => frame[14] = 0x46,
        _ => {}
    }
    (header, frame)
}
