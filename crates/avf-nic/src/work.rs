//! The card at work: its VFs' rings as `rings` uses them, in bursts and one packet after the other. If the VF's rate stops a packet
//! between two of its segments, the VF keeps the rest. When the VF may send again, the rest goes first, whichever of its queues is
//! visited.
//!
//! `tx_ring` and `rx_ring` have the descriptors, `ports` the switch's tables.

use crate::card::Card;
use crate::contents::Contents;
use crate::packet::{PacketOrders, request};
use crate::plain::{self, Described};
use crate::ports::{strips_tags, told_of_tag};
use crate::rx_ring::{self, RxQueue};
use alloc::boxed::Box;
use alloc::vec::Vec;
use avf::descriptor::rx::{Cast, PlainWords, WriteBack};
use avf::descriptor::tx::{Ip, L4, SIZE};
use avf::ids::{MAX_PAIRS, MAX_VFS};
use offload::crc::frame_check_sequence;
use offload::insert::insert;
use offload::plain::{Insertion, Plain};
use pcie::Function::Vf;
use pcie::{Bus, Function, Hint};
use plane::frame::{Ends, Frame, HEADER, Sealed};
use plane::ledger::Traffic;
use plane::switch::Reason;
use plane::{About, Lane, Missed, Port, Sender, Sink, Source};
use rings::{Arrivals, Buffers, Flaw, Held, Misfit, Orders, Packets, Places, Receiver, Spread, Taken, Terms};

/// Ether type of MAC control frames, such as pause, which end at the MAC (IEEE 802.3, 31.3).
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];

/// The card's VFs while frames pass.
pub(crate) struct Work<'a, B> {
    pub(crate) card: &'a mut Card,
    pub(crate) bus: &'a mut B,
}

impl<B: Bus> Source for Work<'_, B> {
    /// Returns true if the queue's function may use the bus, and the queue runs.
    fn may_send(&self, sender: Sender) -> bool {
        let function = self.card.functions.get(usize::from(sender.port.get()));
        let function = function.filter(|function| function.master);
        function.and_then(|function| function.tx.get(usize::from(sender.queue))).is_some_and(|tx| tx.running)
    }

    fn hand_over<L: Lane>(&mut self, sender: Sender, budget: usize, lane: &mut L) -> bool {
        rings::visit(self, sender, budget, lane)
    }

    fn has_more(&self, sender: Sender) -> bool {
        let function = self.card.functions.get(usize::from(sender.port.get()));
        function.is_some_and(|function| {
            let tx = function.tx.get(usize::from(sender.queue));
            function.held.is_of(sender.queue) || tx.is_some_and(|tx| tx.has_more())
        })
    }
}

impl<B: Bus> Packets for Work<'_, B> {
    type Orders = PacketOrders;

    fn held(&mut self, sender: Sender) -> Option<&mut Held<PacketOrders>> {
        self.card.functions.get_mut(usize::from(sender.port.get())).map(|function| &mut function.held)
    }

    fn take(&mut self, sender: Sender, buffers: &mut Buffers) -> (Taken<PacketOrders>, usize) {
        self.card.take_packet(sender.port.get(), sender.queue, buffers, self.bus)
    }

    fn end_take(&mut self, sender: Sender, read: bool) -> Option<bool> {
        self.card.end_packet(sender.port.get(), sender.queue, read, self.bus).then_some(true)
    }

    fn spoiled(&mut self, sender: Sender, _flaw: Flaw) {
        self.card.count_malformed(sender.port.get(), sender.queue);
    }

    /// Returns the VLAN tag that the packet requests, if its VF may insert tags.
    fn asked_tag(&self, sender: Sender, orders: &PacketOrders) -> Option<u16> {
        let may = self.card.filters(sender.port.get()).is_some_and(|filters| filters.tags.insert);
        orders.tag().filter(|_| may)
    }

    fn end_visit(&mut self, sender: Sender, sent: &Traffic) -> u64 {
        self.card.count_sent(sender.port.get(), sent);
        0
    }
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
        rings::deliver(self, port, frame, about, findings)
    }
}

impl<B: Bus> Arrivals for Work<'_, B> {
    type Contents = Contents;

    fn look(&mut self, frame: &mut Frame<'_>, _about: About) -> Contents {
        let seal = frame.seal();
        Contents::of(frame.untagged(), seal)
    }

    fn put(
        &mut self,
        port: Port,
        frame: &mut Frame<'_>,
        about: About,
        contents: Contents,
    ) -> Result<usize, Missed> {
        let (vf, Self { card: Card { functions, checked, reached, .. }, bus }) = (port.get(), self);
        let function = functions.get_mut(usize::from(vf)).filter(|function| function.master);
        let function = function.ok_or(Missed::Disabled)?;
        let (hash, queue) = function.scaling.spread(frame.untagged(), contents);
        let tags = function.filters.tags;
        let fcs = function.rx.get(usize::from(queue)).is_some_and(RxQueue::keeps_check_sequence);
        let said = WriteBack {
            packet_type: contents.packet_type(),
            checksums: contents.checksums(),
            hash,
            tag: told_of_tag(tags, frame.tag),
            loopback: !about.from_uplink,
            end_of_packet: true,
            cast: cast(frame.ends()),
            fcs,
            ..WriteBack::default()
        };
        let bytes = frame.delivered(!strips_tags(tags));
        let length = bytes.len();
        let with_check = if fcs { append_check_sequence(bytes, checked) } else { bytes };
        *reached |= 1 << (vf % MAX_VFS as u8);
        match function.put((Vf(vf), queue), with_check, said, *bus) {
            Ok(()) => Ok(length),
            Err(rx_ring::Missed::NoFunction | rx_ring::Missed::NotRunning) => Err(Missed::Disabled),
            Err(rx_ring::Missed::TooLong | rx_ring::Missed::NoBuffer) => Err(Missed::Dropped),
            Err(rx_ring::Missed::Fault) => Err(Missed::Fault),
        }
    }

    fn ends_in_mac(&mut self, frame: &[u8]) -> bool {
        frame.get(HEADER - 2..HEADER) == Some(&MAC_CONTROL)
    }
}

impl<B: Bus> rings::Card for Work<'_, B> {
    type Bus = B;
    type TxFormat = plain::Data;
    type RxFormat = Described;

    fn places(&mut self) -> &mut Option<Box<Places>> {
        &mut self.card.places
    }

    fn is_careful(&self) -> bool {
        self.card.careful
    }

    fn judges(&self) -> bool {
        !self.card.careful
    }

    fn next(&mut self, sender: Sender, most: usize) -> &[[u8; SIZE]] {
        self.card.next_plain(sender, most, self.bus)
    }

    fn pass(&mut self, sender: Sender, count: usize) {
        self.card.pass_plain(sender, count, self.bus);
    }

    fn source(&mut self, sender: Sender) -> (Function, &mut Hint, &mut B) {
        let (vf, queue) = (sender.port.get(), usize::from(sender.queue) % MAX_PAIRS);
        let function = &mut self.card.functions[usize::from(vf)];
        (Vf(vf), &mut function.tx[queue].buffers, self.bus)
    }

    fn insertion(&self, _sender: Sender, at: usize) -> Option<Insertion> {
        request(&self.card.plain.data(at)?).plain()
    }

    fn insert(&self, _sender: Sender, at: usize, frame: &mut [u8]) -> Result<Option<Sealed>, Misfit> {
        let asked = self.card.plain.data(at).filter(|data| (data.ip, data.l4) != (Ip::None, L4::None));
        asked.map_or(Ok(None), |data| insert(frame, &request(&data)).map_err(|_| Misfit))
    }

    fn refused(&mut self, sender: Sender, _reason: Reason) {
        self.card.count_refused(sender.port.get());
    }

    #[inline]
    fn spreads(&self, port: Port) -> bool {
        let function = self.card.functions.get(usize::from(port.get()));
        function.is_some_and(|function| function.scaling.hashes())
    }

    #[inline(always)]
    fn spread(&mut self, port: Port, frame: &Plain<'_>) -> Spread {
        let function = self.card.functions.get_mut(usize::from(port.get()));
        let (hash, queue) = function.map_or((None, 0), |function| function.scaling.spread_plain(frame));
        (queue, hash)
    }

    #[inline(always)]
    fn receiver(&mut self, port: Port, queue: u8, terms: Terms) -> Option<Receiver<'_, B, Described>> {
        let function = self.card.functions.get_mut(usize::from(port.get()));
        let function = function.filter(|function| function.master)?;
        let tag = told_of_tag(function.filters.tags, terms.tag);
        let format = |form| Described::new(PlainWords::new(form, tag, !terms.from_uplink));
        function.rx.get_mut(usize::from(queue))?.receiver(Vf(port.get()), self.bus, (tag, format))
    }

    #[inline]
    fn received(&mut self, port: Port, queue: u8, frames: usize, bytes: u64) {
        self.card.reached |= port.only().bits();
        if let Some(function) = self.card.functions.get_mut(usize::from(port.get())) {
            function.received(queue, frames, bytes);
        }
    }
}

/// Returns the kind of a frame's destination: one station, a group or all stations.
#[inline]
fn cast(ends: Ends) -> Cast {
    match ends.is_to_group() {
        false => Cast::Unicast,
        true if ends.destination().is_broadcast() => Cast::Broadcast,
        true => Cast::Multicast,
    }
}

/// Returns a frame with its check sequence, in the memory of `place`.
#[cold]
fn append_check_sequence<'a>(frame: &[u8], place: &'a mut Vec<u8>) -> &'a [u8] {
    place.clear();
    place.extend_from_slice(frame);
    place.extend_from_slice(&frame_check_sequence(frame).to_le_bytes());
    place
}
