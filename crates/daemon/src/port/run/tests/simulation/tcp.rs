//! TCP packets of guests, which their cards segment. The headers of each segment say which bytes of which packet it has to have,
//! and each byte follows from its place in the stream, so that a receiver detects a wrong byte, a wrong length and a wrong
//! header.
//!
//! | header field | content |
//! |---|---|
//! | sequence number | place of the segment in the stream |
//! | acknowledgement number | place of its packet in the stream |
//! | window, urgent pointer | bytes of the packet's payload, and of a segment's |
//! | timestamp option | the sender's life, and the number of changes of policies |

use super::frames::{FrameStamp, IPV4, SHORTEST, STREAM, ip_of, is_udp};
use super::function::ReceivedChecksum;
use i82576::MacAddress;

/// Protocol number of TCP (IANA).
pub(super) const TCP: u8 = 6;
/// Offset of the TCP header in a packet: behind Ethernet and IPv4.
const TCP_START: usize = 14 + 20;
/// Bytes of a TCP header with the timestamp option.
const TCP_HEADER: usize = 20 + 12;
/// Bytes of all headers of a packet.
pub(super) const HEADERS: usize = TCP_START + TCP_HEADER;
/// Offset of the checksum in a TCP header (RFC 9293).
const CHECKSUM: usize = 16;
/// Ports, and the kinds of the options before the two timestamps (RFC 7323).
const PORTS: [u8; 4] = [0x13, 0x88, 0x13, 0x89];
const OPTIONS: [u8; 4] = [1, 1, 8, 10];
/// TCP flags: ACK in each segment, and PSH in the last one of a packet.
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// Bytes of a stream between two stamps. Each segment of [`SHORTEST_MSS`] has a whole stamp.
const RECORD: usize = 128;
/// Least number of bytes in a segment but the last.
pub(super) const SHORTEST_MSS: usize = RECORD + SHORTEST;
/// Largest number of bytes in a segment: a frame of 1,514 bytes.
pub(super) const LONGEST_MSS: usize = 1514 - HEADERS;
/// Largest number of bytes in a packet's payload.
pub(super) const LONGEST_PAYLOAD: usize = 40_000;

/// Packet of a stream before its segmentation.
#[derive(Debug, Clone, Copy)]
pub(super) struct TcpPacket {
    pub(super) from: u16,
    pub(super) to: u16,
    /// Number of times that the sender has attached.
    pub(super) life: u32,
    /// Number of changes of policies before the packet was sent.
    pub(super) changes: u32,
    /// Place of the packet in the stream.
    pub(super) start: u32,
    /// Number of bytes of the payload.
    pub(super) payload: usize,
    /// Maximum number of payload bytes in a segment.
    pub(super) mss: usize,
}

impl TcpPacket {
    /// Returns the number of the packet's segments.
    pub(super) fn segments(&self) -> usize {
        self.payload.div_ceil(self.mss)
    }

    /// Returns the packet. Its TCP checksum is the sum of the pseudo header, which a card completes.
    pub(super) fn bytes(&self, to: MacAddress, from: MacAddress) -> Vec<u8> {
        let mut packet = [&to.0[..], &from.0, &IPV4].concat();
        let length = (20 + TCP_HEADER + self.payload) as u16;
        packet.extend([0x45, 0]);
        packet.extend(length.to_be_bytes());
        packet.extend((self.start as u16).to_be_bytes());
        // No fragments, time to live, protocol, and a place for the checksum.
        packet.extend([0, 0, 64, TCP, 0, 0]);
        packet.extend(ip_of(self.from).octets());
        packet.extend(ip_of(self.to).octets());
        let checksum = !sum(&packet[14..], 0);
        packet[24..26].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(PORTS);
        packet.extend([self.start, self.start].map(u32::to_be_bytes).concat());
        packet.extend([(TCP_HEADER as u8 / 4) << 4, ACK | PSH]);
        packet.extend((self.payload as u16).to_be_bytes());
        packet.extend(pseudo_header(&packet[14..TCP_START], TCP_HEADER + self.payload).to_be_bytes());
        packet.extend((self.mss as u16).to_be_bytes());
        packet.extend(OPTIONS);
        packet.extend([self.life, self.changes].map(u32::to_be_bytes).concat());
        packet.extend(self.stream(self.start as usize, self.payload));
        packet
    }

    /// Returns bytes of the stream: records, each of which begins with a stamp.
    fn stream(&self, start: usize, length: usize) -> impl Iterator<Item = u8> {
        let Self { from, to, life, .. } = *self;
        let record = move |number: usize| {
            FrameStamp { from, to, life, number: number as u64, changes: 0 }.payload(RECORD)
        };
        (start / RECORD..).flat_map(record).skip(start % RECORD).take(length)
    }
}

/// Returns true for an IPv4 frame of TCP.
pub(super) fn is_tcp(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&IPV4) && frame.get(23) == Some(&TCP)
}

/// Reads a segment, whose headers and bytes must be the sender's. Returns its stamp, whose number is the segment's place in the
/// stream.
pub(super) fn read(frame: &[u8], checksum: ReceivedChecksum) -> Result<FrameStamp, String> {
    let wrong = |what: &str| format!("a TCP segment of {} bytes with {what}", frame.len());
    let (headers, payload) = frame.split_at_checked(HEADERS).ok_or_else(|| wrong("a part of its headers"))?;
    let word = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    let long = |at: usize| u32::from(word(at)) << 16 | u32::from(word(at + 2));
    let (ip, tcp) = (&headers[14..TCP_START], TCP_START);
    if ip[0] != 0x45 || usize::from(word(16)) != frame.len() - 14 {
        return Err(wrong("a wrong IP length"));
    }
    if sum(ip, 0) != u16::MAX {
        return Err(wrong("a wrong IP checksum"));
    }
    let (from, to) = (u16::from(ip[15]), u16::from(ip[19]));
    let packet = TcpPacket {
        from,
        to,
        life: long(tcp + 24),
        changes: long(tcp + 28),
        start: long(tcp + 8),
        payload: word(tcp + 14).into(),
        mss: word(tcp + 18).into(),
    };
    let sequence = long(tcp + 4);
    let about = |what: &str| format!("{what} in the segment at {sequence} of {packet:?}");
    let at = sequence.wrapping_sub(packet.start) as usize;
    if !is_udp(from, to) || packet.mss == 0 || !at.is_multiple_of(packet.mss) || at >= packet.payload {
        return Err(about("no such place"));
    }
    let is_last = at + packet.mss >= packet.payload;
    if payload.len() != packet.mss.min(packet.payload - at) {
        return Err(about(&format!("{} bytes of payload", payload.len())));
    }
    let flags = if is_last { ACK | PSH } else { ACK };
    let number = (packet.start as u16).wrapping_add((at / packet.mss) as u16);
    if headers[tcp + 13] != flags || word(18) != number || headers[tcp..tcp + 4] != PORTS {
        return Err(about("wrong flags, ports or identification"));
    }
    checksum.check(pseudo_header(ip, frame.len() - TCP_START), &frame[TCP_START..]).map_err(about)?;
    let mut bytes = packet.stream(sequence as usize, payload.len());
    if let Some(at) = payload.iter().position(|byte| bytes.next() != Some(*byte)) {
        return Err(about(&format!("a wrong byte {at}")));
    }
    let number = STREAM | (u64::from(sequence) + 1);
    Ok(FrameStamp { from, to, life: packet.life, number, changes: packet.changes })
}

impl ReceivedChecksum {
    /// Checks the checksum of a segment, which begins with the TCP header: it is right, or its receiver has to complete it. The
    /// card may state what it has found, but nothing wrong.
    fn check(self, pseudo_header: u16, segment: &[u8]) -> Result<(), &'static str> {
        let field = u16::from_be_bytes([segment[CHECKSUM], segment[CHECKSUM + 1]]);
        match self {
            Self::Wrong => Err("a checksum that the card finds wrong"),
            Self::Partial if field == pseudo_header => Ok(()),
            Self::Partial => Err("a wrong partial checksum"),
            Self::Right | Self::Unknown if sum(segment, pseudo_header) == u16::MAX => Ok(()),
            Self::Right | Self::Unknown => Err("a wrong checksum"),
        }
    }
}

/// Returns the sum of the pseudo header of a segment of `length` bytes with its TCP header.
fn pseudo_header(ip: &[u8], length: usize) -> u16 {
    sum(&ip[12..20], sum(&(u32::from(TCP) + length as u32).to_be_bytes(), 0))
}

/// Returns the ones' complement sum of bytes (RFC 1071), added to another.
fn sum(bytes: &[u8], other: u16) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum = u32::from(other) + words.sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn segment_has_the_bytes_of_its_place() {
    let packet = TcpPacket { from: 0, to: 1, life: 3, changes: 4, start: 1_000, payload: 700, mss: 700 };
    let mut frame = packet.bytes(MacAddress::default(), MacAddress::default());
    assert!(is_tcp(&frame));
    let stamp = FrameStamp { from: 0, to: 1, life: 3, number: STREAM | 1_001, changes: 4 };
    assert_eq!(read(&frame, ReceivedChecksum::Partial), Ok(stamp));
    assert!(read(&frame, ReceivedChecksum::Right).is_err(), "the checksum is partial");
    assert!(read(&frame, ReceivedChecksum::Wrong).is_err());
    for at in [16, 30, 40, 48, 50, HEADERS, 765] {
        frame[at] ^= 1;
        assert!(read(&frame, ReceivedChecksum::Partial).is_err(), "byte {at}");
        frame[at] ^= 1;
    }
    frame.push(0);
    assert!(read(&frame, ReceivedChecksum::Partial).is_err(), "a byte too much");
}
