//! Joins consecutive TCP segments of one stream into a larger packet, for a receiver that takes unsegmented packets: the
//! reverse of [`segment`](crate::segment).
//!
//! The rules are those of Linux's GRO: equal addresses, ports, acknowledgement, window, flags and options, consecutive
//! sequence numbers, and equal lengths of all segments but the last, which alone may have PSH. A segment whose checksum is wrong
//! is never joined, since the packet gets a new one.
//!
//! A packet holds a stream's segments for a short time only: the caller [takes](SegmentCoalescer::take) it before another frame
//! of the stream, and at the end of each burst.

use crate::headers::{ETHERNET_HEADER, FrameHeaders, NetworkHeaderKind, TCP_HEADER, TransportHeaderKind};
use crate::narrow::{length16, length32, low_word};
use crate::{uncut, verify};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use plane::UnsegmentedPacketLayout;
use plane::bytes::be16;
use plane::frame::{HEADROOM, TrustedChecksum};

/// Number of streams whose segments are joined at the same time.
pub const STREAMS: usize = 8;
/// Maximum number of bytes of a packet: an IP packet of 65,535 bytes behind an Ethernet header.
const LONGEST: usize = ETHERNET_HEADER + 65_535;
/// Offsets in a TCP header.
const SEQUENCE: usize = 4;
const ACKNOWLEDGEMENT: usize = 8;
const FLAGS: usize = 13;
const WINDOW: usize = 14;
const OPTIONS: usize = TCP_HEADER;
/// TCP flags (RFC 9293, 3.1).
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;

/// Relation of a frame to TCP streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameClass {
    /// The frame may belong to any stream, such as a fragment or a tagged frame: it may not pass a packet of its receiver.
    Other,
    /// The frame is UDP or SCTP, and belongs to no TCP stream.
    Unrelated,
    /// The frame belongs to a TCP stream and is not joined. It may not pass the packet of its stream.
    Single(TcpSegment),
    /// The frame may begin or continue a packet.
    Segment(TcpSegment),
}

/// Layout of a TCP segment without VLAN tag, IP options or extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSegment {
    ipv4: bool,
    l4: usize,
    payload: usize,
    length: usize,
    flags: u8,
    sequence: u32,
}

impl FrameClass {
    /// Examines a frame without VLAN tag. The bytes of a trusted checksum are not summed up again.
    #[must_use]
    pub fn of(frame: &[u8], sealed: Option<TrustedChecksum>) -> Self {
        let headers = FrameHeaders::parse(frame);
        let plain = headers.tags == 0 && !headers.extended && !headers.fragment && !headers.is_readdressed();
        match headers.l4 {
            _ if !plain => return Self::Other,
            TransportHeaderKind::None => return Self::Other,
            TransportHeaderKind::Udp | TransportHeaderKind::Sctp => return Self::Unrelated,
            TransportHeaderKind::Tcp => {}
        }
        let tcp = frame.get(headers.l4_offset..).and_then(|tcp| tcp.first_chunk::<TCP_HEADER>());
        let Some(tcp) = tcp else { return Self::Other };
        let segment = TcpSegment {
            ipv4: headers.l3 == NetworkHeaderKind::Ipv4,
            l4: headers.l4_offset,
            payload: headers.l4_offset + headers.l4_length,
            length: frame.len(),
            flags: tcp[FLAGS],
            sequence: u32::from_be_bytes(core::array::from_fn(|at| tcp[SEQUENCE + at])),
        };
        let usual = segment.flags & !(PSH | ECE) == ACK && segment.is_whole(frame);
        // Padding behind the packet would become payload.
        let whole =
            headers.l3_end == Some(frame.len()) && frame.len() > segment.payload && frame.len() <= LONGEST;
        // The sums come last: they are the most expensive part.
        let right = usual
            && whole
            && verify::network(frame, &headers) != Some(false)
            && verify::transport(frame, &headers, sealed) == Some(true);
        if right { Self::Segment(segment) } else { Self::Single(segment) }
    }
}

impl TcpSegment {
    /// Returns true if the segment is in an IPv4 packet, false if in an IPv6 packet.
    #[must_use]
    pub fn is_ipv4(&self) -> bool {
        self.ipv4
    }

    fn payload_bytes(&self) -> usize {
        self.length - self.payload
    }

    /// Returns the bytes that are equal in all frames of a stream: IP addresses and ports.
    fn stream(&self) -> [Range<usize>; 2] {
        let addresses = if self.ipv4 { self.l4 - 8..self.l4 } else { self.l4 - 32..self.l4 };
        [addresses, self.l4..self.l4 + SEQUENCE]
    }

    /// Returns true if the packet must not be fragmented, as a segment of its own could not be.
    fn is_whole(&self, frame: &[u8]) -> bool {
        !self.ipv4 || be16(frame, ETHERNET_HEADER + 6).is_some_and(|fragment| fragment == 0x4000)
    }

    /// Returns the bytes of the headers that are equal in all segments of a packet, without the flags.
    fn equal(&self) -> [Range<usize>; 4] {
        // The first bytes are Ethernet addresses, type, and IP version, traffic class and flow label.
        let network = ETHERNET_HEADER;
        let (first, limits) = if self.ipv4 {
            (0..network + 2, network + 6..network + 10)
        } else {
            (0..network + 4, network + 6..network + 8)
        };
        let window = self.l4 + WINDOW..self.l4 + WINDOW + 2;
        [first, limits, self.l4 + ACKNOWLEDGEMENT..self.l4 + FLAGS, window]
    }

    fn options(&self) -> Range<usize> {
        self.l4 + OPTIONS..self.payload
    }
}

/// Number and bytes of the segments in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoalescedSegments {
    /// Number of segments in the packet.
    pub count: u32,
    /// Number of bytes in all segments, each with its headers, without VLAN tags.
    pub bytes: u64,
}

/// Packet that grows by the segments of one stream.
#[derive(Debug)]
pub struct CoalescedPacket<R> {
    receiver: R,
    first: TcpSegment,
    /// [`HEADROOM`], and the packet.
    buffer: Vec<u8>,
    /// Number of bytes of the packet.
    length: usize,
    count: u32,
    /// Sequence number of the segment that would continue the packet.
    next: u32,
    /// True if no segment may follow.
    closed: bool,
}

impl<R> CoalescedPacket<R> {
    /// Returns the receiver of the packet.
    pub fn receiver(&self) -> &R {
        &self.receiver
    }

    /// Returns number and bytes of the packet's segments.
    pub fn segments(&self) -> CoalescedSegments {
        let headers = u64::from(self.count) * self.first.payload as u64;
        CoalescedSegments { count: self.count, bytes: headers + (self.length - self.first.payload) as u64 }
    }

    /// Completes the headers. Returns [`HEADROOM`] with the packet behind it, and the packet's layout. A packet of one segment
    /// is the frame that came, with a right checksum.
    pub fn complete(&mut self) -> (&mut [u8], UnsegmentedPacketLayout) {
        let TcpSegment { ipv4, l4, payload, .. } = self.first;
        let mss = length16(self.first.payload_bytes());
        let layout = UnsegmentedPacketLayout { ipv4, l3: ETHERNET_HEADER, l4, payload, mss };
        let packet = &mut self.buffer[..HEADROOM + self.length];
        if self.count > 1 {
            uncut::complete(&layout, &mut packet[HEADROOM..]);
        }
        (packet, layout)
    }

    fn begin(&mut self, receiver: R, segment: &TcpSegment, frame: &[u8]) {
        if self.buffer.is_empty() {
            self.buffer = vec![0; HEADROOM + LONGEST];
        }
        self.buffer[HEADROOM..][..frame.len()].copy_from_slice(frame);
        (self.receiver, self.first, self.length) = (receiver, *segment, frame.len());
        (self.count, self.next) = (1, segment.sequence.wrapping_add(length32(segment.payload_bytes())));
        self.closed = false;
    }

    /// Returns true if a segment of the packet's stream continues the packet.
    fn continues(&self, segment: &TcpSegment, frame: &[u8]) -> bool {
        let (own, bytes) = (&self.buffer[HEADROOM..], segment.payload_bytes());
        let TcpSegment { ipv4, l4, payload, flags, .. } = self.first;
        // Its receiver may have too few buffers, so the packet has to be one that can be cut again.
        let fits = self.count < uncut::MAX_SEGMENTS
            && bytes <= self.first.payload_bytes()
            && self.length + bytes <= LONGEST;
        let same_layout = (ipv4, l4, payload) == (segment.ipv4, segment.l4, segment.payload);
        let same_flags = (flags ^ segment.flags) & !PSH == 0;
        if self.closed || !fits || !same_layout || !same_flags || segment.sequence != self.next {
            return false;
        }
        let same = |range: Range<usize>| own.get(range.clone()) == frame.get(range);
        segment.equal().into_iter().all(same) && same(segment.options()) && self.follows(frame)
    }

    /// Returns true if the identification of an IPv4 packet is the next one, or equal as in all segments of a stream that does
    /// not count them (RFC 6864).
    fn follows(&self, frame: &[u8]) -> bool {
        const IDENTIFICATION: usize = ETHERNET_HEADER + 4;
        let first = be16(&self.buffer[HEADROOM..], IDENTIFICATION);
        let (Some(first), Some(own)) = (first, be16(frame, IDENTIFICATION)) else { return false };
        !self.first.ipv4 || own == first || own == first.wrapping_add(low_word(self.count.into()))
    }

    fn join(&mut self, segment: &TcpSegment, frame: &[u8]) {
        let (payload, end) = (&frame[segment.payload..], HEADROOM + self.length);
        self.buffer[end..end + payload.len()].copy_from_slice(payload);
        self.buffer[HEADROOM + self.first.l4 + FLAGS] |= segment.flags & PSH;
        self.length += payload.len();
        self.count += 1;
        self.next = self.next.wrapping_add(length32(payload.len()));
        self.closed = payload.len() < self.first.payload_bytes() || segment.flags & PSH != 0;
    }

    fn is_of_stream(&self, segment: &TcpSegment, frame: &[u8]) -> bool {
        let own = &self.buffer[HEADROOM..];
        self.first.ipv4 == segment.ipv4
            && segment.stream().into_iter().all(|range| own.get(range.clone()) == frame.get(range))
    }
}

/// Decision on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoalesceDecision {
    /// The frame is in a packet, and must not be delivered.
    Held,
    /// The packet in this place must be taken and delivered first. Then the frame is offered again.
    After(usize),
    /// The frame must be delivered as it is.
    Deliver,
}

/// Packets of up to [`STREAMS`] streams, each with the properties `R` of its receiver. Streams with different properties are
/// never joined.
#[derive(Debug)]
pub struct SegmentCoalescer<R> {
    /// Packets, the oldest first.
    packets: Vec<CoalescedPacket<R>>,
    /// Memory of packets that were delivered.
    spare: Vec<CoalescedPacket<R>>,
}

impl<R> Default for SegmentCoalescer<R> {
    fn default() -> Self {
        Self { packets: Vec::with_capacity(STREAMS), spare: Vec::with_capacity(STREAMS) }
    }
}

impl<R: Copy + PartialEq> SegmentCoalescer<R> {
    /// Returns true if no packet is held.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Offers a frame, without VLAN tag, for a receiver. `is_same` returns true if a packet with these properties goes to
    /// the same receiver, whatever their other properties.
    pub fn offer(
        &mut self,
        receiver: R,
        (class, frame): (&FrameClass, &[u8]),
        is_same: impl Fn(&R) -> bool,
    ) -> CoalesceDecision {
        let (segment, joins) = match class {
            FrameClass::Other => {
                let first = self.packets.iter().position(|packet| is_same(&packet.receiver));
                return first.map_or(CoalesceDecision::Deliver, CoalesceDecision::After);
            }
            FrameClass::Unrelated => return CoalesceDecision::Deliver,
            FrameClass::Single(segment) => (segment, false),
            FrameClass::Segment(segment) => (segment, true),
        };
        let own =
            |packet: &CoalescedPacket<R>| is_same(&packet.receiver) && packet.is_of_stream(segment, frame);
        if let Some(place) = self.packets.iter().position(own) {
            let packet = &mut self.packets[place];
            if !joins || packet.receiver != receiver || !packet.continues(segment, frame) {
                return CoalesceDecision::After(place);
            }
            packet.join(segment, frame);
            return CoalesceDecision::Held;
        }
        // A packet that PSH ends at its first segment has nothing to wait for.
        if !joins || segment.flags & PSH != 0 {
            return CoalesceDecision::Deliver;
        }
        if self.packets.len() == STREAMS {
            return CoalesceDecision::After(0);
        }
        let mut packet = self.spare.pop().unwrap_or_else(|| CoalescedPacket {
            receiver,
            first: *segment,
            buffer: Vec::new(),
            length: 0,
            count: 0,
            next: 0,
            closed: false,
        });
        packet.begin(receiver, segment, frame);
        self.packets.push(packet);
        CoalesceDecision::Held
    }

    /// Returns the place of the oldest packet for which `wanted` returns true.
    #[must_use]
    pub fn find(&self, wanted: impl Fn(&R) -> bool) -> Option<usize> {
        self.packets.iter().position(|packet| wanted(&packet.receiver))
    }

    /// Takes the packet in a place out, to be delivered. The caller [gives it back](Self::give_back).
    pub fn take(&mut self, place: usize) -> Option<CoalescedPacket<R>> {
        (place < self.packets.len()).then(|| self.packets.remove(place))
    }

    /// Keeps the memory of a delivered packet for another one.
    pub fn give_back(&mut self, packet: CoalescedPacket<R>) {
        if self.spare.len() < STREAMS {
            self.spare.push(packet);
        }
    }
}
