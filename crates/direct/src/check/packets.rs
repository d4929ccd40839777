//! Builds IP packets with TCP or UDP, and verifies their checksums without the card's help. The packets have no options
//! and are not fragmented.

use i82576::MacAddress;

const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// UDP and TCP port of the discard service.
const PORT: u16 = 9;
/// TCP flags of the packets that the checks send: acknowledgement and push.
const FLAGS: u8 = 0x18;

/// Kind of a packet that the checks send: IP version and transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketKind {
    pub(super) ipv6: bool,
    pub(super) tcp: bool,
}

/// Kinds of packets that the offload checks send: both IP versions, each with TCP and UDP.
pub(super) const KINDS: [PacketKind; 4] = [
    PacketKind { ipv6: false, tcp: false },
    PacketKind { ipv6: false, tcp: true },
    PacketKind { ipv6: true, tcp: false },
    PacketKind { ipv6: true, tcp: true },
];

impl PacketKind {
    fn ip_header(self) -> usize {
        if self.ipv6 { 40 } else { 20 }
    }

    fn transport_header(self) -> usize {
        if self.tcp { 20 } else { 8 }
    }

    /// Returns the length of the packet's headers in bytes, Ethernet included.
    pub(super) fn headers(self) -> usize {
        ETHERNET + self.ip_header() + self.transport_header()
    }

    fn protocol(self) -> u8 {
        if self.tcp { TCP } else { UDP }
    }

    /// Returns the offset of the TCP or UDP checksum in the frame.
    fn checksum_at(self) -> usize {
        ETHERNET + self.ip_header() + if self.tcp { 16 } else { 6 }
    }
}

/// Builds a frame with a packet of this kind, in which every checksum is wrong.
pub(super) fn packet(kind: PacketKind, to: MacAddress, from: MacAddress, payload: &[u8]) -> Vec<u8> {
    let transport = (kind.transport_header() + payload.len()) as u16;
    let mut frame = Vec::with_capacity(kind.headers() + payload.len());
    frame.extend(to.0);
    frame.extend(from.0);
    if kind.ipv6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(transport.to_be_bytes());
        frame.extend([kind.protocol(), 64]);
        for station in [1, 2] {
            frame.extend([0xfd, 0x82, 0x57, 0x06, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, station]);
        }
    } else {
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((20 + transport).to_be_bytes());
        frame.extend([0x12, 0x34, 0x40, 0, 64, kind.protocol(), 0xde, 0xad]);
        frame.extend([10, 82, 57, 1, 10, 82, 57, 2]);
    }
    frame.extend(PORT.to_be_bytes());
    frame.extend(PORT.to_be_bytes());
    if kind.tcp {
        frame.extend([0, 0, 0x10, 0, 0, 0, 0, 1, 0x50, FLAGS, 0xff, 0xff, 0xde, 0xad, 0, 0]);
    } else {
        frame.extend(transport.to_be_bytes());
        frame.extend([0xde, 0xad]);
    }
    frame.extend(payload);
    frame
}

/// Fills in the checksums of a frame's IPv4 header and of its TCP or UDP packet.
pub(super) fn complete(kind: PacketKind, mut frame: Vec<u8>) -> Vec<u8> {
    if !kind.ipv6 {
        frame[ETHERNET + 10..ETHERNET + 12].fill(0);
        let sum = !fold(words(&frame[ETHERNET..ETHERNET + 20]));
        frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
    }
    let at = kind.checksum_at();
    frame[at..at + 2].fill(0);
    let sum = !fold(transport_words(kind, &frame));
    // In UDP zero would mean "no checksum".
    let sum = if sum == 0 { 0xffff } else { sum };
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// Returns true if all checksums of a frame with a packet of this kind are correct.
pub(super) fn is_right(kind: PacketKind, frame: &[u8]) -> bool {
    let header = kind.ipv6 || fold(words(&frame[ETHERNET..ETHERNET + 20])) == 0xffff;
    header && fold(transport_words(kind, frame)) == 0xffff
}

/// Returns true if a frame has a packet of this kind that a check sent.
pub(super) fn is_ours(kind: PacketKind, frame: &[u8]) -> bool {
    let ethertype: [u8; 2] = if kind.ipv6 { [0x86, 0xdd] } else { [0x08, 0x00] };
    let protocol = ETHERNET + if kind.ipv6 { 6 } else { 9 };
    let port = ETHERNET + kind.ip_header();
    frame.len() >= kind.headers()
        && frame[12..14] == ethertype
        && frame[protocol] == kind.protocol()
        && frame[port..port + 2] == PORT.to_be_bytes()
}

/// Fields of a TCP segment over IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TcpSegment {
    pub(super) length: u16,
    pub(super) identification: u16,
    pub(super) sequence: u32,
    pub(super) push: bool,
}

/// Returns the fields of a TCP segment over IPv4 in a frame that a check has sent.
pub(super) fn segment(frame: &[u8]) -> TcpSegment {
    let word = |at: usize| u16::from_be_bytes([frame[ETHERNET + at], frame[ETHERNET + at + 1]]);
    TcpSegment {
        length: word(2),
        identification: word(4),
        sequence: u32::from(word(24)) << 16 | u32::from(word(26)),
        push: frame[ETHERNET + 33] & 0x08 != 0,
    }
}

fn words(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or(0))).sum()
}

/// Returns the sum of a TCP or UDP packet with its pseudo-header. Frames may be padded, so the length comes from the IP
/// header.
fn transport_words(kind: PacketKind, frame: &[u8]) -> u32 {
    let ip = &frame[ETHERNET..];
    let (addresses, total) = if kind.ipv6 { (8..40, 40 + word(ip, 4)) } else { (12..20, word(ip, 2)) };
    let transport = &ip[kind.ip_header()..usize::from(total).min(ip.len())];
    words(&ip[addresses]) + u32::from(kind.protocol()) + transport.len() as u32 + words(transport)
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::{KINDS, complete, is_ours, is_right, packet};
    use i82576::MacAddress;

    #[test]
    fn driver_check_accepts_only_intact_packets_with_checksums() {
        for kind in KINDS {
            let raw = packet(kind, MacAddress([2; 6]), MacAddress([4; 6]), b"odd");
            assert!(is_ours(kind, &raw) && !is_right(kind, &raw), "{kind:?}");
            let mut whole = complete(kind, raw);
            assert!(is_right(kind, &whole), "{kind:?}");
            *whole.last_mut().unwrap() ^= 1;
            assert!(!is_right(kind, &whole), "{kind:?}");
        }
    }

    #[test]
    fn driver_check_packets_of_different_kinds_are_distinguished() {
        for kind in KINDS {
            let frame = packet(kind, MacAddress::BROADCAST, MacAddress::ZERO, &[0; 40]);
            assert_eq!(KINDS.map(|other| is_ours(other, &frame)), KINDS.map(|other| other == kind));
        }
    }
}
