//! Segments a packet: one large TCP segment or UDP datagram becomes many that fit the wire, each with its own lengths,
//! identification, sequence number, flags and checksums.
//!
//! A guest chooses the lengths of headers and the segment size, so the output may be hundreds of times as long as
//! the input: a caller limits the length of a segment ([`Segmenter::longest`]) and the number of segments
//! ([`Segmenter::count`]), not of packets.
//!
//! Callers fetch the packet, and add VLAN tags to each segment.

use crate::OffloadRequest;
use crate::checksum::PartialChecksum;
use crate::headers::{ETHERNET_HEADER, IPV4_HEADER, IPV6_HEADER, TCP_HEADER, UDP_HEADER};
use crate::narrow::{length16, length32, low_word};
use core::ops::Range;
use plane::frame::{TransportProtocol, TrustedChecksum};
use thiserror::Error;

/// Shortest frame in bytes: a shorter segment is padded, and needs room behind it.
const SHORTEST: usize = 60;

/// Reason why a packet cannot be segmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SegmentationError {
    /// The requested segment size is zero.
    #[error("cannot segment the packet: the segment size is zero")]
    SegmentSize,
    /// The request gives a header less than its minimum length.
    #[error("cannot segment the packet: a header is shorter than the protocol's minimum")]
    HeaderTooShort,
    /// The headers are longer than the packet.
    #[error("cannot segment the packet: the headers are longer than the packet")]
    HeaderTooLong,
    /// The transport is neither TCP nor UDP.
    #[error("cannot segment the packet: the transport is neither TCP nor UDP")]
    Transport,
}

/// Masks of TCP flags, twelve bits each, for the first, the middle and the last segments. A flag stays in a segment if
/// the segment's mask has its bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpFlagMasks {
    /// Mask of TCP flags for the first of several segments.
    pub first: u16,
    /// Mask of TCP flags for the segments between first and last.
    pub middle: u16,
    /// Mask of TCP flags for the last of several segments.
    pub last: u16,
}

impl TcpFlagMasks {
    /// Usual masks of TCP flags: FIN and PSH stay in the last segment only. CWR stays in the first only, because CWR
    /// answers one congestion event (RFC 3168, 6.1.2).
    pub const DEFAULT: Self = Self { first: 0xff6, middle: 0xf76, last: 0xf7f };
}

/// Sums of header bytes that all segments of a packet share, so that they need not be summed up again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SharedHeaderSums {
    /// Sum of the IPv4 header without length, identification and checksum.
    pub(crate) ip: PartialChecksum,
    /// Sum of the transport header without options, the seed in its checksum field. TCP's sequence number and flags, or
    /// UDP's length, are left out.
    pub(crate) l4: PartialChecksum,
    /// Sum of the pseudo header without the length, which the driver leaves in the checksum field.
    seed: PartialChecksum,
}

impl SharedHeaderSums {
    /// Sums up IP and transport headers, which must have their minimum lengths.
    fn of(ip: &[u8], l4: &[u8], transport: TransportProtocol) -> Self {
        let ip = PartialChecksum::of(&ip[..2]).bytes(&ip[6..10]).bytes(&ip[12..]);
        let (l4, seed) = match transport {
            TransportProtocol::Tcp => {
                (PartialChecksum::of(&l4[..4]).bytes(&l4[8..12]).bytes(&l4[14..TCP_HEADER]), &l4[16..18])
            }
            _ => (PartialChecksum::of(&l4[..4]).bytes(&l4[6..UDP_HEADER]), &l4[6..8]),
        };
        Self { ip, l4, seed: PartialChecksum::of(seed) }
    }

    /// Returns the sums without the packet's length, which the driver has included in the seed.
    fn without_length(self, length: u32) -> Self {
        Self { l4: self.l4.number(!length), seed: self.seed.number(!length), ..self }
    }
}

/// Progress of segmenting a packet, without the packet's bytes: the owner of the bytes passes them to each call.
#[derive(Debug, Clone)]
pub struct SegmentationState {
    /// Number of bytes in the headers of the packet.
    headers: usize,
    /// Number of bytes in the packet's payload.
    payload: usize,
    pub(crate) request: OffloadRequest,
    transport: TransportProtocol,
    pub(crate) mss: usize,
    masks: TcpFlagMasks,
    pub(crate) seal_ip: bool,
    pub(crate) same: SharedHeaderSums,
    /// Number of segments of the packet, at least one.
    total: u32,
    pub(crate) next: u32,
    sealed: Option<TrustedChecksum>,
}

/// Progress of segmenting a packet, together with the packet's bytes, which remain unchanged.
#[derive(Debug, Clone)]
pub struct Segmenter<'a> {
    packet: &'a [u8],
    cut: SegmentationState,
}

impl<'a> Segmenter<'a> {
    /// Prepares a packet, headers and payload contiguous, for segmentation into segments of `mss` bytes of payload
    /// each. The packet's length defines the payload. The transport's checksum field must hold the sum of the pseudo
    /// header without the length.
    ///
    /// # Errors
    /// Refuses requests whose description does not fit a packet that can be cut.
    pub fn new(
        packet: &'a [u8],
        request: &OffloadRequest,
        mss: u16,
        masks: TcpFlagMasks,
    ) -> Result<Self, SegmentationError> {
        let payload =
            packet.len().checked_sub(request.payload_start()).ok_or(SegmentationError::HeaderTooLong)?;
        Ok(Self { packet, cut: SegmentationState::new(packet, payload, request, mss, masks)? })
    }

    /// Skips the first `segments` segments of the packet, which were written before.
    #[must_use]
    pub fn skip(mut self, segments: u32) -> Self {
        self.cut.next = segments.min(self.cut.total);
        self
    }

    /// Returns the number of remaining segments, at most the payload's bytes divided by the MSS, rounded up. A
    /// packet without payload is one segment.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.cut.count()
    }

    /// Returns the number of bytes in the longest segment, which a buffer must hold.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.cut.longest()
    }

    /// Writes the next segment to the start of `buffer` and returns its length. Returns `None` after the last segment,
    /// or if the buffer is shorter than the segment.
    pub fn write_next(&mut self, buffer: &mut [u8]) -> Option<usize> {
        self.cut.write_next(self.packet, buffer)
    }

    /// Returns the transport checksum of the last written segment as a trusted one: its receiver need not sum the
    /// segment.
    #[must_use]
    pub fn sealed(&self) -> Option<TrustedChecksum> {
        self.cut.sealed
    }

    /// Returns the progress of the segmentation without the packet's bytes, for a caller that may change the packet.
    #[must_use]
    pub fn cut(self) -> SegmentationState {
        self.cut
    }
}

impl SegmentationState {
    /// Prepares a packet as [`Segmenter::new`] does. The caller passes the packet's first bytes, with all headers, and
    /// the number of bytes behind them.
    ///
    /// # Errors
    /// Returns the errors of [`Segmenter::new`].
    pub fn new(
        packet: &[u8],
        payload: usize,
        request: &OffloadRequest,
        mss: u16,
        masks: TcpFlagMasks,
    ) -> Result<Self, SegmentationError> {
        let (transport, shortest_l4) = match request.l4 {
            Some(transport @ TransportProtocol::Tcp) => (transport, TCP_HEADER),
            Some(transport @ TransportProtocol::Udp) => (transport, UDP_HEADER),
            Some(TransportProtocol::Sctp) | None => return Err(SegmentationError::Transport),
        };
        if mss == 0 {
            return Err(SegmentationError::SegmentSize);
        }
        let shortest_ip = if request.ipv4 { IPV4_HEADER } else { IPV6_HEADER };
        let (mac, ip) = (request.mac_length, request.ip_length);
        if mac < ETHERNET_HEADER || ip < shortest_ip || request.l4_length < shortest_l4 {
            return Err(SegmentationError::HeaderTooShort);
        }
        let headers = packet.get(..request.payload_start()).ok_or(SegmentationError::HeaderTooLong)?;
        let seal_ip = request.ip_checksum && request.ipv4;
        let (before, l4) = headers.split_at(mac + ip);
        let same = SharedHeaderSums::of(&before[mac..], l4, transport);
        let length = request.l4_length + payload;
        let same = if request.seed_has_length { same.without_length(length32(length)) } else { same };
        let (mss, request) = (usize::from(mss), *request);
        let headers = headers.len();
        let total = u32::try_from(payload.div_ceil(mss)).unwrap_or(u32::MAX).max(1);
        let (next, sealed) = (0, None);
        Ok(Self { headers, payload, request, transport, mss, masks, seal_ip, same, total, next, sealed })
    }

    /// Returns the number of remaining segments, see [`Segmenter::count`].
    #[must_use]
    pub fn count(&self) -> u32 {
        self.total - self.next
    }

    /// Returns the transport checksum of the last written segment, see [`Segmenter::sealed`].
    #[must_use]
    pub fn sealed(&self) -> Option<TrustedChecksum> {
        self.sealed
    }

    /// Returns the number of bytes in the longest segment.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.headers + self.payload.min(self.mss)
    }

    /// Returns the byte range of a later segment's payload in the packet, `ahead` segments after the next one. Returns
    /// `None` if there is no such segment.
    #[must_use]
    #[inline]
    pub fn chunk(&self, ahead: u32) -> Option<Range<usize>> {
        let start = (self.next + ahead) as usize * self.mss;
        let end = self.payload.min(start + self.mss);
        (ahead < self.count()).then_some(self.headers + start..self.headers + end)
    }

    fn write_next(&mut self, packet: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let chunk = self.chunk(0)?;
        let length = self.headers + chunk.len();
        let segment = buffer.get_mut(..length)?;
        let (headers, payload) = segment.split_at_mut(self.headers);
        headers.copy_from_slice(packet.get(..self.headers)?);
        payload.copy_from_slice(packet.get(chunk)?);
        self.complete(segment);
        Some(length)
    }

    /// Makes the next segment, behind `lead` free bytes, and returns it with its length. As many free bytes precede the
    /// packet. Nearly every segment is made within the packet: its headers overwrite payload that was sent before. The
    /// first one is made in `place`, and so is one that has to be padded, or that would overwrite the packet's own
    /// headers. Returns `None` after the last, or if `place` is too short.
    pub fn next_within<'b>(
        &mut self,
        packet: &'b mut [u8],
        place: &'b mut [u8],
        lead: usize,
    ) -> Option<(&'b mut [u8], usize)> {
        let Range { start, end } = self.chunk(0)?;
        let length = self.headers + end - start;
        if self.next == 0 || self.mss < self.headers + lead || length < SHORTEST {
            let length = self.write_next(packet.get(lead..)?, place.get_mut(lead..)?)?;
            return Some((place, length));
        }
        let begin = start - self.headers;
        packet.get_mut(..lead + end)?.copy_within(lead..lead + self.headers, lead + begin);
        let segment = packet.get_mut(begin..lead + end)?;
        self.complete(segment.get_mut(lead..)?);
        Some((segment, length))
    }

    /// Skips the next `segments` segments of the packet, which the caller has written.
    pub fn pass(&mut self, segments: u32) {
        self.next = self.next.saturating_add(segments).min(self.total);
    }

    /// Completes the next segment, which holds copies of the packet's headers and its own payload.
    pub fn complete(&mut self, segment: &mut [u8]) {
        let (headers, payload) = segment.split_at_mut(self.headers);
        self.complete_headers(headers, payload.len(), PartialChecksum::of(payload));
    }

    /// Completes the headers of the next segment. `headers` is a copy of the packet's headers; `payload` is the number
    /// of payload bytes, `sum` their sum.
    pub fn complete_headers(&mut self, headers: &mut [u8], payload: usize, sum: PartialChecksum) {
        self.network(headers, payload);
        self.transport(headers, payload, sum);
        self.next += 1;
    }

    /// Writes the length into a segment's network header. For IPv4, writes identification and checksum too.
    fn network(&self, headers: &mut [u8], chunk: usize) {
        let start = self.request.mac_length;
        let whole = headers.len() - start + chunk;
        let rest = headers.get_mut(start..).unwrap_or_default();
        let Some(ip) = rest.first_chunk_mut::<IPV4_HEADER>() else { return };
        if !self.request.ipv4 {
            [ip[4], ip[5]] = length16(whole - IPV6_HEADER).to_be_bytes();
            return;
        }
        let identification = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(low_word(self.next.into()));
        [ip[2], ip[3]] = length16(whole).to_be_bytes();
        [ip[4], ip[5]] = identification.to_be_bytes();
        if self.seal_ip {
            let sum = self.same.ip.number(length32(whole) << 16 | u32::from(identification));
            [ip[10], ip[11]] = sum.checksum().to_be_bytes();
        }
    }

    /// Writes sequence number and flags (TCP) or the length (UDP) into a segment's transport header; then the checksum.
    fn transport(&mut self, headers: &mut [u8], payload: usize, sum: PartialChecksum) {
        let (start, end) = (self.headers - self.request.l4_length, self.headers + payload);
        let length = length32(end - start);
        let l4 = headers.get_mut(start..).unwrap_or_default();
        match self.transport {
            TransportProtocol::Tcp => self.tcp(l4, length, sum),
            _ => self.udp(l4, length, sum),
        }
        if self.request.l4_checksum {
            let seed = self.same.seed.number(length).value();
            self.sealed = Some(TrustedChecksum { start, end, transport: self.transport, seed });
        }
    }

    fn tcp(&self, l4: &mut [u8], length: u32, payload: PartialChecksum) {
        let Some((header, options)) = l4.split_first_chunk_mut::<TCP_HEADER>() else { return };
        let advance = self.next.wrapping_mul(length32(self.mss));
        let sequence = [header[4], header[5], header[6], header[7]];
        let sequence = u32::from_be_bytes(sequence).wrapping_add(advance);
        let flags = u16::from_be_bytes([header[12], header[13]]) & (0xf000 | self.mask(self.next));
        [header[4], header[5], header[6], header[7]] = sequence.to_be_bytes();
        [header[12], header[13]] = flags.to_be_bytes();
        if self.request.l4_checksum {
            let sum = self.same.l4.number(sequence).number(flags.into()).number(length);
            let payload = payload.behind(options.len());
            [header[16], header[17]] = sum.bytes(options).sum(payload).checksum().to_be_bytes();
        }
    }

    fn udp(&self, l4: &mut [u8], length: u32, payload: PartialChecksum) {
        let Some((header, more)) = l4.split_first_chunk_mut::<UDP_HEADER>() else { return };
        [header[4], header[5]] = low_word(length.into()).to_be_bytes();
        if self.request.l4_checksum {
            // The length counts twice: in the header, and in the pseudo header.
            let sum = self.same.l4.number(length).number(length).bytes(more);
            let checksum = sum.sum(payload.behind(more.len())).udp_checksum();
            [header[6], header[7]] = checksum.to_be_bytes();
        }
    }

    /// Returns the mask of TCP flags of a segment.
    #[inline]
    pub(crate) fn mask(&self, at: u32) -> u16 {
        let (first, last) = (at == 0, at + 1 == self.total);
        match (first, last) {
            // The only segment is first and last at once and keeps the flags of both.
            (true, true) => self.masks.first | self.masks.last,
            (true, false) => self.masks.first,
            (false, false) => self.masks.middle,
            (false, true) => self.masks.last,
        }
    }
}
