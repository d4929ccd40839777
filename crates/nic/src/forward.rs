//! The journey itself: a frame from the wire or from a transmit queue is prepared, switched, and handed to
//! pools (`arrival`) and wire. Left out: the stops, which are called in order here.

use crate::Nic;
use crate::counters::Fate;
use crate::frame::{Frame, HEADER, HEADROOM, Outer};
use crate::offload::segment::{FlagMasks, Segmenter};
use crate::offload::{crc, transmit};
use crate::queue::transmit::{Invalid, Packet, Taken};
use crate::scratch::Staging;
use crate::switch::{self, Reason, Source, Storm};
use crate::uplink::{self, Wire};
use i82576::Queue;
use i82576::bits::{lvmmc, rctl, rfctl};
use i82576::ids::{FCS, MAX_FRAME, MIN_FRAME};
use i82576::register as r;
use pcie::Bus;

/// The largest packet a queue may hand over: 256 KB is what PAYLEN can say, with room for headers.
pub(crate) const MAX_PACKET: usize = 260 * 1024;
/// The most segments one packet is cut into: 64 KB at the smallest MSS that Linux allows (48) is 1,366.
const MAX_SEGMENTS: u32 = 2048;

impl Nic {
    /// Takes one frame from the wire; answers whether there was one.
    pub(crate) fn forward_from_wire<B: Bus, W: Wire>(&mut self, bus: &mut B, wire: &mut W) -> bool {
        let mut staging = core::mem::take(&mut self.scratch.staging.frame);
        let received = wire.receive(&mut staging[HEADROOM..]);
        // A port that has no link, or does not receive, knows of no frame: nothing is counted.
        if let Some(length) = received.filter(|_| self.state.link && !self.loops_back() && self.receives()) {
            self.arrive(&mut staging, length, bus, wire);
        }
        self.scratch.staging.frame = staging;
        received.is_some()
    }

    /// `length` bytes are in the staging buffer.
    fn arrive<B: Bus, W: Wire>(&mut self, staging: &mut [u8], length: usize, bus: &mut B, wire: &mut W) {
        let padded = pad(&mut staging[HEADROOM..], length);
        if uplink::ends_here(&mut self.state.file, &staging[HEADROOM..HEADROOM + padded]) {
            return;
        }
        self.scratch.tally.arrived(padded);
        match length {
            ..HEADER => uplink::count_length_error(&mut self.state.file, r::RUC),
            _ if length > MAX_FRAME - FCS => uplink::count_length_error(&mut self.state.file, r::ROC),
            _ => {
                let bytes = &mut staging[HEADROOM..];
                let trailer = if self.derived.tables.keeps_check_sequence {
                    append_check_sequence(bytes, padded)
                } else {
                    0
                };
                if let Some(mut frame) = Frame::new(&mut staging[..HEADROOM + padded + trailer]) {
                    frame.set_trailer(trailer);
                    frame.look_behind(self.derived.tables.inner, self.derived.tables.outer);
                    frame.take_tag();
                    self.switch(None, &mut frame, bus, wire);
                }
            }
        }
    }

    /// Takes one packet, or what is left of one, from a transmit queue; answers how many frames of the budget it
    /// cost, at least 1, or `None` if there was no packet, or none may follow.
    pub(crate) fn forward_from_queue<B: Bus, W: Wire>(
        &mut self,
        queue: Queue,
        bus: &mut B,
        wire: &mut W,
    ) -> Option<usize> {
        let mut staging = core::mem::take(&mut self.scratch.staging);
        let function = self.state.owners.of_queue(queue);
        let taken = match self.state.tx[queue.index()].held.resume(&mut staging.packet) {
            Some(packet) => Taken::Packet(packet),
            None => {
                let place = &mut staging.packet[HEADROOM..];
                let descriptors = &mut self.scratch.descriptors;
                self.state.tx[queue.index()].take(&mut self.state.file, function, bus, descriptors, place)
            }
        };
        let frames = match taken {
            Taken::Nothing => None,
            Taken::Empty => Some(1),
            Taken::Dropped(why) => {
                match why {
                    Invalid::Fault => self.state.counters[usize::from(queue.pool())].dma_faults += 1,
                    Invalid::Size => self.misbehaved(queue, lvmmc::SIZE),
                    Invalid::Type => self.misbehaved(queue, lvmmc::DESCRIPTOR),
                }
                Some(1)
            }
            Taken::Packet(packet) if packet.first.segment => {
                Some(self.segment(queue, packet, &mut staging, bus, wire))
            }
            Taken::Packet(packet) => {
                self.send_whole(queue, &packet, &mut staging.packet, bus, wire);
                Some(1)
            }
        };
        self.scratch.staging = staging;
        frames
            .filter(|_| !self.is_blocked(queue))
            .map(|frames| frames.max(self.state.tx[queue.index()].effort()))
    }

    /// A packet that is one frame.
    fn send_whole<B: Bus, W: Wire>(
        &mut self,
        queue: Queue,
        packet: &Packet,
        staging: &mut [u8],
        bus: &mut B,
        wire: &mut W,
    ) {
        if !(HEADER..=MAX_FRAME - FCS).contains(&packet.length) {
            return self.misbehaved(queue, lvmmc::SIZE);
        }
        let place = &mut staging[HEADROOM..];
        // A checksum request that does not fit the frame leaves it as the sender made it.
        let sealed = transmit::insert(&mut place[..packet.length], &packet.first, &packet.context);
        if sealed.is_err() {
            self.misbehaved(queue, lvmmc::CONTEXT);
        }
        if let Some(checksum) = &packet.checksum {
            transmit::insert_legacy(&mut place[..packet.length], checksum);
        }
        let length = pad(place, packet.length);
        if let Some(mut frame) = Frame::new(&mut staging[..HEADROOM + length]) {
            frame.set_seal(sealed.ok().flatten());
            self.send(queue, packet, &mut frame, bus, wire);
        }
    }

    /// A packet that is cut into frames, as far as they may leave now; answers how many.
    fn segment<B: Bus, W: Wire>(
        &mut self,
        queue: Queue,
        mut packet: Packet,
        staging: &mut Staging,
        bus: &mut B,
        wire: &mut W,
    ) -> usize {
        let bytes = &staging.packet[HEADROOM..HEADROOM + packet.length];
        let masks =
            FlagMasks::from_registers(self.state.file.get(r::DTXTCPFLGL), self.state.file.get(r::DTXTCPFLGH));
        let segmenter = Segmenter::new(bytes, &packet.first, &packet.context, masks);
        let fits = |s: &Segmenter<'_>| s.longest() <= MAX_FRAME - FCS && s.count() <= MAX_SEGMENTS;
        let Some(segmenter) = segmenter.ok().filter(fits) else {
            self.misbehaved(queue, lvmmc::CONTEXT);
            return 1;
        };
        self.state.file.count(r::TSCTC, u32::from(packet.sent == 0));
        let (mut segmenter, before) = (segmenter.skip(packet.sent), packet.sent);
        while let Some(length) = segmenter.write_next(&mut staging.frame[HEADROOM..]) {
            let length = pad(&mut staging.frame[HEADROOM..], length);
            if let Some(mut frame) = Frame::new(&mut staging.frame[..HEADROOM + length]) {
                frame.set_seal(segmenter.sealed());
                self.send(queue, &packet, &mut frame, bus, wire);
            }
            packet.sent += 1;
            if self.state.pacing.due(queue.pool()) > self.scratch.now {
                break;
            }
        }
        if segmenter.count() > 0 {
            self.state.tx[queue.index()].held.keep(packet, &mut staging.packet);
        }
        (packet.sent - before).max(1) as usize
    }

    /// A finished frame of a pool: its tag is settled, then it is switched.
    fn send<B: Bus, W: Wire>(
        &mut self,
        queue: Queue,
        packet: &Packet,
        frame: &mut Frame<'_>,
        bus: &mut B,
        wire: &mut W,
    ) {
        frame.look_behind(self.derived.tables.inner, self.derived.tables.outer);
        let asked = packet.first.insert_vlan.then_some(packet.context.vlan_tag);
        let inserted = self.derived.tables.transmit_tag(queue.pool(), asked);
        // The outer tag is software's to bring; there is nothing to put an inner one behind (datasheet 7.4.5.1).
        if inserted.is_some() && frame.outer == Outer::Missing {
            return self.misbehaved(queue, lvmmc::CONTEXT);
        }
        // A tag that the descriptor asks for goes before one in the frame; the pool's takes its place.
        if asked.is_none() || inserted.is_none() {
            frame.take_tag();
        }
        frame.tag = inserted.or(frame.tag);
        frame.timed = packet.first.time_stamp && queue.pool() >= self.state.owners.vfs;
        self.switch(Some(queue), frame, bus, wire);
    }

    /// Asks the switch about a frame of a queue or of the wire, and hands it to everybody it names.
    fn switch<B: Bus, W: Wire>(
        &mut self,
        sender: Option<Queue>,
        frame: &mut Frame<'_>,
        bus: &mut B,
        wire: &mut W,
    ) {
        let (dst, src) = frame.addresses();
        let length = frame.length();
        let source = sender.map_or(Source::Wire, |queue| Source::Pool(queue.pool()));
        if let Source::Pool(pool) = source {
            self.state.pacing.left(pool, length);
        }
        let mut decision =
            self.derived.tables.decide(&switch::Frame { dst, src, vlan: frame.tag, length, source });
        match (sender, decision.dropped) {
            (Some(queue), Some(reason)) if self.blocks(queue, reason) => return,
            (None, None) if uplink::is_truncated(frame.untagged()) && !self.passes_truncated() => return,
            (None, Some(Reason::TooLong)) => uplink::count_length_error(&mut self.state.file, r::ROC),
            _ => {}
        }
        if decision.pools != 0 && Storm::concerns(&self.state.file, dst) {
            self.control_storm(dst, &mut decision, length);
        }
        let fate = self.hand_out(source, dst, &decision, frame, bus);
        match source {
            Source::Pool(pool) if fate.is_some() => {
                self.state.pacing.crossed(pool, length, decision.pools.count_ones(), self.scratch.now);
            }
            Source::Wire if fate >= Some(Fate::Dropped) => {
                self.scratch.tally.received(dst, length, fate == Some(Fate::Reached));
            }
            Source::Pool(_) | Source::Wire => {}
        }
        let sent = decision.wire && self.state.link && self.leave(frame, bus, wire);
        if sent {
            self.scratch.tally.sent(dst, length);
            if frame.timed && sender.is_some() {
                self.stamp_sent();
            }
        }
        if let Some(queue) = sender {
            self.count_sent(queue.pool(), dst, length, decision.pools != 0, sent);
        }
    }

    /// What is sent comes back: the PHY loops it, or the MAC before it.
    fn loops_back(&self) -> bool {
        self.state.phy.loops_back() || self.state.file.get(r::RCTL) & rctl::LBM_MASK == rctl::LBM_MAC
    }

    /// Counts a frame whose length field is wrong; answers whether such frames are passed on.
    #[cold]
    fn passes_truncated(&mut self) -> bool {
        self.state.file.count(r::LENERRS, 1);
        self.state.file.get(r::RFCTL) & rfctl::LEF != 0
    }

    /// The frame leaves for the wire, which in loopback brings it back at once; `false` if it was dropped.
    fn leave<B: Bus, W: Wire>(&mut self, frame: &mut Frame<'_>, bus: &mut B, wire: &mut W) -> bool {
        if !self.loops_back() {
            return wire.transmit(frame.tagged());
        }
        if self.receives() {
            self.scratch.tally.arrived(frame.length());
            self.switch(None, frame, bus, wire);
        }
        true
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
