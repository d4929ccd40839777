//! Forwards large TCP packets of ports and of the uplink unsegmented. These are IP packets, so none is a MAC control frame.
//!
//! A packet passes so if it has one receiver, the uplink or a port, which takes such packets. The switch decides on the
//! longest segment, and segments are counted one by one, so that counters show no difference.
//!
//! The family still segments a packet that several ports or a mirror get, that its sender may not send, or whose port has a rate,
//! which spreads segments over time.

use crate::forward::ForwardingPlane;
use crate::frame::{AddressPair, Frame};
use crate::ports::PortIndex;
use crate::sink::{DeliveryError, DeliveryFlags, FrameSink};
use crate::switch::{FrameOrigin, SwitchDecision};
use crate::tag::{self, TAG};
use crate::uplink::{UnsegmentedPacketLayout, UplinkWire};
use crate::watch::{FrameDirection, FrameDropReason, FrameObservation};

/// Outcome of an unsegmented packet that the family does not have to segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UncutOutcome {
    /// The uplink took the packet.
    Uplink,
    /// A port received the packet, or a trunk to the port took it.
    Port,
    /// The packet was dropped.
    Dropped,
}

/// Unsegmented packet of a port, as the plane counts it.
struct UnsegmentedPacket<'a> {
    port: PortIndex,
    ends: AddressPair,
    uncut: &'a UnsegmentedPacketLayout,
    /// Number of bytes in the packet without its VLAN tag.
    length: usize,
    /// Number of bytes in the packet's VLAN tag; 0 without one.
    tag: usize,
    /// Least number of bytes that a segment counts as.
    shortest: usize,
}

impl UnsegmentedPacket<'_> {
    /// Iterates over the lengths of the segments in bytes, tag included.
    fn segments(&self) -> impl Iterator<Item = usize> {
        let (shortest, tag) = (self.shortest, self.tag);
        self.uncut.lengths(self.length).map(move |length| length.max(shortest) + tag)
    }
}

impl<const N: usize> ForwardingPlane<N> {
    /// Sends an unsegmented packet of a port, without a tag in its bytes, once `complete` has finished its headers. No segment
    /// counts as shorter than `shortest` bytes. Returns `None`, with the packet unchanged, if the family has to segment it.
    pub(crate) fn forward_uncut<S: FrameSink, W: UplinkWire>(
        &mut self,
        port: PortIndex,
        packet: &mut Frame<'_>,
        (uncut, shortest): (&UnsegmentedPacketLayout, usize),
        complete: impl FnOnce(&mut [u8]),
        (sinks, wire): (&mut S, &mut W),
    ) -> Option<UncutOutcome> {
        if self.pacing.limits(port) || self.tables.outer.is_some() || self.tables.inner != tag::TYPE {
            return None;
        }
        let (ends, tag) = (packet.ends(), if packet.tag.is_some() { TAG } else { 0 });
        let (origin, length) = (FrameOrigin::Port(port), uncut.longest() + tag);
        let decision = self.flows.decide((&self.tables, &mut self.claims), ends, packet.tag, length, origin);
        let to = self.uncut_receiver(decision, uncut, sinks, wire)?;
        if self.tables.guards.inspect(port) && self.tables.guard_violation(port, packet).is_some() {
            return None;
        }
        let bytes = packet.untagged_mut();
        let length = bytes.len();
        complete(bytes);
        let counted = UnsegmentedPacket { port, ends, uncut, length, tag, shortest };
        if wire.is_watched() {
            wire.watch(FrameObservation { at: origin, way: FrameDirection::In, lost: None }, packet.tagged());
        }
        Some(match to {
            None => self.leave_uncut(&counted, packet, wire),
            Some(to) => self.reach_uncut((to, decision), &counted, packet, sinks, wire),
        })
    }

    /// Delivers an unsegmented packet from the uplink to the one port that gets it, once `complete` has finished its headers.
    /// `shortest` is the least number of bytes that a segment counts as. Returns the number of segments that the packet counts as,
    /// and `None`, with the packet unchanged except for a tag beside it, if it has to be segmented.
    pub fn arrive_uncut<S: FrameSink>(
        &mut self,
        packet: &mut Frame<'_>,
        (uncut, shortest): (&UnsegmentedPacketLayout, usize),
        complete: impl FnOnce(&mut [u8]),
        sinks: &mut S,
    ) -> Option<u64> {
        let usual = self.uplink.link && self.uplink.receives && !self.uplink.loops_back;
        if !usual || self.tables.outer.is_some() || self.tables.inner != tag::TYPE {
            return None;
        }
        let (ends, tag) = (packet.ends(), if packet.tag.is_some() { TAG } else { 0 });
        let length = uncut.longest() + tag;
        let decision = self.flows.decide(
            (&self.tables, &mut self.claims),
            ends,
            packet.tag,
            length,
            FrameOrigin::Uplink,
        );
        let to = decision.ports.single().filter(|_| decision.dropped.is_none())?;
        if self.storm.limits.counts_unknown || ends.is_to_group() || !sinks.takes_uncut(to, uncut.ipv4) {
            return None;
        }
        let bytes = packet.untagged_mut();
        let length = bytes.len();
        complete(bytes);
        let strips = self.tables.strips(to, decision.replicated);
        let about = DeliveryFlags { from_uplink: true, alone: true, inexact: decision.inexact, strips };
        let delivered = sinks.deliver_uncut(to, packet, uncut, about);
        for length in uncut.lengths(length).map(|length| length.max(shortest)) {
            self.tally.arrived(length + tag);
            self.tally.received(ends.destination(), length + tag, delivered.is_ok());
            match delivered {
                Ok(()) => self.count_received(to, true, ends, length + if strips { 0 } else { tag }),
                Err(missed) => _ = self.count_lost(to, missed),
            }
        }
        Some(uncut.frames(length))
    }

    /// Returns the port that gets an unsegmented packet, or `Some(None)` if the uplink does. `None` if the family has to segment
    /// it.
    fn uncut_receiver<S: FrameSink, W: UplinkWire>(
        &self,
        decision: SwitchDecision,
        uncut: &UnsegmentedPacketLayout,
        sinks: &S,
        wire: &W,
    ) -> Option<Option<PortIndex>> {
        if decision.dropped.is_some() {
            return None;
        }
        if decision.uplink {
            let usual = self.uplink.link && !self.uplink.loops_back && decision.ports.is_empty();
            return (usual && wire.takes_uncut()).then_some(None);
        }
        let to = decision.ports.single()?;
        let counts = self.storm.limits.counts_unknown || self.pacing.limits_crossing();
        (S::RECEIVES_UNCUT && !counts && sinks.takes_uncut(to, uncut.ipv4)).then_some(Some(to))
    }

    /// Sends an unsegmented packet to the uplink.
    fn leave_uncut<W: UplinkWire>(
        &mut self,
        counted: &UnsegmentedPacket<'_>,
        packet: &mut Frame<'_>,
        wire: &mut W,
    ) -> UncutOutcome {
        let sent = wire.transmit_uncut(packet.tagged(), &counted.uncut.behind(counted.tag));
        for length in counted.segments() {
            if sent {
                self.tally.sent(counted.ends.destination(), length);
            }
            self.count_sent(counted.port, counted.ends, length, false, sent);
        }
        if wire.is_watched() {
            let lost = (!sent).then_some(FrameDropReason::Uplink);
            let seen = FrameObservation { at: FrameOrigin::Uplink, way: FrameDirection::Out, lost };
            wire.watch(seen, packet.tagged());
        }
        if sent { UncutOutcome::Uplink } else { UncutOutcome::Dropped }
    }

    /// Delivers an unsegmented packet to a port.
    fn reach_uncut<S: FrameSink, W: UplinkWire>(
        &mut self,
        (to, decision): (PortIndex, SwitchDecision),
        counted: &UnsegmentedPacket<'_>,
        packet: &mut Frame<'_>,
        sinks: &mut S,
        wire: &mut W,
    ) -> UncutOutcome {
        let strips = self.tables.strips(to, decision.replicated);
        let about = DeliveryFlags { from_uplink: false, alone: true, inexact: decision.inexact, strips };
        let delivered = sinks.deliver_uncut(to, packet, counted.uncut, about);
        let received_tag = if strips { 0 } else { counted.tag };
        for length in counted.segments() {
            match delivered {
                Ok(()) => self.count_received(to, false, counted.ends, length - counted.tag + received_tag),
                Err(missed) => _ = self.count_lost(to, missed),
            }
            self.count_sent(counted.port, counted.ends, length, true, false);
        }
        if wire.is_watched() {
            let seen = FrameObservation {
                at: FrameOrigin::Port(to),
                way: FrameDirection::Out,
                lost: delivered.err().map(FrameDropReason::Missed),
            };
            wire.watch(seen, packet.tagged());
        }
        match delivered {
            Ok(()) | Err(DeliveryError::Waits) => UncutOutcome::Port,
            Err(_) => UncutOutcome::Dropped,
        }
    }
}
