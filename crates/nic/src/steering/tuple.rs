//! The five-tuple filters: FTQF, SAQF, DAQF and SPQF, with IMIR and IMIREXT of the same number. Of several hits the one with
//! the highest priority decides, and among equal ones the first. Addresses are IPv4's: a filter that compares one matches
//! no other packet.

use crate::file::RegisterFile;
use i82576::bits::{ftqf, imir, imirext};
use i82576::register as r;
use i82576::{PoolIndex, QueueIndex};
use offload::headers::{FrameHeaders, NetworkHeaderKind, TransportHeaderKind};

/// Offset of the source address in an IPv4 header, bytes (RFC 791).
const SOURCE: usize = 12;
/// Offset of the destination address in an IPv4 header, bytes (RFC 791).
const DESTINATION: usize = 16;
/// TCP flags that a filter can compare: FIN, SYN, RST, PSH, ACK, URG from the lowest bit on.
const FLAGS: u8 = 0x3f;

/// Registers of a five-tuple filter, which compares a packet's addresses, ports and protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct FiveTupleFilter {
    control: u32,
    source: [u8; 4],
    destination: [u8; 4],
    source_port: [u8; 2],
    /// Register IMIR: destination port, and priority.
    port: u32,
    /// Register IMIREXT: packet size, and TCP flags.
    more: u32,
}

/// The eight five-tuple filters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FiveTupleFilters {
    filters: [FiveTupleFilter; 8],
}

impl FiveTupleFilter {
    fn load(file: &RegisterFile, i: u32) -> Self {
        Self {
            control: file.get(r::ftqf(i)),
            source: file.get(r::saqf(i)).to_le_bytes(),
            destination: file.get(r::daqf(i)).to_le_bytes(),
            source_port: (file.get(r::spqf(i)) as u16).to_le_bytes(),
            port: file.get(r::imir(i)),
            more: file.get(r::imirext(i)),
        }
    }

    /// Returns true if the filter has an effect on packets that it matches: a queue, a time stamp or an interrupt at
    /// once.
    fn acts(&self) -> bool {
        self.control & (ftqf::QUEUE_ENABLE | ftqf::TIMED) != 0 || self.port & imir::IMMEDIATE != 0
    }

    /// Returns true if a packet's headers match the filter. `flags` are those of its TCP header.
    fn knows(&self, frame: &[u8], headers: &FrameHeaders, flags: u8) -> bool {
        let any = |bit: u32| self.control & bit != 0;
        let address = |at: usize, wanted: [u8; 4]| {
            headers.l3 == NetworkHeaderKind::Ipv4 && part(frame, headers.l3_offset + at) == Some(wanted)
        };
        let port = |at: usize, wanted: [u8; 2]| {
            matches!(headers.l4, TransportHeaderKind::Tcp | TransportHeaderKind::Udp)
                && part(frame, headers.l4_offset + at) == Some(wanted)
        };
        headers.l3 != NetworkHeaderKind::None
            && (any(ftqf::ANY_PROTOCOL) || self.control as u8 == headers.protocol)
            && (any(ftqf::ANY_SOURCE) || address(SOURCE, self.source))
            && (any(ftqf::ANY_DESTINATION) || address(DESTINATION, self.destination))
            && (any(ftqf::ANY_SOURCE_PORT) || port(0, self.source_port))
            && (self.port & imir::ANY_PORT != 0 || port(2, (self.port as u16).to_le_bytes()))
            && (self.more & imirext::ANY_FLAGS != 0 || flags & self.flags() != 0)
    }

    /// Returns the TCP flags that the filter compares, in the order of a TCP header. The register has them in reverse
    /// order.
    fn flags(&self) -> u8 {
        ((self.more >> imirext::FLAGS_SHIFT) as u8 & FLAGS).reverse_bits() >> 2
    }

    /// Returns true if the filter applies to frames of `length` bytes in a pool.
    fn fits(&self, pool: Option<PoolIndex>, length: usize) -> bool {
        let named = PoolIndex::of_field(self.control >> ftqf::POOL_SHIFT);
        let pool = self.control & ftqf::ANY_POOL != 0 || pool.is_none_or(|pool| pool == named);
        pool && (self.more & imirext::ANY_SIZE != 0 || length < (self.more & imirext::SIZE) as usize)
    }
}

impl FiveTupleFilters {
    pub(super) fn load(file: &RegisterFile) -> Self {
        Self { filters: core::array::from_fn(|i| FiveTupleFilter::load(file, i as u32)) }
    }

    pub(super) fn any(&self) -> bool {
        self.filters.iter().any(FiveTupleFilter::acts)
    }

    /// Returns the five-tuple filters that match a packet, a bit each. `flags` are those of its TCP header.
    pub(super) fn hits(&self, frame: &[u8], headers: &FrameHeaders, flags: u8) -> u8 {
        self.those(|filter| filter.acts() && filter.knows(frame, headers, flags))
    }

    /// Returns the matching five-tuple filters that apply to a frame of `length` bytes in a pool.
    pub(super) fn in_pool(&self, hits: u8, pool: Option<PoolIndex>, length: usize) -> u8 {
        hits & self.those(|filter| filter.fits(pool, length))
    }

    /// Returns the queue that the matching five-tuple filters choose.
    pub(super) fn queue(&self, hits: u8) -> Option<QueueIndex> {
        let choices = self.hit(hits).filter(|filter| filter.control & ftqf::QUEUE_ENABLE != 0);
        // Of equal priorities the first filter decides, and `max_by_key` returns the last: hence the reversal.
        let best = choices.rev().max_by_key(|filter| filter.port >> imir::PRIORITY_SHIFT)?;
        Some(QueueIndex::of_field(best.control >> ftqf::QUEUE_SHIFT))
    }

    /// Returns true if one of the matching five-tuple filters interrupts at once.
    pub(super) fn immediate(&self, hits: u8) -> bool {
        self.hit(hits).any(|filter| filter.port & imir::IMMEDIATE != 0)
    }

    /// Returns true if a matching filter is for the precision time protocol.
    pub(super) fn timed(&self, hits: u8) -> bool {
        self.hit(hits).any(|filter| filter.control & ftqf::TIMED != 0)
    }

    fn hit(&self, hits: u8) -> impl DoubleEndedIterator<Item = &FiveTupleFilter> {
        self.filters.iter().enumerate().filter(move |(i, _)| hits & 1 << i != 0).map(|(_, filter)| filter)
    }

    fn those(&self, holds: impl Fn(&FiveTupleFilter) -> bool) -> u8 {
        self.filters.iter().rev().fold(0, |set, filter| set << 1 | u8::from(holds(filter)))
    }
}

/// Returns `N` bytes of the frame from `at` on, or `None` if the frame ends before.
fn part<const N: usize>(frame: &[u8], at: usize) -> Option<[u8; N]> {
    frame.get(at..)?.first_chunk().copied()
}
