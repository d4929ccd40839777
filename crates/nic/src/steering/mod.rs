//! Which queue of its pool a frame goes to, where a filter says more than RSS does, and whether it interrupts at once
//! or has its arrival stamped.
//!
//! The order is that of the I210's datasheet (7.1.2, "Receive Queues Assignment"), whose filters are the 82576's but
//! for addresses and source ports: the ether type filters, of which the last hit decides; then the SYN filter and the
//! five-tuple filters, RFCTL.SYNQFP says which of them first; then RSS; then MRQC.DEF_Q.
//!
//! A filter names any of the sixteen queues. With pools it chooses between the two of the pool that the switch has
//! found, and one that names another pool's queue is no choice: a frame never leaves its pool.
//!
//! Left out: flexible filters, and the ports of fragments, which are not looked at.

mod ethertype;
mod timed;
mod tuple;

use crate::file::RegisterFile;
use ethertype::EtherTypes;
use i82576::bits::{imirvp, mrqc, rfctl, synqf};
use i82576::descriptor::rx::packet_type;
use i82576::register as r;
use i82576::{Pool, Queue};
use offload::headers::{Headers, L4};
use timed::Timed;
use tuple::Tuples;

/// Where the flags of a TCP header are, and SYN among them.
const FLAGS: usize = 13;
const SYN: u8 = 0x02;

/// The filters, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Steering {
    /// Some filter is on: without that, no frame is looked at.
    any: bool,
    types: EtherTypes,
    tuples: Tuples,
    /// The queue of segments with SYN.
    syn: Option<Queue>,
    syn_first: bool,
    /// The packets whose arrival is stamped, if one of the filters above has found their protocol.
    timed: Option<Timed>,
    /// The lowest VLAN priority that interrupts at once.
    urgent: Option<u8>,
    /// The queue of what nothing else chooses a queue for.
    pub(crate) default: Queue,
}

/// What the filters say of a frame, whoever gets it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hits {
    /// Bit i: ether type filter i.
    types: u8,
    /// Bit i: five-tuple filter i, as far as pool and size do not matter.
    tuples: u8,
    syn: bool,
    urgent: bool,
    /// The frame's arrival is to be stamped.
    pub(crate) timed: bool,
}

/// What comes of it in a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The queue, if a filter has chosen it.
    pub(crate) queue: Option<Queue>,
    /// The frame interrupts at once.
    pub(crate) immediate: bool,
}

impl Steering {
    /// Decodes the filter registers.
    pub(crate) fn load(file: &RegisterFile) -> Self {
        let (types, tuples) = (EtherTypes::load(file), Tuples::load(file));
        let (syn, priority) = (file.get(r::SYNQF), file.get(r::IMIRVP));
        let syn = (syn & synqf::QUEUE_ENABLE != 0).then(|| Queue::of_field(syn >> synqf::QUEUE_SHIFT));
        let urgent = (priority & imirvp::ENABLE != 0).then_some((priority & imirvp::PRIORITY) as u8);
        Self {
            any: types.any() || tuples.any() || syn.is_some() || urgent.is_some(),
            types,
            tuples,
            syn,
            timed: Timed::load(file),
            syn_first: file.get(r::RFCTL) & rfctl::SYNQFP != 0,
            urgent,
            default: Queue::of_field(file.get(r::MRQC) >> mrqc::DEFAULT_QUEUE_SHIFT & 7),
        }
    }

    /// Whether some filter is on.
    pub(crate) fn looks(&self) -> bool {
        self.any
    }

    /// Asks every filter about a frame without its `tag`, whose headers were parsed from the same bytes.
    #[inline]
    pub(crate) fn look(&self, frame: &[u8], headers: &Headers, tag: Option<u16>) -> Hits {
        if self.any { self.look_closely(frame, headers, tag) } else { Hits::default() }
    }

    #[cold]
    fn look_closely(&self, frame: &[u8], headers: &Headers, tag: Option<u16>) -> Hits {
        let flags = match headers.l4 {
            L4::Tcp => frame.get(headers.l4_offset + FLAGS).copied().unwrap_or(0),
            _ => 0,
        };
        let (types, tuples) = (self.types.hits(frame, headers), self.tuples.hits(frame, headers, flags));
        Hits {
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

    /// What a frame's hits mean in a pool that gets it in `length` bytes; `pool` is `None` if there are no pools.
    #[inline]
    pub(crate) fn decide(&self, hits: Hits, pool: Option<Pool>, length: usize) -> Verdict {
        if self.any { self.decide_closely(hits, pool, length) } else { Verdict::default() }
    }

    #[cold]
    fn decide_closely(&self, hits: Hits, pool: Option<Pool>, length: usize) -> Verdict {
        let tuples = self.tuples.in_pool(hits.tuples, pool, length);
        let tuple = self.tuples.queue(tuples);
        let syn = self.syn.filter(|_| hits.syn);
        let segment = if self.syn_first { syn.or(tuple) } else { tuple.or(syn) };
        let own = |queue: &Queue| pool.is_none_or(|pool| queue.pool() == pool);
        Verdict {
            queue: self.types.queue(hits.types).filter(own).or(segment.filter(own)),
            immediate: hits.urgent || self.types.immediate(hits.types) || self.tuples.immediate(tuples),
        }
    }
}

impl Hits {
    /// The packet type of a frame that an ether type filter knows.
    pub(crate) fn packet_type(self) -> Option<u16> {
        EtherTypes::last(self.types).map(|filter| packet_type::ETHER_TYPE | filter as u16)
    }
}
