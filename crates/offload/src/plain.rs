//! A glance at what nearly every frame is: a TCP segment or a UDP datagram in an IPv4 packet, all of it there, without
//! tags, options or fragments. Then everything is where it always is, and one look answers what [`Headers::parse`] and
//! [`verify`] answer of any frame.
//!
//! Sums are taken in words that are aligned to the frame's start: a frame was copied just before, and a load that spans two stores
//! of the copy has to wait for both to reach the cache.
//!
//! Left out: all other frames, which those look at.
//!
//! [`Headers::parse`]: crate::Headers::parse
//! [`verify`]: crate::verify

use crate::checksum::Sum;
use crate::headers::{ETHERNET_HEADER, IPV4_HEADER, TCP_HEADER, TYPE_IPV4, UDP_HEADER, protocol};
use crate::verify::is_seal_right;
use plane::frame::{Sealed, Transport};

/// Where an IPv4 header's addresses are, and where the transport is.
const ADDRESSES: usize = ETHERNET_HEADER + 12;
const TRANSPORT: usize = ETHERNET_HEADER + IPV4_HEADER;
/// Where the ports end, and the word that they are in.
const PORTS_END: usize = TRANSPORT + 4;
const HEAD: usize = PORTS_END.next_multiple_of(8);

/// A plain frame.
#[derive(Debug, Clone, Copy)]
pub struct Plain<'a> {
    head: &'a [u8; HEAD],
    frame: &'a [u8],
    /// Where the IP packet ends.
    end: usize,
    /// TCP or UDP.
    udp: bool,
    /// The sender has summed it up.
    summed: bool,
}

impl<'a> Plain<'a> {
    /// A frame whose tags, if any, are not in its bytes; `None` if it takes a closer look.
    #[must_use]
    #[inline(always)]
    pub fn of(frame: &'a [u8]) -> Option<Self> {
        let head = frame.first_chunk::<HEAD>()?;
        let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let plain = word(ETHERNET_HEADER - 2) == TYPE_IPV4
            && head[ETHERNET_HEADER] == 0x45
            && word(ETHERNET_HEADER + 6) & 0x3fff == 0;
        if !plain {
            return None;
        }
        let end = ETHERNET_HEADER + usize::from(word(ETHERNET_HEADER + 2));
        let segment = frame.get(TRANSPORT..end)?;
        match head[ETHERNET_HEADER + 9] {
            protocol::TCP => {
                let header = usize::from(segment.first_chunk::<TCP_HEADER>()?[12] >> 4) * 4;
                let fits = (TCP_HEADER..=segment.len()).contains(&header);
                fits.then_some(Self { head, frame, end, udp: false, summed: true })
            }
            protocol::UDP => {
                let [_, _, _, _, high, low, sum @ ..] = segment.first_chunk::<UDP_HEADER>()?;
                let whole = usize::from(u16::from_be_bytes([*high, *low])) == segment.len();
                let summed = *sum != [0, 0];
                whole.then_some(Self { head, frame, end, udp: true, summed })
            }
            _ => None,
        }
    }

    /// The frame.
    #[must_use]
    pub fn frame(&self) -> &'a [u8] {
        self.frame
    }

    /// It is UDP, else TCP.
    #[must_use]
    #[inline(always)]
    pub fn is_udp(&self) -> bool {
        self.udp
    }

    /// Both addresses and both ports, twelve bytes, six in each number: what tells one conversation from another.
    #[must_use]
    #[inline(always)]
    pub fn ends(&self) -> [u64; 2] {
        let words = self.head.as_chunks::<8>().0;
        let [first, second] = [ADDRESSES / 8, PORTS_END / 8].map(|word| u64::from_le_bytes(words[word]));
        [first >> (8 * (ADDRESSES % 8)), second << (64 - 8 * (PORTS_END % 8))]
    }

    /// Bytes before the IP header.
    #[must_use]
    #[inline(always)]
    pub fn l3_offset(&self) -> usize {
        ETHERNET_HEADER
    }

    /// Bytes before the transport header.
    #[must_use]
    #[inline(always)]
    pub fn l4_offset(&self) -> usize {
        TRANSPORT
    }

    /// Whether the IPv4 header's checksum is right.
    #[must_use]
    #[inline(always)]
    pub fn is_network_right(&self) -> bool {
        let head = self.head;
        Sum::of(&head[ETHERNET_HEADER..16]).bytes(&head[16..32]).bytes(&head[32..TRANSPORT]).checksum() == 0
    }

    /// Whether the transport's checksum is right; `None` if it was sent without one. What was `sealed` on the plane needs no
    /// second look at the payload. The addresses of the pseudo header stand just before what it is about.
    #[must_use]
    #[inline(always)]
    pub fn is_transport_right(&self, sealed: Option<Sealed>) -> Option<bool> {
        if !self.summed {
            return None;
        }
        let (protocol, transport) =
            if self.udp { (protocol::UDP, Transport::Udp) } else { (protocol::TCP, Transport::Tcp) };
        let number = u32::from(protocol) << 16 | (self.end - TRANSPORT) as u32;
        let addresses = Sum::of(&self.head[ADDRESSES..32]);
        Some(match sealed {
            Some(sealed)
                if (sealed.start, sealed.end, sealed.transport) == (TRANSPORT, self.end, transport) =>
            {
                is_seal_right(&sealed, addresses.bytes(&self.head[32..TRANSPORT]).number(number))
            }
            _ => addresses.bytes(&self.frame[32..self.end]).number(number).checksum() == 0,
        })
    }
}
