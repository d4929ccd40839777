//! The end of the journey inside the card: what a descriptor will say of a frame, the queue it goes to, and the
//! queue's own way with tags. Left out: the stops themselves, and who gets the frame.

use crate::Nic;
use crate::counters::Fate;
use crate::frame::{Frame, Outer};
use crate::offload::headers::Headers;
use crate::offload::receive;
use crate::offload::rss::Hash;
use crate::offload::split::Split;
use crate::queue::receive::Description;
use crate::steering::Hits;
use crate::switch::{Decision, Source};
use i82576::bits::{mrqc, rxcsum, srrctl};
use i82576::descriptor::rx::{rss_type, status};
use i82576::register::{self as r, rx, rx_block};
use i82576::{MacAddress, Queue};
use pcie::Bus;

/// A frame on its way to pools.
struct Arrival {
    source: Source,
    destination: MacAddress,
    replicated: bool,
    /// What RSS chooses a queue by, and what may choose it before.
    hash: Hash,
    hits: Hits,
    description: Description,
}

impl Nic {
    /// Hands a frame to every pool that the switch has named; the best that became of it, or `None` if there was
    /// no pool.
    pub(crate) fn hand_out<B: Bus>(
        &mut self,
        source: Source,
        destination: MacAddress,
        decision: &Decision,
        frame: &mut Frame<'_>,
        bus: &mut B,
    ) -> Option<Fate> {
        let mut pools = decision.pools;
        if pools == 0 {
            return None;
        }
        let mut arrival = self.describe(source, destination, decision.replicated, frame);
        if decision.inexact {
            arrival.description.status |= status::PIF;
        }
        if arrival.hits.timed && source == Source::Wire && self.stamp_received() {
            arrival.description.status |= status::TS;
        }
        let mut best = None;
        while pools != 0 {
            let pool = pools.trailing_zeros() as u8;
            pools &= pools - 1;
            best = best.max(Some(self.deliver(pool, frame, &arrival, bus)));
        }
        best
    }

    /// What the receive descriptors will say of a frame without its tag, whoever gets it.
    #[inline]
    fn describe(
        &self,
        source: Source,
        destination: MacAddress,
        replicated: bool,
        frame: &mut Frame<'_>,
    ) -> Arrival {
        let (control, outer, seal) = (self.state.file.get(r::RXCSUM), frame.outer, frame.seal());
        let tag = frame.tag;
        let frame = frame.untagged();
        let headers = match outer {
            // What has no outer tag where all should have one is passed on as it is (datasheet 7.4.5.2).
            Outer::Missing => Headers::default(),
            Outer::Present | Outer::Unused => {
                Headers::parse_behind(frame, outer == Outer::Present, self.derived.tables.inner)
            }
        };
        let found = receive::classify(frame, &headers, control, seal);
        let hash = match self.state.file.get(r::MRQC) & mrqc::MODE_MASK {
            mrqc::RSS | mrqc::VMDQ_RSS => self.derived.rss.hash(frame, &headers),
            _ => Hash::default(),
        };
        let hits = self.derived.steering.look(frame, &headers, tag);
        let mut description = Description {
            rss: (hash.rss_type, hash.value),
            packet_type: hits.packet_type().unwrap_or(found.packet_type),
            status: found.status | if outer == Outer::Present { status::VEXT } else { 0 },
            split: Split::of(&headers),
            ..Description::default()
        };
        if control & rxcsum::PCSD == 0 {
            let fragment = receive::fragment(frame, &headers, control);
            description.rss = (0, u32::from(fragment.sum) << 16 | u32::from(fragment.identification));
            description.status |= fragment.status;
        }
        Arrival { source, destination, replicated, hash, hits, description }
    }

    /// Puts a frame into the pool's queue, as the pool likes its tags.
    fn deliver<B: Bus>(&mut self, pool: u8, frame: &mut Frame<'_>, arrival: &Arrival, bus: &mut B) -> Fate {
        let options = self.derived.tables.pool_options(pool, arrival.replicated);
        let mut described = arrival.description;
        match frame.tag {
            Some(tag) if options.strip_vlan => {
                described.vlan_tag = tag;
                described.status |= status::VP;
            }
            Some(_) => described.split = described.split.with_tag(),
            None => {}
        }
        let trailer = frame.trailer();
        let bytes = frame.delivered(!options.strip_vlan);
        let (queue, urgent) = self.queue_of(pool, options.rss, arrival, bytes.len());
        let function = self.state.owners.of_queue(queue);
        if !self.masters().may_master(function) || !self.receives() {
            self.state.counters[usize::from(pool)].rx_disabled += 1;
            return Fate::Dropped;
        }
        if let Some(sum) = receive::packet_sum(bytes, self.state.file.get(r::RXCSUM)) {
            described.checksum = sum;
            described.rss.1 |= u32::from(sum) << 16;
        }
        let length = bytes.len() - trailer;
        self.scratch.rx_touched |= 1 << queue.get();
        described.status |= if urgent { status::DYNINT } else { 0 };
        let outcome =
            self.state.rx[queue.index()].deliver(&mut self.state.file, function, bus, bytes, &described);
        self.scratch.rx_urgent |= u16::from(urgent && outcome.is_ok()) << queue.get();
        self.count_received(pool, queue, arrival.destination, length, arrival.source, outcome)
    }

    /// Whether a queue's descriptors are in the legacy format, which cannot tell of an interrupt at once and has none.
    fn is_legacy(&self, queue: Queue) -> bool {
        srrctl::descriptor_type(self.state.file.get(rx_block(queue) + rx::SRRCTL)) == srrctl::LEGACY
    }

    /// The queue of a pool, or among all of them when there are no pools, for a frame of `length` bytes, and whether
    /// that interrupts at once.
    fn queue_of(&self, pool: u8, rss: bool, arrival: &Arrival, length: usize) -> (Queue, bool) {
        let pools = matches!(self.state.file.get(r::MRQC) & mrqc::MODE_MASK, mrqc::VMDQ | mrqc::VMDQ_RSS);
        let verdict = self.derived.steering.decide(arrival.hits, pools.then_some(pool), length);
        let hashed = rss && arrival.hash.rss_type != rss_type::NONE;
        let entry = hashed.then(|| self.derived.rss.redirect(arrival.hash.value));
        let index = verdict.queue.unwrap_or(match (pools, entry) {
            (true, entry) => pool + 8 * (entry.unwrap_or(0) & 1),
            (false, Some(entry)) => entry,
            (false, None) => self.derived.steering.default,
        });
        let queue = Queue::new(index & 0xf).unwrap_or(FIRST_QUEUE);
        (queue, verdict.immediate && !self.is_legacy(queue))
    }
}

const FIRST_QUEUE: Queue = match Queue::new(0) {
    Some(queue) => queue,
    None => panic!(),
};
