//! Delivery of frames into receive queues: the contents of the descriptor, the choice of the queue, and the stripping of
//! tags. The switch has chosen the pools before.

use crate::buffer::wait::UndeliveredFrame;
use crate::conditions::PollSettings;
use crate::mac;
use crate::offload::receive;
use crate::offload::rss::FrameHash;
use crate::offload::split::HeaderSplitOffsets;
use crate::queue::QueueIo;
use crate::queue::receive::{ReceiveError, RxDescriptorFields};
use crate::scratch::CachedReceiveQueue;
use crate::steering::FilterMatches;
use crate::switch::pool;
use crate::work::FramePathState;
use i82576::descriptor::rx::{rss_type, status};
use i82576::{PoolIndex, QueueIndex, register as r};
use offload::headers::FrameHeaders;
use pcie::Bus;
use plane::frame::{Frame, HEADER, OuterTag};
use plane::{DeliveryError, DeliveryFlags, FrameSink, PortIndex};
use rings::FrameReceiver;

/// Receive queue for a frame, and the options of its delivery there.
#[derive(Clone, Copy)]
struct RxDestination {
    queue: QueueIndex,
    /// True if the pool has VLAN tags stripped from its frames.
    strips: bool,
    /// True if the frame is urgent: its interrupt ignores the throttle.
    urgent: bool,
}

/// Results of parsing a received frame: descriptor contents, hash and filter matches, which are the same for every
/// pool.
#[derive(Clone, Copy)]
pub(crate) struct ParsedFrame {
    /// RSS hash, which chooses a queue where no filter does.
    hash: FrameHash,
    /// Receive filters that match the frame.
    hits: FilterMatches,
    description: RxDescriptorFields,
}

impl<B: Bus> FrameSink for FramePathState<'_, B> {
    type Findings = Option<ParsedFrame>;

    #[inline(always)]
    fn deliver(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        findings: &mut Option<ParsedFrame>,
    ) -> Result<usize, DeliveryError> {
        rings::deliver(self, port, frame, about, findings)
    }
}

impl<B: Bus> FrameReceiver for FramePathState<'_, B> {
    type Contents = ParsedFrame;

    fn look(&mut self, frame: &mut Frame<'_>, about: DeliveryFlags) -> ParsedFrame {
        let mut contents = self.look_into(frame);
        if about.inexact {
            contents.description.status |= status::PIF;
        }
        if contents.hits.timed && about.from_uplink && self.stamp_received(self.scratch.now) {
            contents.description.status |= status::TS;
        }
        contents
    }

    fn put(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        contents: ParsedFrame,
    ) -> Result<usize, DeliveryError> {
        let mut described = contents.description;
        let bytes = frame.delivered(!about.strips);
        if let Some(sum) = receive::packet_sum(bytes, self.scratch.conditions.checks) {
            described.checksum = sum;
            described.rss.1 |= u32::from(sum) << 16;
        }
        let (queue, urgent) = self.queue_of(pool(port), &contents, bytes.len());
        self.put_into(RxDestination { queue, strips: about.strips, urgent }, frame, about, described)
    }

    fn ends_in_mac(&mut self, frame: &[u8]) -> bool {
        mac::ends_here(self.file, frame)
    }

    fn wrong_length(&mut self, bytes: usize) {
        let counter = if bytes < HEADER { r::RUC } else { r::ROC };
        mac::count_length_errors(self.file, counter, 1);
    }

    fn keeps_check_sequence(&self) -> bool {
        self.derived.receive.keeps_check_sequence
    }
}

impl<B: Bus> FramePathState<'_, B> {
    /// Parses a frame without its tag: the contents of its receive descriptors, its hash and its filter hits. They are the
    /// same in every pool that gets the frame.
    fn look_into(&self, frame: &mut Frame<'_>) -> ParsedFrame {
        let conditions = &self.scratch.conditions;
        let (control, outer, seal) = (conditions.checks, frame.outer, frame.seal());
        let tag = frame.tag;
        let frame = frame.untagged();
        let headers = match outer {
            // A frame without the outer tag that CTRL_EXT.EXT_VLAN expects is delivered without offloads (82576 datasheet 7.4.5.2).
            OuterTag::Missing => FrameHeaders::default(),
            OuterTag::Present | OuterTag::Unused => {
                FrameHeaders::parse_behind(frame, outer == OuterTag::Present, self.derived.receive.inner)
            }
        };
        let found = receive::classify(frame, &headers, control, seal);
        let hash =
            if conditions.hashes { self.derived.rss.hash(frame, &headers) } else { FrameHash::default() };
        let hits = self.derived.steering.look(frame, &headers, tag);
        let mut description = RxDescriptorFields {
            rss: (hash.rss_type, hash.value),
            packet_type: hits.packet_type().unwrap_or(found.packet_type),
            status: found.status | if outer == OuterTag::Present { status::VEXT } else { 0 },
            split: HeaderSplitOffsets::of(&headers),
            ..RxDescriptorFields::default()
        };
        if !conditions.reports_hash() {
            let fragment = receive::fragment(frame, &headers, control);
            description.rss = (0, u32::from(fragment.sum) << 16 | u32::from(fragment.identification));
            description.status |= fragment.status;
        }
        ParsedFrame { hash, hits, description }
    }

    /// Puts a frame into a pool's queue, with its VLAN tag stripped if the pool requests that. A frame without
    /// descriptors waits or is dropped.
    fn put_into(
        &mut self,
        place: RxDestination,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        mut described: RxDescriptorFields,
    ) -> Result<usize, DeliveryError> {
        let RxDestination { queue, strips, urgent } = place;
        if about.leave_room(frame) && self.queues.rx[queue.index()].has_only_reserve() {
            return Err(self.drop_for_descriptors(queue));
        }
        match frame.tag {
            Some(tag) if strips => {
                described.vlan_tag = tag;
                described.status |= status::VP;
            }
            Some(_) => described.split = described.split.with_tag(),
            None => {}
        }
        let trailer = frame.trailer();
        let bytes = frame.delivered(!strips);
        match self.fill(queue, urgent, bytes, &mut described) {
            Ok(()) => Ok(bytes.len() - trailer),
            Err(ReceiveError::Fault) => Err(DeliveryError::Fault),
            Err(lost) => {
                let DeliveryFlags { from_uplink, .. } = about;
                let late =
                    UndeliveredFrame { queue, bytes, trailer, from_uplink, urgent, description: described };
                Err(self.wait_or_drop(lost, &late))
            }
        }
    }

    /// Writes a frame's bytes to the posted buffers of a receive queue.
    fn fill(
        &mut self,
        queue: QueueIndex,
        urgent: bool,
        bytes: &[u8],
        described: &mut RxDescriptorFields,
    ) -> Result<(), ReceiveError> {
        self.open(queue);
        let rx = &mut self.queues.rx[queue.index()];
        let CachedReceiveQueue { opened: Some(opened), function, .. } =
            &self.scratch.receiving[queue.index()]
        else {
            return Err(ReceiveError::Disabled);
        };
        // The legacy format has no DYNINT bit, so its frames are not urgent.
        let urgent = urgent && !opened.is_legacy();
        described.status |= if urgent { status::DYNINT } else { 0 };
        let mut io = QueueIo { file: &mut *self.file, function: *function, bus: &mut *self.bus };
        let outcome = rx.deliver(opened, &mut io, bytes, *described);
        self.scratch.rx_urgent |= u16::from(urgent && outcome.is_ok()) << queue.get();
        outcome
    }

    /// Decodes a receive queue's registers for this poll, if this poll has not done so yet, and marks the queue for
    /// write-back.
    #[inline]
    pub(crate) fn open(&mut self, queue: QueueIndex) {
        let bit = 1 << queue.get();
        self.scratch.rx_touched |= bit;
        if self.scratch.opened & bit == 0 {
            self.scratch.opened |= if self.scratch.shortcuts { bit } else { 0 };
            self.open_anew(queue);
        }
    }

    #[cold]
    fn open_anew(&mut self, queue: QueueIndex) {
        // While frames wait in the packet buffer the queue stays closed: no frame may overtake them.
        let may = self.may_receive(queue) && !self.queues.buffer.has(queue);
        let receiving = &mut self.scratch.receiving[queue.index()];
        receiving.function = self.scratch.conditions.owners.of_queue(queue);
        let opened = || self.queues.rx[queue.index()].open(self.file, self.scratch.shortcuts);
        receiving.opened = may.then(opened).flatten();
    }

    /// Returns true if the port receives and the queue's function may write to memory.
    pub(crate) fn may_receive(&self, queue: QueueIndex) -> bool {
        let PollSettings { owners, uplink, .. } = self.scratch.conditions;
        uplink.receives && owners.may_master(owners.of_queue(queue))
    }

    /// Chooses the queue for a frame of `length` bytes: one of the pool's two queues, or one of all sixteen without
    /// pools. Returns the queue, and true if the frame interrupts at once.
    fn queue_of(&self, pool: PoolIndex, contents: &ParsedFrame, length: usize) -> (QueueIndex, bool) {
        let pools = self.scratch.conditions.pools;
        let verdict = self.derived.steering.decide(contents.hits, pools.then_some(pool), length);
        let scales = self.derived.receive.scales & pool.bit() != 0;
        let hashed = scales && contents.hash.rss_type != rss_type::NONE;
        let entry = hashed.then(|| self.derived.rss.redirect(contents.hash.value));
        let of_entry = |entry: u8| if pools { pool.queue(entry) } else { QueueIndex::of_field(entry.into()) };
        let queue = verdict.queue.or(entry.map(of_entry));
        (queue.unwrap_or_else(|| self.usual_queue(pool)), verdict.immediate)
    }

    /// Returns the queue of a pool's frames that neither a filter nor RSS assigns: the pool's first, or MRQC.DEF_Q without pools.
    #[inline]
    pub(crate) fn usual_queue(&self, pool: PoolIndex) -> QueueIndex {
        if self.scratch.conditions.pools { pool.queue(0) } else { self.derived.steering.default }
    }
}
