//! The end of the journey inside the card: what a descriptor will say of a frame, the queue it goes to, and the
//! queue's own way with tags. Left out: the stops themselves, and who gets the frame.

use crate::buffer::wait::Late;
use crate::conditions::Conditions;
use crate::offload::plain::{Advanced, Plain};
use crate::offload::receive;
use crate::offload::rss::Hash;
use crate::offload::split::Split;
use crate::policy::{self, pool};
use crate::queue::QueueIo;
use crate::queue::receive::{Description, Lost};
use crate::scratch::Receiving;
use crate::steering::Hits;
use crate::work::Work;
use i82576::descriptor::SIZE;
use i82576::descriptor::rx::{rss_type, status};
use i82576::{Pool, Queue};
use offload::headers::Headers;
use pcie::{Bus, Function, Hint};
use plane::frame::{Frame, Outer};
use plane::switch::Reason;
use plane::{About, Missed, Port, Sender, Sink};
use rings::{Receiver, Spread, Terms};

/// Where a frame goes to.
#[derive(Clone, Copy)]
struct Place {
    queue: Queue,
    /// The pool has tags taken out.
    strips: bool,
    /// The frame is to interrupt at once.
    urgent: bool,
}

/// What is known of a frame's contents.
#[derive(Clone, Copy)]
pub(crate) struct Contents {
    /// What RSS chooses a queue by, and what may choose it before.
    hash: Hash,
    hits: Hits,
    description: Description,
}

impl<B: Bus> Sink for Work<'_, B> {
    type Findings = Option<Contents>;

    #[inline(always)]
    fn deliver(
        &mut self,
        port: Port,
        frame: &mut Frame<'_>,
        about: About,
        findings: &mut Option<Contents>,
    ) -> Result<usize, Missed> {
        if self.scratch.glances
            && let Some(bytes) = rings::deliver(self, port, frame, about)
        {
            return Ok(bytes);
        }
        self.deliver_closely(pool(port), frame, about, findings)
    }
}

impl<B: Bus> rings::Card for Work<'_, B> {
    type Bus = B;
    type TxFormat = Advanced;
    type RxFormat = Plain;

    fn judges(&self) -> bool {
        self.scratch.glances
    }

    fn next(&mut self, sender: Sender, most: usize) -> &[[u8; SIZE]] {
        let Self { queues, file, scratch, bus, .. } = self;
        let queue = policy::queue(sender);
        let tx = &mut queues.tx[queue.index()];
        let Some(ring) = tx.open(file) else { return &[] };
        let function = scratch.conditions.owners.of_queue(queue);
        let at_hand = tx.next_plain(&mut QueueIo { file, function, bus: *bus }, &ring, most);
        at_hand.unwrap_or_else(|_| {
            scratch.faults += 1;
            &[]
        })
    }

    fn pass(&mut self, sender: Sender, count: usize) {
        let tx = &mut self.queues.tx[policy::queue(sender).index()];
        if let Some(ring) = tx.open(self.file) {
            tx.pass_plain(&ring, count);
        }
    }

    fn source(&mut self, sender: Sender) -> (Function, &mut Hint, &mut B) {
        let queue = policy::queue(sender);
        (self.scratch.conditions.owners.of_queue(queue), self.queues.tx[queue.index()].buffers(), self.bus)
    }

    fn refused(&mut self, sender: Sender, reason: Reason) {
        self.refused(policy::queue(sender), reason);
    }

    #[inline]
    fn spreads(&self, _port: Port) -> bool {
        false
    }

    #[inline]
    fn spread(&mut self, _port: Port, _frame: &offload::plain::Plain<'_>) -> Spread {
        (0, None)
    }

    #[inline]
    fn receiver(&mut self, port: Port, _queue: u8, terms: Terms) -> Option<Receiver<'_, B, Plain>> {
        let queue = self.usual_queue(pool(port));
        self.open(queue);
        let Receiving { opened, function } = &self.scratch.receiving[queue.index()];
        let format = Plain::new(self.scratch.conditions.checks, terms);
        self.queues.rx[queue.index()].receiver(opened.as_ref()?, *function, self.bus, format)
    }

    #[inline]
    fn received(&mut self, _port: Port, _queue: u8, _frames: usize, _bytes: u64) {}
}

impl<B: Bus> Work<'_, B> {
    /// Any way: `findings` are those of the pool before, if other pools get the frame too.
    #[inline(never)]
    fn deliver_closely(
        &mut self,
        pool: Pool,
        frame: &mut Frame<'_>,
        about: About,
        findings: &mut Option<Contents>,
    ) -> Result<usize, Missed> {
        let contents = match findings {
            Some(contents) => *contents,
            None => *findings.insert(self.find_out(frame, about)),
        };
        let mut described = contents.description;
        let bytes = frame.delivered(!about.strips);
        if let Some(sum) = receive::packet_sum(bytes, self.scratch.conditions.checks) {
            described.checksum = sum;
            described.rss.1 |= u32::from(sum) << 16;
        }
        let (queue, urgent) = self.queue_of(pool, &contents, bytes.len());
        self.put(Place { queue, strips: about.strips, urgent }, frame, about, described)
    }

    /// What there is to say of a frame, whichever pools get it.
    fn find_out(&mut self, frame: &mut Frame<'_>, about: About) -> Contents {
        let mut contents = self.look_into(frame);
        if about.inexact {
            contents.description.status |= status::PIF;
        }
        if contents.hits.timed && about.from_uplink && self.stamp_received(self.scratch.now) {
            contents.description.status |= status::TS;
        }
        contents
    }

    /// What the receive descriptors will say of a frame without its tag, in every pool that gets it, and what chooses its
    /// queue.
    fn look_into(&self, frame: &mut Frame<'_>) -> Contents {
        let conditions = &self.scratch.conditions;
        let (control, outer, seal) = (conditions.checks, frame.outer, frame.seal());
        let tag = frame.tag;
        let frame = frame.untagged();
        let headers = match outer {
            // What has no outer tag where all should have one is passed on as it is (datasheet 7.4.5.2).
            Outer::Missing => Headers::default(),
            Outer::Present | Outer::Unused => {
                Headers::parse_behind(frame, outer == Outer::Present, self.derived.receive.inner)
            }
        };
        let found = receive::classify(frame, &headers, control, seal);
        let hash = if conditions.hashes { self.derived.rss.hash(frame, &headers) } else { Hash::default() };
        let hits = self.derived.steering.look(frame, &headers, tag);
        let mut description = Description {
            rss: (hash.rss_type, hash.value),
            packet_type: hits.packet_type().unwrap_or(found.packet_type),
            status: found.status | if outer == Outer::Present { status::VEXT } else { 0 },
            split: Split::of(&headers),
            ..Description::default()
        };
        if !conditions.tells_hash() {
            let fragment = receive::fragment(frame, &headers, control);
            description.rss = (0, u32::from(fragment.sum) << 16 | u32::from(fragment.identification));
            description.status |= fragment.status;
        }
        Contents { hash, hits, description }
    }

    /// Puts a frame into a pool's queue, as the pool likes its tags.
    fn put(
        &mut self,
        place: Place,
        frame: &mut Frame<'_>,
        about: About,
        mut described: Description,
    ) -> Result<usize, Missed> {
        let Place { queue, strips, urgent } = place;
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
            Err(Lost::Fault) => Err(Missed::Fault),
            Err(lost) => {
                let About { from_uplink, .. } = about;
                let late = Late { queue, bytes, trailer, from_uplink, urgent, description: described };
                Err(self.come_too_late(lost, &late))
            }
        }
    }

    /// Puts a frame into a queue's buffers as it stands.
    fn fill(
        &mut self,
        queue: Queue,
        urgent: bool,
        bytes: &[u8],
        described: &mut Description,
    ) -> Result<(), Lost> {
        self.open(queue);
        let rx = &mut self.queues.rx[queue.index()];
        let Receiving { opened: Some(opened), function, .. } = &self.scratch.receiving[queue.index()] else {
            return Err(Lost::Disabled);
        };
        // The legacy format cannot tell of an interrupt at once, and has none.
        let urgent = urgent && !opened.is_legacy();
        described.status |= if urgent { status::DYNINT } else { 0 };
        let mut io = QueueIo { file: &mut *self.file, function: *function, bus: &mut *self.bus };
        let outcome = rx.deliver(opened, &mut io, bytes, *described);
        self.scratch.rx_urgent |= u16::from(urgent && outcome.is_ok()) << queue.get();
        outcome
    }

    /// A receive queue is looked at as it is in this poll.
    #[inline]
    pub(crate) fn open(&mut self, queue: Queue) {
        let bit = 1 << queue.get();
        self.scratch.rx_touched |= bit;
        if self.scratch.opened & bit == 0 {
            self.scratch.opened |= if self.scratch.shortcuts { bit } else { 0 };
            self.open_anew(queue);
        }
    }

    #[cold]
    fn open_anew(&mut self, queue: Queue) {
        // No frame overtakes one that waits.
        let may = self.may_receive(queue) && !self.queues.buffer.has(queue);
        let receiving = &mut self.scratch.receiving[queue.index()];
        receiving.function = self.scratch.conditions.owners.of_queue(queue);
        let opened = || self.queues.rx[queue.index()].open(self.file, self.scratch.shortcuts);
        receiving.opened = may.then(opened).flatten();
    }

    /// The port receives, and the function that has the queue may write to memory.
    pub(crate) fn may_receive(&self, queue: Queue) -> bool {
        let Conditions { owners, uplink, .. } = self.scratch.conditions;
        uplink.receives && owners.may_master(owners.of_queue(queue))
    }

    /// The queue of a pool, or among all of them when there are no pools, for a frame of `length` bytes, and whether
    /// that interrupts at once.
    fn queue_of(&self, pool: Pool, contents: &Contents, length: usize) -> (Queue, bool) {
        let pools = self.scratch.conditions.pools;
        let verdict = self.derived.steering.decide(contents.hits, pools.then_some(pool), length);
        let scales = self.derived.receive.scales & pool.bit() != 0;
        let hashed = scales && contents.hash.rss_type != rss_type::NONE;
        let entry = hashed.then(|| self.derived.rss.redirect(contents.hash.value));
        let of_entry = |entry: u8| if pools { pool.queue(entry) } else { Queue::of_field(entry.into()) };
        let queue = verdict.queue.or(entry.map(of_entry));
        (queue.unwrap_or_else(|| self.usual_queue(pool)), verdict.immediate)
    }

    /// The queue of a pool for what nothing chooses a queue for.
    #[inline]
    fn usual_queue(&self, pool: Pool) -> Queue {
        if self.scratch.conditions.pools { pool.queue(0) } else { self.derived.steering.default }
    }
}
