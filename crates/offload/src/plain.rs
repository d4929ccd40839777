//! Checks plain frames, nearly all of them, in few steps: a plain frame is a complete TCP segment or UDP datagram in an
//! IPv4 packet without tags, options or fragments. Every field then has a fixed offset, and the first bytes tell what
//! [`FrameHeaders::parse`] and [`verify`] tell of any frame.
//!
//! The glance needs the frame's first bytes only; the rest can be summed up while it is copied. Words are aligned
//! to the frame's start: a frame was copied just before, and a load that spans two stores of the copy has to wait
//! for both to reach the cache.
//!
//! All other frames need [`FrameHeaders::parse`] and [`verify`].
//!
//! [`FrameHeaders::parse`]: crate::FrameHeaders::parse
//! [`verify`]: crate::verify

use crate::checksum::PartialChecksum;
use crate::headers::{
    ETHERNET_HEADER, IPV4_CHECKSUM, IPV4_HEADER, TCP_CHECKSUM, TCP_HEADER, UDP_CHECKSUM, UDP_HEADER, protocol,
};
use crate::narrow::{length16, length32, low_word};
use crate::verify::is_seal_right;
use plane::frame::{TransportProtocol, TrustedChecksum};

/// Number of a frame's first bytes that [`PlainFrame`] examines. A caller copies as many for a [`UnsummedFrame`].
pub const LOOK: usize = 48;
pub(crate) const HEAD: usize = 64;
/// Offset in a plain frame of the first byte that the payload's sum includes. The words before are in [`LOOK`].
const SUM_FROM: usize = 32;
/// Offset in a plain frame of the addresses of the IPv4 header, bytes.
const ADDRESSES: usize = ETHERNET_HEADER + 12;
/// Offset in a plain frame of the transport header, bytes.
const TRANSPORT: usize = ETHERNET_HEADER + IPV4_HEADER;
/// Offset in a plain frame of the first byte behind the two ports, bytes.
const PORTS_END: usize = TRANSPORT + 4;

/// Properties of a plain frame: transport, and which checksums are right, a bit each. The number is below
/// [`PlainFrameKind::ALL`], and is an index in a card's table of descriptor words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlainFrameKind(u32);

impl PlainFrameKind {
    /// Number of combinations of properties of a plain frame.
    pub const ALL: usize = 16;
    /// Bit of a wrong transport checksum. It is the lowest bit, so that the carry of a comparison can be added.
    const TRANSPORT_WRONG: u32 = 1;
    const UDP: u32 = 2;
    const NETWORK_WRONG: u32 = 4;
    const SUMMED: u32 = 8;

    /// Returns the properties of plain frames for an index in a card's table of descriptor words.
    #[must_use]
    pub const fn of(index: usize) -> Self {
        Self(length32(index) & 15)
    }

    /// Returns the frame's properties as an index in a card's table of descriptor words.
    #[must_use]
    #[inline(always)]
    pub const fn index(self) -> usize {
        (self.0 & 15) as usize
    }

    /// Returns true if the plain frame is UDP, false if it is TCP.
    #[must_use]
    pub const fn is_udp(self) -> bool {
        self.0 & Self::UDP != 0
    }

    /// Returns true if the IPv4 header's checksum is right.
    #[must_use]
    pub const fn is_network_right(self) -> bool {
        self.0 & Self::NETWORK_WRONG == 0
    }

    /// Returns these properties with a right or a wrong checksum of the IPv4 header.
    #[inline(always)]
    pub(crate) const fn with_network(self, right: bool) -> Self {
        Self(self.0 & !Self::NETWORK_WRONG | if right { 0 } else { Self::NETWORK_WRONG })
    }

    /// Returns true if the transport's checksum is right; `None` if the packet has none.
    #[must_use]
    pub const fn is_transport_right(self) -> Option<bool> {
        if self.0 & Self::SUMMED == 0 { None } else { Some(self.0 & Self::TRANSPORT_WRONG == 0) }
    }
}

/// Checksums that a card inserts into a plain frame: that of the transport, and the IPv4 header's too if `network`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InsertedChecksums {
    /// True for the checksum of UDP, false for TCP's.
    pub udp: bool,
    /// True to insert the checksum of the IPv4 header.
    pub network: bool,
}

/// Plain frame with its properties, whose checksum does not include the bytes after the first 64 yet.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnsummedFrame {
    found: PlainFrameKind,
    sum: PartialChecksum,
}

impl UnsummedFrame {
    /// Examines the first bytes of a frame of `length` bytes, followed by zeros if the frame is shorter. Returns true
    /// if the frame is plain. The bytes behind these are not summed up yet, and all of them belong to the packet.
    #[must_use]
    #[inline(always)]
    pub fn look(&mut self, head: &[u8; HEAD], length: u32) -> bool {
        if !is_plain(head) {
            return false;
        }
        let [_, w1, w2, w3, w4, w5, ..]: [u64; 8] = words(head);
        let total = u32::from(low_word(w2).swap_bytes());
        if length < length32(HEAD) || total + length32(ETHERNET_HEADER) != length {
            return self.look_at_short(head, length);
        }
        // The frame is at least as long as a head, so the transport's header is complete.
        let transport = total - length32(IPV4_HEADER);
        let Some(found) = transport_of(w2, w4, w5, transport) else { return false };
        self.found = PlainFrameKind(found | network_checksum_flag(w1, w2, w3, w4));
        let pseudo = (w3 >> 16) + ((w2 >> 56) << 8) + u64::from(low_word(transport.into()).swap_bytes());
        let Some(payload) = head.last_chunk::<{ HEAD - SUM_FROM }>() else { return false };
        self.sum = PartialChecksum::default().words(pseudo).whole(payload);
        true
    }

    /// Examines a frame that ends within its first bytes, or is longer than its packet: then no byte of the packet may
    /// be behind the first bytes.
    #[cold]
    #[inline(never)]
    fn look_at_short(&mut self, head: &[u8; HEAD], length: u32) -> bool {
        let plain = head.first_chunk().and_then(|head| PlainFrame::of(head, length as usize));
        let within = plain.filter(|_| length as usize <= HEAD);
        let glance =
            within.and_then(|plain| Some(plain.glance(PartialChecksum::of(head.get(SUM_FROM..plain.end)?))));
        *self = glance.unwrap_or_default();
        glance.is_some()
    }

    /// Returns true if the frame is plain UDP, false if it is TCP.
    #[must_use]
    #[inline(always)]
    pub fn is_udp(&self) -> bool {
        self.found.is_udp()
    }

    /// Inserts checksums into the first bytes of the examined frame, as [`insert`](crate::insert::insert) does, given
    /// the sum of the little-endian words of the rest. The transport's field holds the sender's sum of the pseudo
    /// header, which counts as it is: if it is wrong, so is the checksum.
    #[inline(always)]
    pub fn insert(&mut self, head: &mut [u8; HEAD], rest: u64, insertion: InsertedChecksums) {
        if insertion.network {
            put(head, ETHERNET_HEADER + IPV4_CHECKSUM, 0);
            let checksum = PartialChecksum::of(&head[ETHERNET_HEADER..TRANSPORT]).checksum();
            put(head, ETHERNET_HEADER + IPV4_CHECKSUM, checksum);
            self.found.0 &= !PlainFrameKind::NETWORK_WRONG;
        }
        let field = TRANSPORT + if insertion.udp { UDP_CHECKSUM } else { TCP_CHECKSUM };
        let seed = u16::from_le_bytes([head[field], head[field + 1]]);
        let sum = PartialChecksum::of(&head[TRANSPORT..]).words(rest);
        let checksum = if insertion.udp { sum.udp_checksum() } else { sum.checksum() };
        put(head, field, checksum);
        // The sum so far includes the seed, which the checksum has replaced.
        self.sum = self.sum.words((!seed).into()).words(checksum.swap_bytes().into());
        self.found.0 |= PlainFrameKind::SUMMED;
    }

    /// Adds the sum of the little-endian words of the rest of the payload, and returns the plain frame's properties.
    #[must_use]
    #[inline(always)]
    pub fn finish(self, rest: u64) -> PlainFrameKind {
        // A frame without a checksum may get the bit too: it counts with `SUMMED` only.
        let wrong = !self.sum.words(rest).is_zero();
        PlainFrameKind(self.found.0 + u32::from(wrong) * PlainFrameKind::TRANSPORT_WRONG)
    }
}

/// Returns true if type, version and header length are those of IPv4 without options, and the packet is not a
/// fragment.
#[inline(always)]
fn is_plain(head: &[u8]) -> bool {
    let (dwords, _) = head.as_chunks::<4>();
    let [kind, fragment] = [3, 5].map(|at| u32::from_le_bytes(dwords[at]));
    kind & 0x00ff_ffff == 0x0045_0008 && fragment & 0xff3f == 0
}

/// Returns the property bits of a transport header at `transport` bytes; `None` if the header or its length is invalid.
#[inline(always)]
fn transport_of(w2: u64, w4: u64, w5: u64, transport: u32) -> Option<u32> {
    match (w2 >> 56) as u8 {
        protocol::TCP => {
            let header = (w5 >> 52 & 0xf) as u32 * 4;
            let least = length32(TCP_HEADER);
            let more = transport.checked_sub(least)?;
            (header.wrapping_sub(least) <= more).then_some(PlainFrameKind::SUMMED)
        }
        protocol::UDP => {
            let whole = u32::from(((w4 >> 48) as u16).swap_bytes()) == transport;
            let summed = if low_word(w5) == 0 { 0 } else { PlainFrameKind::SUMMED };
            whole.then_some(PlainFrameKind::UDP | summed)
        }
        _ => None,
    }
}

/// Checks the IPv4 header checksum in the first words of a frame. Returns [`PlainFrameKind::NETWORK_WRONG`] if it is
/// wrong, or 0.
#[inline(always)]
fn network_checksum_flag(w1: u64, w2: u64, w3: u64, w4: u64) -> u32 {
    let sum = PartialChecksum::default().words(w2).words(w3).words((w1 >> 48) + (w4 & 0xffff));
    if sum.is_zero() { 0 } else { PlainFrameKind::NETWORK_WRONG }
}

/// First bytes of a plain frame: complete TCP or UDP in IPv4 without tags, options or fragments.
#[derive(Debug, Clone, Copy)]
pub struct PlainFrame<'a> {
    head: &'a [u8; LOOK],
    /// Offset in the frame of the end of the IP packet.
    end: usize,
    found: PlainFrameKind,
}

impl<'a> PlainFrame<'a> {
    /// Examines a frame of `length` bytes, whose VLAN tags, if any, are beside its bytes. Returns `None` if the frame
    /// is not plain.
    #[must_use]
    #[inline(always)]
    pub fn of(head: &'a [u8; LOOK], length: usize) -> Option<Self> {
        let [_, w1, w2, w3, w4, w5] = words(head);
        let end = ETHERNET_HEADER + usize::from(low_word(w2).swap_bytes());
        let transport = end.checked_sub(TRANSPORT).filter(|_| is_plain(head) && end <= length)?;
        let found = transport_of(w2, w4, w5, length32(transport)).filter(|_| transport >= UDP_HEADER)?;
        Some(Self { head, end, found: PlainFrameKind(found | network_checksum_flag(w1, w2, w3, w4)) })
    }

    /// Returns true if the frame is UDP, false if it is TCP.
    #[must_use]
    #[inline(always)]
    pub fn is_udp(&self) -> bool {
        self.found.is_udp()
    }

    /// Returns both addresses and both ports of the frame, which identify a flow: six of the twelve bytes in each
    /// number.
    #[must_use]
    #[inline(always)]
    pub fn ends(&self) -> [u64; 2] {
        let [_, _, _, first, second, _] = words(self.head);
        [first >> (8 * (ADDRESSES % 8)), second << (64 - 8 * (PORTS_END % 8))]
    }

    /// Returns the addresses and the ports of [`PlainFrame::ends`] as bytes.
    #[must_use]
    pub fn end_bytes(&self) -> (&'a [u8], &'a [u8]) {
        (&self.head[ADDRESSES..TRANSPORT], &self.head[TRANSPORT..PORTS_END])
    }

    /// Starts the checksums of the frame with a sum of its bytes from [`SUM_FROM`] on. The addresses of the pseudo
    /// header stand just before the transport header.
    #[inline(always)]
    fn glance(&self, payload: PartialChecksum) -> UnsummedFrame {
        let [_, _, w2, w3, ..]: [u64; 6] = words(self.head);
        let transport = length16(self.end - TRANSPORT);
        let pseudo = (w3 >> 16) + ((w2 >> 56) << 8) + u64::from(transport.swap_bytes());
        UnsummedFrame { found: self.found, sum: payload.words(pseudo) }
    }

    /// Returns the properties of a whole plain frame. A payload whose checksum is trusted (`sealed`) is not summed up
    /// again.
    #[must_use]
    #[inline(always)]
    pub fn find(&self, frame: &[u8], sealed: Option<TrustedChecksum>) -> PlainFrameKind {
        match sealed.and_then(|sealed| self.find_sealed(&sealed)) {
            Some(found) => found,
            None if self.found.0 & PlainFrameKind::SUMMED == 0 => self.found,
            None => {
                self.glance(PartialChecksum::of(frame.get(SUM_FROM..self.end).unwrap_or_default())).finish(0)
            }
        }
    }

    /// Returns the properties of a plain frame with a trusted checksum, or `None` if that checksum is of another range
    /// or transport.
    #[must_use]
    #[inline(always)]
    pub fn find_sealed(&self, sealed: &TrustedChecksum) -> Option<PlainFrameKind> {
        let (number, transport) = if self.is_udp() {
            (protocol::UDP, TransportProtocol::Udp)
        } else {
            (protocol::TCP, TransportProtocol::Tcp)
        };
        if (sealed.start, sealed.end, sealed.transport) != (TRANSPORT, self.end, transport) {
            return None;
        }
        let number = u32::from(number) << 16 | length32(self.end - TRANSPORT);
        let pseudo = PartialChecksum::of(&self.head[ADDRESSES..TRANSPORT]).number(number);
        let wrong = self.found.0 & PlainFrameKind::SUMMED != 0 && !is_seal_right(sealed, pseudo);
        Some(PlainFrameKind(self.found.0 | if wrong { PlainFrameKind::TRANSPORT_WRONG } else { 0 }))
    }
}

/// Writes a number into the first bytes of a frame in network byte order.
#[inline(always)]
pub(crate) fn put(head: &mut [u8; HEAD], at: usize, value: u16) {
    [head[at], head[at + 1]] = value.to_be_bytes();
}

/// Returns the first bytes of a frame as little-endian words.
#[inline(always)]
fn words<const WORDS: usize>(head: &[u8]) -> [u64; WORDS] {
    let (words, _) = head.as_chunks::<8>();
    core::array::from_fn(|at| u64::from_le_bytes(words[at]))
}
