//! The card's VFs as ports of the forwarding plane: port n is VF n. What the PF driver has said of addresses, VLANs, tags,
//! checks and rates becomes tables and prices; frames for a VF go into a receive queue.
//!
//! A VF in unicast promiscuous mode gets the frames from the uplink whose destination no other VF has a filter for. That is
//! how i40e sets the switch up unless it is told otherwise.
//!
//! Left out: packets of transmit queues, which become frames in `forward`.

use crate::card::Card;
use crate::contents::Contents;
use crate::forward::{Work, cast, request};
use crate::function::Function;
use crate::plain::{self, Described};
use crate::receive::{Missed, RxQueue};
use alloc::vec::Vec;
use avf::control::Tags;
use avf::descriptor::rx::{PlainWords, WriteBack};
use avf::descriptor::tx::{Ip, L4, SIZE};
use avf::ids::{LONGEST, MAX_FRAME, MAX_PAIRS, MAX_VFS};
use offload::crc::frame_check_sequence;
use offload::insert::insert;
use offload::plain::Plain;
use pcie::Function::Vf;
use pcie::{Bus, Function as BusFunction, Hint};
use plane::frame::{Frame, Sealed};
use plane::pacing::Lateness;
use plane::switch::{Fit, Ids, Mirrors, PortTag, Reason, Tables};
use plane::{About, Plane, Port, Ports, Sender, Sink};
use rings::{Misfit, Receiver, Spread, Terms};
use units::MacAddress;

/// A port whose rate is limited keeps it while the card is polled this late. What is later is lost. As the 82576's PF driver
/// sets its card.
const LATENESS: Lateness = Lateness::Time(10_000_000);

impl Card {
    /// What the plane asks about frames: to be made anew after a visit of the PF driver.
    #[must_use]
    pub fn tables(&self) -> Tables<MAX_VFS> {
        let addresses = self.functions.iter().map(|function| function.filters.addresses.len()).sum();
        let mut tables = Tables::closed(addresses);
        (tables.shared, tables.replicate, tables.loopback) = (true, true, true);
        // Frames of every VLAN are switched: which VFs get one is up to the filters of each VF.
        tables.filter_vlans = true;
        tables.vlans.accept(Ids::from_words(|_| u32::MAX));
        let everybody =
            Ports::new(if self.functions.len() < 64 { (1 << self.functions.len()) - 1 } else { u64::MAX });
        (tables.all, tables.guests, tables.broadcast) = (everybody, everybody, everybody);
        for (function, n) in self.functions.iter().zip(0..) {
            let port = Port::of_field(n);
            add_filters(&mut tables, function, port.only());
            tables.tags[port.index::<MAX_VFS>()] =
                function.filters.tags.port_vlan.map_or(PortTag::Asked, PortTag::Always);
            if strips_tags(function.filters.tags) {
                tables.strips |= port.only();
            }
        }
        tables.set_fits([Fit::whole(MAX_FRAME); MAX_VFS]);
        tables.set_longest(LONGEST);
        tables
    }

    /// Gives the plane the switch tables and rates that the PF driver has set, and the mirror rules. To be called after each
    /// visit of the PF driver.
    pub fn apply_policy(&self, plane: &mut Plane<MAX_VFS>, mirrors: &Mirrors) {
        let mut tables = self.tables();
        tables.mirrors = mirrors.clone();
        plane.set_tables(tables);
        plane.pacing.set_lateness(LATENESS);
        for (function, n) in self.functions.iter().zip(0..) {
            plane.pacing.set_rate(Port::of_field(n), factor(function.filters.rate));
        }
    }

    /// Puts a frame into a receive queue of the VF behind a port. The frame's contents decide which queue that is, and what its
    /// descriptor says: `findings` are those of the port before, if other ports get the frame too.
    #[inline(never)]
    pub(crate) fn deliver_closely<B: Bus>(
        &mut self,
        port: Port,
        frame: &mut Frame<'_>,
        about: About,
        findings: &mut Option<Contents>,
        bus: &mut B,
    ) -> Result<usize, plane::Missed> {
        let vf = port.get();
        let Self { functions, checked, reached, .. } = self;
        let function = functions.get_mut(usize::from(vf)).filter(|function| function.master);
        let function = function.ok_or(plane::Missed::Disabled)?;
        let seal = frame.seal();
        let contents = *findings.get_or_insert_with(|| Contents::of(frame.untagged(), seal));
        let (hash, queue) = function.scaling.spread(frame.untagged(), contents);
        let tags = function.filters.tags;
        let fcs = function.rx.get(usize::from(queue)).is_some_and(RxQueue::keeps_check_sequence);
        let said = describe(contents, hash, tags, frame.tag, about);
        let said = WriteBack { cast: cast(frame.ends()), fcs, ..said };
        let bytes = frame.delivered(!strips_tags(tags));
        let length = bytes.len();
        let with_check = if fcs { append_check_sequence(bytes, checked) } else { bytes };
        *reached |= 1 << (vf % MAX_VFS as u8);
        match function.put((Vf(vf), queue), with_check, said, bus) {
            Ok(()) => Ok(length),
            Err(Missed::NoFunction | Missed::NotRunning) => Err(plane::Missed::Disabled),
            Err(Missed::TooLong | Missed::NoBuffer) => Err(plane::Missed::Dropped),
            Err(Missed::Fault) => Err(plane::Missed::Fault),
        }
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
    ) -> Result<usize, plane::Missed> {
        if !self.card.careful
            && let Some(bytes) = rings::deliver(self, port, frame, about)
        {
            return Ok(bytes);
        }
        self.card.deliver_closely(port, frame, about, findings, self.bus)
    }
}

impl<B: Bus> rings::Card for Work<'_, B> {
    type Bus = B;
    type TxFormat = plain::Data;
    type RxFormat = Described;

    fn judges(&self) -> bool {
        true
    }

    fn next(&mut self, sender: Sender, most: usize) -> &[[u8; SIZE]] {
        self.card.next_plain(sender, most, self.bus)
    }

    fn pass(&mut self, sender: Sender, count: usize) {
        self.card.pass_plain(sender, count, self.bus);
    }

    fn source(&mut self, sender: Sender) -> (BusFunction, &mut Hint, &mut B) {
        let (vf, queue) = (sender.port.get(), usize::from(sender.queue) % MAX_PAIRS);
        let function = &mut self.card.functions[usize::from(vf)];
        (Vf(vf), &mut function.tx[queue].buffers, self.bus)
    }

    fn insert(&self, at: usize, frame: &mut [u8]) -> Result<Option<Sealed>, Misfit> {
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

/// Returns the tag that the descriptor has of a frame whose tag was taken out. The tag of the port's VLAN is not told.
#[inline(always)]
fn told_of_tag(tags: Tags, tag: Option<u16>) -> Option<u16> {
    tag.filter(|_| tags.strip && tags.port_vlan.is_none())
}

/// Whether the VF's frames are delivered without their tag: the VF asked for it, or the PF has put it on a port VLAN.
#[inline(always)]
fn strips_tags(tags: Tags) -> bool {
    tags.strip || tags.port_vlan.is_some()
}

/// What the descriptor says of a frame to one station, without its check sequence.
#[inline(always)]
fn describe(contents: Contents, hash: Option<u32>, tags: Tags, tag: Option<u16>, about: About) -> WriteBack {
    WriteBack {
        packet_type: contents.packet_type(),
        checksums: contents.checksums(),
        hash,
        tag: told_of_tag(tags, tag),
        loopback: !about.from_uplink,
        end_of_packet: true,
        ..WriteBack::default()
    }
}

/// A frame with its check sequence, in a place for it.
#[cold]
fn append_check_sequence<'a>(frame: &[u8], place: &'a mut Vec<u8>) -> &'a [u8] {
    place.clear();
    place.extend_from_slice(frame);
    place.extend_from_slice(&frame_check_sequence(frame).to_le_bytes());
    place
}

/// What a rate in Mb/s is to the plane: 1 Gb/s over it, with 14 binary places. 0 is no limit.
pub(crate) fn factor(mbps: u32) -> Option<u32> {
    (mbps != 0).then(|| ((1000_u64 << 14) / u64::from(mbps)).max(1) as u32)
}

/// What one VF receives by and is held to.
fn add_filters(tables: &mut Tables<MAX_VFS>, function: &Function, only: Ports) {
    let filters = &function.filters;
    filters.addresses.iter().for_each(|mac| tables.exact.add(MacAddress(*mac), only));
    for vlan in &filters.vlans {
        if *vlan == 0 {
            tables.untagged |= only;
        }
        tables.vlans.add(*vlan, only, false);
    }
    if filters.multicast {
        tables.every_multicast |= only;
    }
    if filters.unicast {
        tables.default_ports |= only;
    }
    if filters.spoof_check {
        tables.check_source |= only;
        tables.check_vlan |= only;
    }
    if function.rx.iter().any(|queue| queue.running) {
        tables.enabled |= only;
    }
}
