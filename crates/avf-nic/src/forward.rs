//! The journey of a packet to the plane: checksums are inserted, or it is cut into segments, and the frames are handed to the
//! plane as far as budget and rate allow. Port n of the plane is VF n.
//!
//! A packet uses up as many frames of the budget as it has segments, whether this card cuts it or the uplink does. If the
//! VF's rate stops a packet between two of its segments, the card keeps the rest (`held`). When the VF may send again, the
//! rest goes first, whichever of the VF's queues is visited.
//!
//! Left out: how descriptors are read (`transmit`), and tunnels.

use crate::card::Card;
use crate::staging::Staging;
use crate::transmit::{Outgoing, Packet};
use avf::descriptor::rx::Cast;
use avf::descriptor::tx::{Data, Ip, L4};
use avf::ids::{LONGEST, MAX_VFS, SHORTEST};
use core::mem;
use offload::Request;
use offload::insert::insert;
use offload::segment::{FlagMasks, Segmenter};
use offload::uncut::{self, MAX_SEGMENTS};
use pcie::{Bus, VfIndex};
use plane::frame::{Ends, Frame, HEADROOM, Transport};
use plane::ledger::{Sum, Traffic};
use plane::tag::TAG;
use plane::{Lane, Plane, Port, Sender, Source, Wire};
use rings::Frames;

impl Packet {
    /// The tag that it asks for, in either place.
    fn tag(&self) -> Option<u16> {
        self.first.tag.or(self.context.and_then(|context| context.tag2))
    }

    /// Checks that `bytes` of the packet, its own tag and the check sequence make at most 9,728 bytes. The plane drops what the
    /// port VLAN's tag makes too long: that is not the sender's doing.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        bytes + if self.tag().is_some() { TAG } else { 0 } <= LONGEST
    }

    /// How it is cut, if it describes a packet that could be; its bytes, and those of a segment.
    pub(crate) fn segmenter<'a>(&self, bytes: &'a [u8]) -> Option<Segmenter<'a>> {
        let (context, request) = (self.context?, request(&self.first));
        let payload = bytes.len().checked_sub(request.payload_start())?;
        let told = payload == context.payload as usize && self.first.ip != Ip::None;
        let segmenter = Segmenter::new(bytes, &request, context.mss, FlagMasks::DEFAULT).ok()?;
        let fits = self.fits(segmenter.longest()) && segmenter.count() <= MAX_SEGMENTS;
        (told && fits).then_some(segmenter)
    }
}

/// The checksums that a packet's first descriptor asks for.
pub(crate) fn request(first: &Data) -> Request {
    Request {
        mac_length: first.mac_length.into(),
        ip_length: first.ip_length.into(),
        l4_length: first.l4_length.into(),
        ipv4: matches!(first.ip, Ip::V4 | Ip::V4Checksum),
        l4: match first.l4 {
            L4::None => None,
            L4::Tcp => Some(Transport::Tcp),
            L4::Udp => Some(Transport::Udp),
            L4::Sctp => Some(Transport::Sctp),
        },
        ip_checksum: first.ip == Ip::V4Checksum,
        l4_checksum: first.l4 != L4::None,
    }
}

/// The VFs while frames are on their way.
pub(crate) struct Work<'a, B> {
    pub(crate) card: &'a mut Card,
    pub(crate) bus: &'a mut B,
    /// A place for a packet.
    pub(crate) staging: &'a mut Staging,
}

impl Card {
    /// Visits every transmit queue that may hold a packet. Each hands over up to `budget` frames. Answers whether a queue has
    /// more that may leave now; what waits for its VF's rate may leave at [`Card::due`]. `staging` grows to the longest
    /// packet, 256 KB.
    pub fn forward<B: Bus, W: Wire>(
        &mut self,
        plane: &mut Plane<MAX_VFS>,
        budget: usize,
        staging: &mut Staging,
        bus: &mut B,
        wire: &mut W,
    ) -> bool {
        let (mut more, mut due) = (false, None);
        for vf in self.masters.iter().map(VfIndex::get) {
            let mut ready = self.functions[usize::from(vf)].tx_ready;
            while ready != 0 {
                let queue = ready.trailing_zeros() as u8;
                ready &= ready - 1;
                let mut work = Work { card: self, bus, staging };
                let sender = Sender { port: Port::of_field(vf.into()), queue };
                let visited = plane.visit(sender, budget, &mut work, wire).unwrap_or_default();
                if !visited.left && visited.due.is_none() {
                    self.functions[usize::from(vf)].tx_ready &= !(1 << queue);
                }
                more |= visited.left && visited.due.is_none();
                due = [due, visited.due].into_iter().flatten().min();
            }
        }
        self.give_back(bus);
        self.due = due;
        more
    }

    /// Whether a queue's function may use the bus and the queue runs.
    fn may_send(&self, vf: u8, queue: u8) -> bool {
        let function = self.functions.get(usize::from(vf)).filter(|function| function.master);
        function.and_then(|function| function.tx.get(usize::from(queue))).is_some_and(|tx| tx.running)
    }
}

impl<B: Bus> Source for Work<'_, B> {
    fn may_send(&self, sender: Sender) -> bool {
        self.card.may_send(sender.port.get(), sender.queue)
    }

    fn hand_over<L: Lane>(&mut self, sender: Sender, budget: usize, lane: &mut L) -> bool {
        let (mut budget, (vf, queue)) = (budget, (sender.port.get(), sender.queue));
        let mut burst = self.card.burst.take();
        let mut plain = if self.card.careful { None } else { Some(burst.get_or_insert_with(Frames::new)) };
        // A look at the ring costs less than finding no packet in it.
        while budget > 0 && lane.is_due() && self.has_more(sender) {
            let sent = plain.as_mut().map_or(0, |frames| rings::forward(self, sender, frames, budget, lane));
            let frames = if sent > 0 { Some(sent) } else { self.forward_packet(vf, queue, lane) };
            // A driver that sends packets of another kind sends more of them.
            plain = plain.filter(|_| sent > 0);
            let Some(frames) = frames else { break };
            budget = budget.saturating_sub(frames);
        }
        self.card.burst = burst;
        self.card.count_sent(sender.port.get(), &lane.settle());
        self.has_more(sender)
    }

    fn has_more(&self, sender: Sender) -> bool {
        let function = self.card.functions.get(usize::from(sender.port.get()));
        function.is_some_and(|function| {
            let tx = function.tx.get(usize::from(sender.queue));
            function.held.is_of(sender.queue) || tx.is_some_and(|tx| tx.has_more())
        })
    }
}

impl<B: Bus> Work<'_, B> {
    /// Takes one packet, or what is left of one; answers how many frames of the budget it cost, at least 1, or `None` if
    /// there was no packet.
    fn forward_packet<L: Lane>(&mut self, vf: u8, queue: u8, lane: &mut L) -> Option<usize> {
        let function = self.card.functions.get_mut(usize::from(vf))?;
        let mut staging = mem::take(self.staging);
        let held = function.held.resume(&mut staging);
        let taken = held.map(|(packet, queue)| (Outgoing::Packet(packet), queue));
        let (outgoing, queue) =
            taken.unwrap_or_else(|| (self.card.transmit(vf, queue, HEADROOM, &mut staging, self.bus), queue));
        let cost = match outgoing {
            Outgoing::Nothing => None,
            Outgoing::Dropped => {
                lane.counters().tx_invalid += 1;
                Some(Packet::COSTLIEST)
            }
            Outgoing::Packet(packet) => {
                let segments = packet.context.is_some_and(|context| context.segment);
                let frames = if segments {
                    self.segment(vf, queue, packet, &mut staging, lane)
                } else {
                    self.send_whole(vf, queue, &packet, &mut staging, lane)
                };
                Some(frames.max(packet.cost()))
            }
        };
        *self.staging = staging;
        cost
    }

    /// A packet is malformed: it asks for what cannot be done.
    fn spoiled<L: Lane>(&mut self, vf: u8, queue: u8, lane: &mut L) -> usize {
        lane.counters().tx_invalid += 1;
        self.card.count_malformed(vf, queue);
        1
    }

    /// A packet that is one frame.
    fn send_whole<L: Lane>(
        &mut self,
        vf: u8,
        queue: u8,
        packet: &Packet,
        staging: &mut Staging,
        lane: &mut L,
    ) -> usize {
        let bytes = staging.get_mut(HEADROOM..).unwrap_or_default();
        let Ok(sealed) = insert(bytes, &request(&packet.first)) else { return self.spoiled(vf, queue, lane) };
        staging.pad(HEADROOM + SHORTEST);
        if let Some(mut frame) = Frame::new(staging) {
            frame.set_seal(sealed);
            self.send(vf, self.card.asked(vf, packet), &mut frame, lane);
        }
        1
    }

    /// A packet that is cut into frames, as far as they may leave now; answers how many.
    fn segment<L: Lane>(
        &mut self,
        vf: u8,
        queue: u8,
        mut packet: Packet,
        staging: &mut Staging,
        lane: &mut L,
    ) -> usize {
        if packet.sent == 0
            && lane.takes_uncut()
            && let Some(frames) = self.send_uncut(vf, &packet, staging, lane)
        {
            return frames;
        }
        let Some(segmenter) = packet.segmenter(staging.get(HEADROOM..).unwrap_or_default()) else {
            return self.spoiled(vf, queue, lane);
        };
        let before = packet.sent;
        let (mut cut, mut apart) = (segmenter.skip(before).cut(), mem::take(&mut self.card.segment));
        apart.resize(HEADROOM + LONGEST, 0);
        while let Some((place, length)) = cut.next_within(staging, &mut apart, HEADROOM) {
            let padded = length.max(SHORTEST);
            place[HEADROOM + length..HEADROOM + padded].fill(0);
            if let Some(mut frame) = Frame::new(&mut place[..HEADROOM + padded]) {
                frame.set_seal(cut.sealed());
                self.send(vf, self.card.asked(vf, &packet), &mut frame, lane);
            }
            packet.sent += 1;
            if !lane.is_due() {
                break;
            }
        }
        let left = cut.count() > 0;
        self.card.segment = apart;
        if left && let Some(function) = self.card.functions.get_mut(usize::from(vf)) {
            function.held.keep(packet, queue, staging);
        }
        (packet.sent - before).max(1) as usize
    }

    /// Sends a packet as it is to an uplink that takes such; answers how many segments it has. `None` if the card has to
    /// cut it; then it is unchanged.
    fn send_uncut<L: Lane>(
        &mut self,
        vf: u8,
        packet: &Packet,
        staging: &mut [u8],
        lane: &mut L,
    ) -> Option<usize> {
        let (bytes, context) = (staging.get(HEADROOM..)?, packet.context?);
        packet.segmenter(bytes)?;
        let whole = uncut::sent(bytes, &request(&packet.first), context.mss, FlagMasks::DEFAULT)?;
        let frames = whole.frames(bytes.len()) as usize;
        let mut frame = Frame::new(staging)?;
        frame.tag = lane.tag(self.card.asked(vf, packet));
        lane.send_uncut(&mut frame, &whole, SHORTEST, |bytes| uncut::complete(&whole, bytes))?;
        Some(frames)
    }

    /// Hands a finished frame to the plane. A tag that is inserted, such as that of the port's VLAN, replaces the guest's own.
    #[inline(never)]
    fn send<L: Lane>(&mut self, vf: u8, asked: Option<u16>, frame: &mut Frame<'_>, lane: &mut L) {
        let inserted = lane.tag(asked);
        if asked.is_none() || inserted.is_none() {
            frame.take_tag();
        }
        frame.tag = inserted.or(frame.tag);
        if lane.send(self, frame).refused.is_some() {
            self.card.count_refused(vf);
        }
    }
}

impl Card {
    /// The tag that a packet asks for, if its VF may.
    fn asked(&self, vf: u8, packet: &Packet) -> Option<u16> {
        let may = self.filters(vf).is_some_and(|filters| filters.tags.insert);
        packet.tag().filter(|_| may)
    }

    #[cold]
    pub(crate) fn count_refused(&mut self, vf: u8) {
        let function = self.functions.get_mut(usize::from(vf));
        function.map(|function| function.statistics.tx_discards += 1).unwrap_or_default();
    }

    /// Adds what a visit of one of the VF's queues has sent to the VF's statistics.
    fn count_sent(&mut self, vf: u8, sent: &Traffic) {
        let Some(function) = self.functions.get_mut(usize::from(vf)) else { return };
        let (statistics, Sum { packets, bytes }) = (&mut function.statistics, sent.all());
        statistics.tx_bytes += bytes;
        statistics.tx_unicast += packets - sent.multicast - sent.broadcast;
        statistics.tx_multicast += sent.multicast;
        statistics.tx_broadcast += sent.broadcast;
    }
}

/// Whether a frame is for one station, a group or all stations.
#[inline]
pub(crate) fn cast(ends: Ends) -> Cast {
    match ends.is_to_group() {
        false => Cast::Unicast,
        true if ends.destination().is_broadcast() => Cast::Broadcast,
        true => Cast::Multicast,
    }
}
