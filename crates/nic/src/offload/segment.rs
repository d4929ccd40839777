//! Segmentation offload: one large TCP segment or UDP datagram becomes many that fit the wire, each with its
//! own lengths, identification, sequence number, flags and checksums (datasheet 7.2.4).
//!
//! A guest chooses the header length (up to 893 bytes) and the segment size (down to 1 byte), so the bytes
//! that come out may be some 900 times those that go in: a caller budgets segments ([`Segmenter::count`]),
//! not packets.
//!
//! Left out: fetching the packet; VLAN tags, which a caller adds to each segment.

use super::put16;
use super::transmit::{Sealed, checksum_field, seal_ipv4, seal_l4, word};
use i82576::descriptor::tx::{Context, Data, L4};
use i82576::ids::{FCS, MAX_FRAME};
use thiserror::Error;

/// Bytes of the addresses and type before an IP header.
const ETHERNET_HEADER: usize = 14;
/// Bytes of the fixed IPv4 header, and of an IPv6 header.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;

/// Why a packet cannot be segmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Error {
    /// The context's MSS is zero.
    #[error("segment size of zero")]
    SegmentSize,
    /// A header length of the context is shorter than such a header.
    #[error("header too short")]
    HeaderTooShort,
    /// The headers are longer than the packet.
    #[error("headers longer than the packet")]
    HeaderTooLong,
    /// The transport is neither TCP nor UDP.
    #[error("transport cannot be segmented")]
    Transport,
    /// A segment would be longer than the longest frame.
    #[error("segment longer than a frame")]
    FrameTooLong,
}

/// Which TCP flags survive in the first, middle and last segment: DTXTCPFLGL and DTXTCPFLGH, twelve bits
/// each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlagMasks {
    /// First of several.
    pub first: u16,
    /// Neither first nor last.
    pub middle: u16,
    /// Last of several.
    pub last: u16,
}

impl FlagMasks {
    /// FIN and PSH in the last only, CWR in the first only (RFC 3168, 6.1.2: it answers one congestion
    /// event).
    pub const DEFAULT: Self = Self { first: 0xff6, middle: 0xf76, last: 0xf7f };

    /// The masks as software has set them.
    #[must_use]
    pub const fn from_registers(low: u32, high: u32) -> Self {
        let (first, middle) = (low & 0xfff, low >> 16 & 0xfff);
        Self { first: first as u16, middle: middle as u16, last: (high & 0xfff) as u16 }
    }
}

/// A packet being cut.
#[derive(Debug, Clone)]
pub struct Segmenter<'a> {
    headers: &'a [u8],
    payload: &'a [u8],
    context: Context,
    masks: FlagMasks,
    seal_ip: bool,
    seal_l4: bool,
    next: u32,
    sealed: Option<Sealed>,
}

impl<'a> Segmenter<'a> {
    /// Prepares a packet, headers and payload contiguous, for cutting as its first data descriptor and
    /// context say. The payload is what is there: PAYLEN is not consulted. The transport's checksum field
    /// must hold the sum of the pseudo header without the length.
    ///
    /// # Errors
    /// Contexts that describe no packet that could be cut.
    pub fn new(packet: &'a [u8], data: &Data, context: &Context, masks: FlagMasks) -> Result<Self, Error> {
        let shortest_ip = if context.ipv4 { IPV4_HEADER } else { IPV6_HEADER };
        let shortest_l4 = match context.l4 {
            L4::Tcp => 20,
            L4::Udp => 8,
            L4::Sctp | L4::Reserved => return Err(Error::Transport),
        };
        let (mac, ip) = (usize::from(context.mac_length), usize::from(context.ip_length));
        let l4 = usize::from(context.l4_length);
        if context.mss == 0 {
            return Err(Error::SegmentSize);
        }
        if mac < ETHERNET_HEADER || ip < shortest_ip || l4 < shortest_l4 {
            return Err(Error::HeaderTooShort);
        }
        let (headers, payload) = packet.split_at_checked(mac + ip + l4).ok_or(Error::HeaderTooLong)?;
        if headers.len() + payload.len().min(context.mss.into()) > MAX_FRAME - FCS {
            return Err(Error::FrameTooLong);
        }
        let (seal_ip, seal_l4) = (data.insert_ip_checksum && context.ipv4, data.insert_l4_checksum);
        Ok(Self { headers, payload, context: *context, masks, seal_ip, seal_l4, next: 0, sealed: None })
    }

    /// Leaves out the first `segments`, which were written before.
    #[must_use]
    pub fn skip(self, segments: u32) -> Self {
        Self { next: segments.min(self.total()), ..self }
    }

    /// Segments that are still to come, at most the payload's bytes divided by the MSS, rounded up. A packet
    /// without payload is one segment.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.total() - self.next
    }

    /// Bytes of the longest segment: what a buffer must hold.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.headers.len() + self.payload.len().min(self.context.mss.into())
    }

    /// Writes the next segment to the start of `buffer` and returns its length. `None` after the last, or if
    /// the buffer is shorter than the segment.
    pub fn write_next(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if self.count() == 0 {
            return None;
        }
        let mss = usize::from(self.context.mss);
        let rest = self.payload.get(self.next as usize * mss..)?;
        let chunk = rest.get(..mss).unwrap_or(rest);
        let length = self.headers.len() + chunk.len();
        let segment = buffer.get_mut(..length)?;
        let (headers, payload) = segment.split_at_mut(self.headers.len());
        headers.copy_from_slice(self.headers);
        payload.copy_from_slice(chunk);
        self.network(headers, chunk.len());
        self.transport(segment, chunk.len());
        self.next += 1;
        Some(length)
    }

    /// What is known of the checksum of the segment written last.
    #[must_use]
    pub fn sealed(&self) -> Option<Sealed> {
        self.sealed
    }

    fn total(&self) -> u32 {
        self.payload.len().div_ceil(self.context.mss.into()).max(1) as u32
    }

    /// Length, and for IPv4 identification and checksum.
    fn network(&self, headers: &mut [u8], chunk: usize) {
        let start = usize::from(self.context.mac_length);
        let end = start + usize::from(self.context.ip_length);
        let whole = headers.len() - start + chunk;
        let Some(ip) = headers.get_mut(start..end) else { return };
        if self.context.ipv4 {
            put16(ip, 2, whole as u16);
            let identification = word(ip, 4).wrapping_add(self.next as u16);
            put16(ip, 4, identification);
        } else {
            put16(ip, 4, (whole - IPV6_HEADER) as u16);
        }
        if self.seal_ip {
            seal_ipv4(ip);
        }
    }

    /// Sequence number and flags, or length; then the checksum.
    fn transport(&mut self, segment: &mut [u8], chunk: usize) {
        let end = segment.len();
        let start = usize::from(self.context.mac_length) + usize::from(self.context.ip_length);
        let Some(l4) = segment.get_mut(start..) else { return };
        let length = usize::from(self.context.l4_length) + chunk;
        if self.context.l4 == L4::Tcp {
            self.sequence(l4);
            let flags = word(l4, 12);
            put16(l4, 12, flags & (0xf000 | self.mask()));
        } else {
            put16(l4, 4, length as u16);
        }
        if let (true, Ok(field)) = (self.seal_l4, checksum_field(self.context.l4)) {
            let seed = seal_l4(l4, field.start, self.context.l4, length as u32);
            self.sealed = Some(Sealed { start, end, l4: self.context.l4, seed });
        }
    }

    fn sequence(&self, l4: &mut [u8]) {
        let advance = self.next.wrapping_mul(self.context.mss.into());
        if let Some(field) = l4.get_mut(4..).and_then(|rest| rest.first_chunk_mut::<4>()) {
            *field = u32::from_be_bytes(*field).wrapping_add(advance).to_be_bytes();
        }
    }

    fn mask(&self) -> u16 {
        let (first, last) = (self.next == 0, self.next + 1 == self.total());
        match (first, last) {
            // The only segment is first and last at once and keeps what either may keep.
            (true, true) => self.masks.first | self.masks.last,
            (true, false) => self.masks.first,
            (false, false) => self.masks.middle,
            (false, true) => self.masks.last,
        }
    }
}
