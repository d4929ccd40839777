//! Receive filters: they choose a frame's queue before RSS does, make it interrupt at once, or have its arrival stamped.
//!
//! The order is that of the I210 datasheet (7.1.2, "Receive Queues Assignment"); its filters equal the 82576's except for
//! addresses and source ports. The ether type filters come first, and their last hit decides. Then come the SYN filter and
//! the five-tuple filters, in the order of RFCTL.SYNQFP; then RSS; then MRQC.DEF_Q.
//!
//! A filter names any of the sixteen queues. With pools it chooses between the two queues of a pool that the switch has
//! selected. A filter that names another pool's queue has no effect: a frame never leaves its pool.
//!
//! Flexible filters are not implemented, and the ports of fragments are not compared.

mod ethertype;
mod timed;
mod tuple;

use crate::file::RegisterFile;
use ethertype::EtherTypeFilters;
use i82576::bits::{imirvp, mrqc, rfctl, synqf};
use i82576::descriptor::rx::packet_type;
use i82576::register as r;
use i82576::{PoolIndex, QueueIndex};
use offload::headers::{FrameHeaders, TransportHeaderKind};
use timed::TimestampFilter;
use tuple::FiveTupleFilters;

/// Offset of the flags in a TCP header, bytes (RFC 9293).
const FLAGS: usize = 13;
/// SYN flag of a TCP header (RFC 9293).
const SYN: u8 = 0x02;

/// Decoded receive filters, which choose a frame's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReceiveFilters {
    /// True if a receive filter is enabled. Otherwise frames skip all filters.
    any: bool,
    types: EtherTypeFilters,
    tuples: FiveTupleFilters,
    /// Receive queue of TCP segments with the SYN flag.
    syn: Option<QueueIndex>,
    /// True if the SYN filter comes before the five-tuple filters (RFCTL.SYNQFP).
    syn_first: bool,
    /// Kind of precision time packets whose arrival is stamped, among those that a filter has found.
    timed: Option<TimestampFilter>,
    /// Lowest VLAN priority whose frames interrupt at once (IMIRVP).
    urgent: Option<u8>,
    /// Queue of frames that neither a filter nor RSS assigns (MRQC.DEF_Q).
    pub(crate) default: QueueIndex,
}

/// Filters that match a frame, independent of the pools that get it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FilterMatches {
    /// Ether type filters that match: bit i is filter i.
    types: u8,
    /// Five-tuple filters that match: bit i is filter i, before its pool and size are compared.
    tuples: u8,
    syn: bool,
    urgent: bool,
    /// True if the frame's arrival is to be stamped.
    pub(crate) timed: bool,
}

/// Result of the receive filters for a frame in one pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FilterVerdict {
    /// Receive queue that a filter chooses for the frame.
    pub(crate) queue: Option<QueueIndex>,
    /// True if the frame's interrupt ignores the vector's throttle.
    pub(crate) immediate: bool,
}

impl ReceiveFilters {
    /// Decodes the registers of the receive filters.
    pub(crate) fn load(file: &RegisterFile) -> Self {
        let (types, tuples) = (EtherTypeFilters::load(file), FiveTupleFilters::load(file));
        let (syn, priority) = (file.get(r::SYNQF), file.get(r::IMIRVP));
        let syn = (syn & synqf::QUEUE_ENABLE != 0).then(|| QueueIndex::of_field(syn >> synqf::QUEUE_SHIFT));
        let urgent = (priority & imirvp::ENABLE != 0).then_some((priority & imirvp::PRIORITY) as u8);
        Self {
            any: types.any() || tuples.any() || syn.is_some() || urgent.is_some(),
            types,
            tuples,
            syn,
            timed: TimestampFilter::load(file),
            syn_first: file.get(r::RFCTL) & rfctl::SYNQFP != 0,
            urgent,
            default: QueueIndex::of_field(file.get(r::MRQC) >> mrqc::DEFAULT_QUEUE_SHIFT & 7),
        }
    }

    /// Returns true if any receive filter is enabled.
    pub(crate) fn looks(&self) -> bool {
        self.any
    }

    /// Returns the receive filters that match a frame without its `tag`. The headers were parsed from the same bytes.
    #[inline]
    pub(crate) fn look(&self, frame: &[u8], headers: &FrameHeaders, tag: Option<u16>) -> FilterMatches {
        if self.any { self.look_closely(frame, headers, tag) } else { FilterMatches::default() }
    }

    #[cold]
    fn look_closely(&self, frame: &[u8], headers: &FrameHeaders, tag: Option<u16>) -> FilterMatches {
        let flags = match headers.l4 {
            TransportHeaderKind::Tcp => frame.get(headers.l4_offset + FLAGS).copied().unwrap_or(0),
            _ => 0,
        };
        let (types, tuples) = (self.types.hits(frame, headers), self.tuples.hits(frame, headers, flags));
        FilterMatches {
            types,
            tuples,
            timed: self.timed.is_some_and(|timed| {
                self.types.timed(types) && timed.over_ethernet(frame, headers)
                    || self.tuples.timed(tuples) && timed.over_udp(frame, headers)
            }),
            syn: self.syn.is_some() && flags & SYN != 0,
            urgent: self.urgent.zip(tag).is_some_and(|(least, tag)| (tag >> 13) as u8 >= least),
        }
    }

    /// Returns the queue and urgency that the matching filters choose for a frame, in a pool that gets the frame with
    /// `length` bytes. `pool` is `None` if there are no pools.
    #[inline]
    pub(crate) fn decide(
        &self,
        hits: FilterMatches,
        pool: Option<PoolIndex>,
        length: usize,
    ) -> FilterVerdict {
        if self.any { self.decide_closely(hits, pool, length) } else { FilterVerdict::default() }
    }

    #[cold]
    fn decide_closely(&self, hits: FilterMatches, pool: Option<PoolIndex>, length: usize) -> FilterVerdict {
        let tuples = self.tuples.in_pool(hits.tuples, pool, length);
        let tuple = self.tuples.queue(tuples);
        let syn = self.syn.filter(|_| hits.syn);
        let segment = if self.syn_first { syn.or(tuple) } else { tuple.or(syn) };
        let own = |queue: &QueueIndex| pool.is_none_or(|pool| queue.pool() == pool);
        FilterVerdict {
            queue: self.types.queue(hits.types).filter(own).or(segment.filter(own)),
            immediate: hits.urgent || self.types.immediate(hits.types) || self.tuples.immediate(tuples),
        }
    }
}

impl FilterMatches {
    /// Returns the packet type in the descriptor of a frame that an ether type filter matches, or `None` if no such
    /// filter matches.
    pub(crate) fn packet_type(self) -> Option<u16> {
        EtherTypeFilters::last(self.types).map(|filter| packet_type::ETHER_TYPE | filter as u16)
    }
}
