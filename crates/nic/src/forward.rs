//! The journey to the plane: a frame from the wire or from a transmit queue is prepared and handed over; the plane brings it
//! to pools (`arrival`) and wire. Left out: the stops, which are called in order here.

use crate::interrupt::Direction;
use crate::offload::segment::{flag_masks, segmenter};
use crate::offload::transmit;
use crate::policy;
use crate::queue::QueueIo;
use crate::queue::packet::{Invalid, Packet, Taken};
use crate::scratch::Staging;
use crate::uplink;
use crate::work::Work;
use i82576::Queue;
use i82576::bits::lvmmc;
use i82576::ids::{FCS, MAX_FRAME, MIN_FRAME};
use i82576::register as r;
use offload::crc;
use offload::segment::Segmenter;
use offload::uncut::MAX_SEGMENTS;
use pcie::{Bus, Function};
use plane::frame::{Frame, HEADER, HEADROOM, Outer};
use plane::uplink::Uplink;
use plane::{Lane, Origin, Sender, Source, Wire};
use rings::Ring;

/// A transmit queue that is looked at, as it stays while it is.
#[derive(Debug, Clone, Copy)]
struct Open {
    queue: Queue,
    /// Whose memory its ring and buffers are in.
    function: Function,
    /// `None` if the queue is disabled, or its registers make no ring.
    ring: Option<Ring>,
}

/// What a sender asks for a frame that is finished.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    /// A tag.
    tag: Option<u16>,
    /// The moment when it leaves.
    time_stamp: bool,
}

impl Asked {
    fn by(packet: &Packet) -> Self {
        Self { tag: packet.tag(), time_stamp: packet.orders.time_stamp() }
    }
}

impl<B: Bus> Source for Work<'_, B> {
    /// The queue's pool may send, the queue is not blocked, and its function may read memory.
    fn may_send(&self, sender: Sender) -> bool {
        let queue = policy::queue(sender);
        self.file.get(r::VFTE) & u32::from(queue.pool().bit()) != 0
            && !self.is_blocked(queue)
            && self.scratch.conditions.owners.may_master(self.scratch.conditions.owners.of_queue(queue))
    }

    fn hand_over<L: Lane>(&mut self, sender: Sender, budget: usize, lane: &mut L) -> bool {
        let (mut budget, mut left, queue) = (budget, true, policy::queue(sender));
        let function = self.scratch.conditions.owners.of_queue(queue);
        let open = Open { queue, function, ring: self.queues.tx[queue.index()].open(self.file) };
        let mut burst = self.scratch.burst.take().filter(|_| self.scratch.shortcuts);
        while left && budget > 0 && lane.is_due() {
            // A look at the ring costs less than finding no packet in it.
            if !self.has_more(sender) {
                left = false;
                break;
            }
            let plain = burst.as_mut().map_or(0, |burst| rings::forward(self, sender, burst, budget, lane));
            let frames = if plain > 0 { Some(plain) } else { self.forward_any(&open, lane) };
            left = frames.is_some();
            budget = budget.saturating_sub(frames.unwrap_or(0));
        }
        self.scratch.burst = burst;
        lane.counters().dma_faults += core::mem::take(&mut self.scratch.faults);
        self.count_sent(queue.pool(), &lane.settle());
        let mut io = QueueIo { file: &mut *self.file, function, bus: &mut *self.bus };
        let announced = self.queues.tx[queue.index()].write_back(&mut io);
        lane.counters().dma_faults += u64::from(self.announce(queue, Direction::Tx, announced));
        left
    }

    fn has_more(&self, sender: Sender) -> bool {
        self.queues.tx[policy::queue(sender).index()].has_more(self.file)
    }
}

impl<B: Bus> Work<'_, B> {
    /// Takes frames from the wire, so many at the most; answers whether there may be more.
    pub(crate) fn receive_from_wire<W: Wire>(
        &mut self,
        budget: usize,
        plane: &mut policy::Plane,
        wire: &mut W,
    ) -> bool {
        let mut staging = core::mem::take(&mut self.scratch.staging.frame);
        let more = (0..budget).all(|_| self.forward_from_wire(&mut staging, plane, wire));
        self.scratch.staging.frame = staging;
        more
    }

    /// Takes one frame from the wire; answers whether there was one.
    fn forward_from_wire<W: Wire>(
        &mut self,
        staging: &mut [u8],
        plane: &mut policy::Plane,
        wire: &mut W,
    ) -> bool {
        let received = wire.receive(&mut staging[HEADROOM..]);
        let Uplink { link, receives, loops_back, .. } = plane.uplink;
        // A port that has no link, or does not receive, knows of no frame: nothing is counted.
        if let Some(length) = received.filter(|_| link && receives && !loops_back) {
            self.arrive(staging, length, plane, wire);
        }
        received.is_some()
    }

    /// `length` bytes are in the staging buffer.
    fn arrive<W: Wire>(
        &mut self,
        staging: &mut [u8],
        length: usize,
        plane: &mut policy::Plane,
        wire: &mut W,
    ) {
        let padded = pad(&mut staging[HEADROOM..], length);
        if uplink::ends_here(self.file, &staging[HEADROOM..HEADROOM + padded]) {
            return;
        }
        plane.tally.arrived(padded);
        match length {
            ..HEADER => uplink::count_length_errors(self.file, r::RUC, 1),
            _ if length > MAX_FRAME - FCS => uplink::count_length_errors(self.file, r::ROC, 1),
            _ => {
                let bytes = &mut staging[HEADROOM..];
                let trailer = if self.derived.receive.keeps_check_sequence {
                    append_check_sequence(bytes, padded)
                } else {
                    0
                };
                if let Some(mut frame) = Frame::new(&mut staging[..HEADROOM + padded + trailer]) {
                    frame.set_trailer(trailer);
                    frame.set_seal(wire.sealed());
                    frame.look_behind(plane.tables().inner, plane.tables().outer);
                    frame.take_tag();
                    plane.forward(Origin::Uplink, &mut frame, self, wire);
                }
            }
        }
    }

    /// Takes one packet, or what is left of one, from a transmit queue; answers how many frames of the budget it
    /// cost, at least 1, or `None` if there was no packet, or none may follow.
    #[inline(never)]
    fn forward_any<L: Lane>(&mut self, open: &Open, lane: &mut L) -> Option<usize> {
        let queue = open.queue;
        let mut staging = core::mem::take(&mut self.scratch.staging);
        let frames = match self.take(open, &mut staging) {
            Taken::Nothing => None,
            Taken::Empty => Some(1),
            Taken::Dropped(why) => {
                match why {
                    Invalid::Fault => lane.counters().dma_faults += 1,
                    Invalid::Size => self.spoiled(queue, lvmmc::SIZE, lane),
                    Invalid::Type => self.spoiled(queue, lvmmc::DESCRIPTOR, lane),
                }
                Some(1)
            }
            Taken::Packet(packet) if packet.orders.segment() => {
                Some(self.segment(queue, packet, &mut staging, lane))
            }
            Taken::Packet(packet) => {
                self.send_whole(queue, &packet, &mut staging.packet, lane);
                Some(1)
            }
        };
        self.scratch.staging = staging;
        frames
            .filter(|_| !self.is_blocked(queue))
            .map(|frames| frames.max(self.queues.tx[queue.index()].effort()))
    }

    /// The next packet of a queue is put into the staging buffer: first the one that waits between two segments.
    fn take(&mut self, open: &Open, staging: &mut Staging) -> Taken {
        let Open { queue, function, ring } = open;
        let tx = &mut self.queues.tx[queue.index()];
        match (tx.held.resume(&mut staging.packet), ring) {
            (Some(packet), _) => Taken::Packet(packet),
            (None, None) => Taken::Nothing,
            (None, Some(ring)) => {
                let place = &mut staging.packet[HEADROOM..];
                let descriptors = &mut self.scratch.descriptors;
                let mut io = QueueIo { file: &mut *self.file, function: *function, bus: &mut *self.bus };
                tx.take(&mut io, ring, descriptors, place)
            }
        }
    }

    /// A packet is malformed.
    #[inline(always)]
    fn spoiled<L: Lane>(&mut self, queue: Queue, cause: u32, lane: &mut L) {
        lane.counters().tx_invalid += 1;
        self.misbehaved(queue, cause);
    }

    /// A packet that is one frame.
    fn send_whole<L: Lane>(&mut self, queue: Queue, packet: &Packet, staging: &mut [u8], lane: &mut L) {
        if packet.length < HEADER || !packet.fits(packet.length) {
            return self.spoiled(queue, lvmmc::SIZE, lane);
        }
        let place = &mut staging[HEADROOM..];
        // A checksum request that does not fit the frame leaves it as the sender made it.
        let sealed = transmit::insert(&mut place[..packet.length], packet.orders, &packet.context);
        if sealed.is_err() {
            self.spoiled(queue, lvmmc::CONTEXT, lane);
        }
        if let Some(checksum) = &packet.checksum {
            transmit::insert_legacy(&mut place[..packet.length], checksum);
        }
        let length = pad(place, packet.length);
        if let Some(mut frame) = Frame::new(&mut staging[..HEADROOM + length]) {
            frame.set_seal(sealed.ok().flatten());
            self.send(queue, Asked::by(packet), &mut frame, lane);
        }
    }

    /// A packet that is cut into frames, as far as they may leave now; answers how many.
    fn segment<L: Lane>(
        &mut self,
        queue: Queue,
        mut packet: Packet,
        staging: &mut Staging,
        lane: &mut L,
    ) -> usize {
        if packet.sent == 0
            && lane.takes_uncut()
            && let Some(segments) = self.send_uncut(&packet, &mut staging.packet, lane)
        {
            return segments;
        }
        let bytes = &staging.packet[HEADROOM..HEADROOM + packet.length];
        let file = &self.file;
        let masks = flag_masks(file.get(r::DTXTCPFLGL), file.get(r::DTXTCPFLGH));
        let segmenter = segmenter(bytes, packet.orders, &packet.context, masks);
        let fits = |s: &Segmenter<'_>| packet.fits(s.longest()) && s.count() <= MAX_SEGMENTS;
        let Some(segmenter) = segmenter.ok().filter(fits) else {
            self.spoiled(queue, lvmmc::CONTEXT, lane);
            return 1;
        };
        self.file.count(r::TSCTC, u32::from(packet.sent == 0));
        let (mut cut, before) = (segmenter.skip(packet.sent).cut(), packet.sent);
        while let Some((place, length)) =
            cut.next_within(&mut staging.packet[..HEADROOM + packet.length], &mut staging.frame, HEADROOM)
        {
            let end = HEADROOM + pad(&mut place[HEADROOM..], length);
            if let Some(mut frame) = Frame::new(&mut place[..end]) {
                frame.set_seal(cut.sealed());
                self.send(queue, Asked::by(&packet), &mut frame, lane);
            }
            packet.sent += 1;
            if !lane.is_due() {
                break;
            }
        }
        if cut.count() > 0 {
            self.queues.tx[queue.index()].held.keep(packet, &mut staging.packet);
        }
        (packet.sent - before).max(1) as usize
    }

    /// A finished frame of a pool: its tag is settled, then it is switched.
    #[inline(always)]
    fn send<L: Lane>(&mut self, queue: Queue, asked: Asked, frame: &mut Frame<'_>, lane: &mut L) {
        let (inner, outer) = lane.tag_types();
        frame.look_behind(inner, outer);
        let inserted = lane.tag(asked.tag);
        // The outer tag is software's to bring; there is nothing to put an inner one behind (datasheet 7.4.5.1).
        if inserted.is_some() && frame.outer == Outer::Missing {
            return self.spoiled(queue, lvmmc::CONTEXT, lane);
        }
        // A tag that the descriptor asks for goes before one in the frame; the pool's takes its place.
        if asked.tag.is_none() || inserted.is_none() {
            frame.take_tag();
        }
        frame.tag = inserted.or(frame.tag);
        let told = lane.send(self, frame);
        if let Some(reason) = told.refused {
            self.refused(queue, reason);
        }
        if asked.time_stamp && told.sent && self.scratch.conditions.owners.vf_of(queue.pool()).is_none() {
            self.stamp_sent(self.scratch.now);
        }
    }
}

/// Puts the check sequence behind a frame; answers its bytes.
fn append_check_sequence(bytes: &mut [u8], length: usize) -> usize {
    let check = crc::frame_check_sequence(&bytes[..length]).to_le_bytes();
    bytes[length..length + FCS].copy_from_slice(&check);
    FCS
}

/// Pads a frame with zeros to the shortest that Ethernet knows; answers its length then.
fn pad(bytes: &mut [u8], length: usize) -> usize {
    let padded = length.max(MIN_FRAME).min(bytes.len());
    if length < padded {
        bytes[length..padded].fill(0);
    }
    padded
}
