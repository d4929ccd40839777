//! Software segmentation in the driver domain, for a card that cannot: as late as possible, after bridge and
//! filters have seen one packet. Headers are rewritten for each segment, payload stays in place. The payload
//! checksum is computed when a segment is copied.

use super::DriverDomainPacket;
use guest::packet::IP_HEADERS;

const IP: usize = 14;
const IDENTIFICATION: usize = IP + 4;
const SEQUENCE: usize = IP_HEADERS + 4;
const FLAGS: usize = IP_HEADERS + 13;
/// TCP flags that only the last segment of a packet keeps: FIN, PSH.
const LAST: u8 = 0x09;
/// TCP flag that only the first segment of a packet keeps: CWR.
const FIRST: u8 = 0x80;

/// TCP segment of a packet: its own headers, and its range of the packet's payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TcpPacketSegment {
    pub(crate) header: Vec<u8>,
    pub(crate) from: usize,
    pub(crate) length: usize,
}

/// Segments a packet for TCP. Returns the whole packet as one segment if it needs no segmentation.
pub(crate) fn cut(packet: &DriverDomainPacket) -> Vec<TcpPacketSegment> {
    let payload = packet.payload();
    let Some(size) = packet.offload.segment.map(usize::from) else {
        return vec![TcpPacketSegment { header: packet.header().to_vec(), from: 0, length: payload }];
    };
    let count = payload.div_ceil(size).max(1);
    (0..count)
        .map(|n| {
            let from = n * size;
            let length = size.min(payload - from);
            TcpPacketSegment { header: header(packet.header(), (n, count), from, length), from, length }
        })
        .collect()
}

/// Creates the headers of TCP segment `n` of `count`.
fn header(whole: &[u8], (n, count): (usize, usize), from: usize, length: usize) -> Vec<u8> {
    let mut header = whole.to_vec();
    let total = (whole.len() - IP + length) as u16;
    let half = |at: usize| u16::from_be_bytes([whole[at], whole[at + 1]]);
    let sequence = u32::from(half(SEQUENCE)) << 16 | u32::from(half(SEQUENCE + 2));
    header[IP + 2..IP + 4].copy_from_slice(&total.to_be_bytes());
    header[IDENTIFICATION..][..2].copy_from_slice(&half(IDENTIFICATION).wrapping_add(n as u16).to_be_bytes());
    header[SEQUENCE..][..4].copy_from_slice(&sequence.wrapping_add(from as u32).to_be_bytes());
    header[FLAGS] &= if n + 1 < count { !LAST } else { 0xff };
    header[FLAGS] &= if n > 0 { !FIRST } else { 0xff };
    header[IP + 10..IP + 12].fill(0);
    let sum = checksum(&header[IP..IP_HEADERS]);
    header[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    header
}

/// Computes the checksum of an IPv4 header.
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    !((sum & 0xffff) + (sum >> 16)) as u16
}
