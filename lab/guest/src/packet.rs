//! Parses and fills the frame fields that the modelled stack reads. IP options and IPv6 are not supported.

use i82576::MacAddress;

/// Bytes of Ethernet and IPv4 headers.
pub const IP_HEADERS: usize = 14 + 20;
/// Bytes of Ethernet, IPv4 and TCP headers (TCP with the 12-byte timestamp option).
pub const TCP_HEADERS: usize = IP_HEADERS + 32;
/// Bytes of an IPv4 header.
pub const IP_HEADER: usize = 20;
/// Bytes of a UDP header.
pub const UDP_HEADER: usize = 8;
/// Bytes of Ethernet, IPv4 and UDP headers.
pub const UDP_HEADERS: usize = IP_HEADERS + UDP_HEADER;
/// Payload bytes of a datagram that fills a frame.
pub const UDP_PAYLOAD: usize = FRAGMENT - UDP_HEADER;
/// Payload bytes of a TCP segment that fills a frame.
pub const TCP_PAYLOAD: usize = 1_448;
/// Bytes of the shortest frame, without its check sequence; shorter frames are padded.
pub const SHORTEST: usize = 60;
/// Payload bytes of an IPv4 packet that fills a frame.
pub const FRAGMENT: usize = 1_480;

const ID_AT: usize = 18;
const FRAGMENT_AT: usize = 20;
/// Bit of an IPv4 header's fragment field (RFC 791): more fragments follow.
const MORE: u16 = 0x2000;
/// Bits of an IPv4 header's fragment field (RFC 791): the fragment's offset in units of 8 bytes.
const OFFSET: u16 = 0x1fff;
const PROTOCOL_AT: usize = 23;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
/// Offset of the sequence number in a TCP frame, in bytes.
const SEQUENCE_AT: usize = 38;
const ACKNOWLEDGEMENT_AT: usize = 42;
const WINDOW_AT: usize = 48;

/// Bytes of the sequence number at the start of a datagram's payload.
const NUMBER: usize = 4;

/// Returns the sequence number at the start of a datagram's payload. Returns `None` if the payload is too short.
#[must_use]
pub fn number(datagram: &[u8], payload: usize) -> Option<u32> {
    let bytes = datagram.get(UDP_HEADERS..)?.first_chunk().filter(|_| payload >= NUMBER)?;
    Some(u32::from_be_bytes(*bytes))
}

/// Writes a sequence number at the start of a datagram's payload, if the datagram is long enough.
pub fn set_number(datagram: &mut [u8], number: u32) {
    if let Some(bytes) = datagram.get_mut(UDP_HEADERS..UDP_HEADERS + NUMBER) {
        bytes.copy_from_slice(&number.to_be_bytes());
    }
}

/// Writes the sequence number of a TCP segment, if the frame is long enough.
pub fn set_sequence(segment: &mut [u8], sequence: u32) {
    if let Some(bytes) = segment.get_mut(SEQUENCE_AT..SEQUENCE_AT + 4) {
        bytes.copy_from_slice(&sequence.to_be_bytes());
    }
}

/// Kind of a received frame, with the fields the receiver needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceivedPacket {
    /// UDP datagram, with its number of payload bytes.
    Udp(usize),
    /// TCP segment, with the fields of its header.
    Tcp {
        /// Sequence number of the TCP segment's first byte, modulo 2^32.
        sequence: u32,
        /// Sequence number of the next byte that the segment's sender expects.
        acknowledgement: u32,
        /// Receive window of the segment's sender in packets, from the next byte that the sender expects.
        window: u16,
        /// Payload bytes of the TCP segment.
        payload: usize,
    },
    /// Fragment of an IPv4 datagram.
    Fragment {
        /// IPv4 identification of the datagram.
        id: u16,
        /// Offset of the fragment in the IPv4 payload, in bytes, a multiple of 8.
        offset: u16,
        /// The IPv4 datagram has further fragments after this one.
        more: bool,
        /// Bytes after the fragment's IPv4 header, including the UDP header in the first fragment.
        payload: usize,
    },
    /// Frame of any other kind, which the kernel ignores.
    Other,
}

/// Parses an Ethernet frame into the packet that it carries.
#[must_use]
pub fn parse(frame: &[u8]) -> ReceivedPacket {
    let word = |at: usize| frame.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b));
    let half = |at: usize| frame.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b));
    let total = half(16).unwrap_or(0);
    let payload = |headers: usize| (14 + usize::from(total)).min(frame.len()).saturating_sub(headers);
    let fragment = half(FRAGMENT_AT).unwrap_or(0);
    match frame.get(PROTOCOL_AT) {
        Some(&PROTOCOL_UDP) if fragment & (MORE | OFFSET) != 0 => ReceivedPacket::Fragment {
            id: half(ID_AT).unwrap_or(0),
            offset: (fragment & OFFSET) << 3,
            more: fragment & MORE != 0,
            payload: payload(IP_HEADERS),
        },
        Some(&PROTOCOL_UDP) => ReceivedPacket::Udp(payload(UDP_HEADERS)),
        Some(&PROTOCOL_TCP) => ReceivedPacket::Tcp {
            sequence: word(SEQUENCE_AT).unwrap_or(0),
            acknowledgement: word(ACKNOWLEDGEMENT_AT).unwrap_or(0),
            window: half(WINDOW_AT).unwrap_or(0),
            payload: payload(TCP_HEADERS),
        },
        _ => ReceivedPacket::Other,
    }
}

/// Writes the headers of a frame between two MAC addresses into `frame`, which has the frame's length. The IPv4
/// addresses are 10.0 followed by the second and last byte of the MAC address, so different stations are different
/// flows. The IPv4 checksum is correct, the UDP checksum is 0 (none), and the TCP checksum is not filled in.
pub fn fill(frame: &mut [u8], from: MacAddress, to: MacAddress, packet: ReceivedPacket) {
    let length = frame.len();
    if length < UDP_HEADERS {
        return;
    }
    frame[0..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let protocol = if matches!(packet, ReceivedPacket::Tcp { .. }) { PROTOCOL_TCP } else { PROTOCOL_UDP };
    let [high, low] = ((length - 14) as u16).to_be_bytes();
    let mut ip = [
        0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, from.0[1], from.0[5], 10, 0, to.0[1],
        to.0[5],
    ];
    if let ReceivedPacket::Fragment { id, offset, more, .. } = packet {
        let field = offset >> 3 | if more { MORE } else { 0 };
        ip[4..8].copy_from_slice(&[id.to_be_bytes(), field.to_be_bytes()].concat());
    }
    let sum: u32 = ip.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    frame[14..34].copy_from_slice(&ip);
    match packet {
        ReceivedPacket::Tcp { sequence, acknowledgement, window, .. } if length >= TCP_HEADERS => {
            frame[34..38].copy_from_slice(&[0x30, 0x39, 0x13, 0x89]);
            frame[SEQUENCE_AT..][..4].copy_from_slice(&sequence.to_be_bytes());
            frame[ACKNOWLEDGEMENT_AT..][..4].copy_from_slice(&acknowledgement.to_be_bytes());
            frame[46..TCP_HEADERS].fill(0);
            frame[46] = 0x80;
            frame[WINDOW_AT..][..2].copy_from_slice(&window.to_be_bytes());
        }
        ReceivedPacket::Fragment { offset: 1.., .. } => {}
        _ => {
            let [high, low] = ((length - 34) as u16).to_be_bytes();
            frame[34..42].copy_from_slice(&[0x30, 0x39, 0x13, 0x89, high, low, 0, 0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        FRAGMENT, IP_HEADERS, ReceivedPacket, TCP_HEADERS, UDP_HEADERS, fill, number, parse, set_number,
        set_sequence,
    };
    use i82576::MacAddress;

    #[test]
    fn parsed_frame_is_the_packet_that_was_written() {
        let (from, to) = (MacAddress([2; 6]), MacAddress([4; 6]));
        let mut frame = [0; UDP_HEADERS + 1_472];
        fill(&mut frame, from, to, ReceivedPacket::Udp(1_472));
        set_number(&mut frame, 0xfedc_ba98);
        assert_eq!((parse(&frame), number(&frame, 1_472)), (ReceivedPacket::Udp(1_472), Some(0xfedc_ba98)));
        assert_eq!(number(&frame, 3), None, "three payload bytes hold no sequence number");
        let mut frame = [0; TCP_HEADERS + 1_448];
        let segment = ReceivedPacket::Tcp { sequence: 7_000, acknowledgement: 9, window: 3, payload: 1_448 };
        fill(&mut frame, from, to, segment);
        assert_eq!(parse(&frame), segment);
        let later =
            ReceivedPacket::Tcp { sequence: 0xfedc_ba98, acknowledgement: 9, window: 3, payload: 1_448 };
        set_sequence(&mut frame, 0xfedc_ba98);
        assert_eq!(parse(&frame), later);
        assert_eq!(MacAddress::from_slice(&frame), Some(to));
    }

    #[test]
    fn guest_ip_addresses_are_derived_from_mac_addresses() {
        let mut frame = [0; UDP_HEADERS];
        fill(
            &mut frame,
            MacAddress([2, 0xc1, 0, 0, 0, 7]),
            MacAddress([2, 0xbb, 0, 0, 0, 9]),
            ReceivedPacket::Udp(0),
        );
        assert_eq!(frame[26..34], [10, 0, 0xc1, 7, 10, 0, 0xbb, 9]);
    }

    #[test]
    fn parsed_ipv4_fragment_has_its_offset() {
        let mut frame = [0; IP_HEADERS + FRAGMENT];
        for (offset, more) in [(0, true), (1_480, true), (2_960, false)] {
            let fragment = ReceivedPacket::Fragment { id: 0xfffe, offset, more, payload: FRAGMENT };
            fill(&mut frame, MacAddress([2; 6]), MacAddress([4; 6]), fragment);
            assert_eq!(parse(&frame), fragment);
        }
    }

    #[test]
    fn ethernet_padding_is_not_counted_as_payload() {
        let mut frame = [0; TCP_HEADERS];
        fill(
            &mut frame,
            MacAddress([2; 6]),
            MacAddress([4; 6]),
            ReceivedPacket::Tcp { sequence: 0, acknowledgement: 5, window: 64, payload: 0 },
        );
        let padded = [&frame[..], &[0; 20]].concat();
        assert_eq!(
            parse(&padded),
            ReceivedPacket::Tcp { sequence: 0, acknowledgement: 5, window: 64, payload: 0 }
        );
        assert_eq!(parse(&[0; 10]), ReceivedPacket::Other);
    }

    extern crate alloc;
    use alloc::vec::Vec;

    #[test]
    fn ipv4_header_checksum_is_correct() {
        let mut frame = [0; 60];
        fill(&mut frame, MacAddress([2; 6]), MacAddress([4; 6]), ReceivedPacket::Udp(18));
        let words: Vec<u32> =
            frame[14..34].chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(p[1])).collect();
        let sum: u32 = words.iter().sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}
