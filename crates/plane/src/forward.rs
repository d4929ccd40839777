//! Forwards a frame to the ports that the switch chooses, and to the uplink. Each receiving port is counted and
//! charged. `source` and `sink` do the work of the device before and after.

use crate::frame::{AddressPair, Frame};
use crate::ledger::{PortCounters, TrafficLedger, TrafficSum};
use crate::pacing::TransmitPacing;
use crate::shares::FrameShares;
use crate::sink::{DeliveryError, DeliveryFlags, DeliveryOutcome, ForwardResult, FrameSink};
use crate::switch::{
    AddressClaims, FlowCache, FrameOrigin, StormParts, StormState, SwitchDecision, SwitchDropReason,
    SwitchTables,
};
use crate::uplink::{UplinkMode, UplinkTally, UplinkWire, is_truncated};
use crate::watch::{FrameDirection, FrameDropReason, FrameObservation};
use crate::watched::CapturedPorts;
use crate::{PortIndex, PortSet};
use units::{MacAddress, Time, WorkCost};

/// Forwarding plane of `N` ports.
#[derive(Debug, Clone)]
pub struct ForwardingPlane<const N: usize> {
    /// Switch tables, by which the plane decides on frames.
    pub(crate) tables: SwitchTables<N>,
    pub(crate) flows: FlowCache<N>,
    pub(crate) claims: AddressClaims<N>,
    /// Transmit rates and transmit accounts of the ports.
    pub pacing: TransmitPacing<N>,
    /// Shares of the ports in the plane's time.
    pub shares: FrameShares<N>,
    /// Storm control: windows, limits and counts of broadcasts and multicasts.
    pub storm: StormState,
    pub(crate) storm_parts: StormParts<N>,
    /// Traffic counters of the ports.
    pub ledger: TrafficLedger<N>,
    /// State of the uplink: link, reception, loopback.
    pub uplink: UplinkMode,
    /// Counts of the frames that crossed the uplink since the device last took these counts.
    pub tally: UplinkTally,
    /// Time of the plane's current poll.
    pub now: Time,
}

impl<const N: usize> ForwardingPlane<N> {
    /// Creates a plane. No flow is remembered, and the uplink has no link.
    #[must_use]
    pub fn new(
        tables: SwitchTables<N>,
        pacing: TransmitPacing<N>,
        storm: StormState,
        counters: [PortCounters; N],
    ) -> Self {
        Self {
            tables,
            flows: FlowCache::new(),
            claims: AddressClaims::new(),
            pacing,
            shares: FrameShares::new(),
            storm,
            storm_parts: StormParts::new(),
            ledger: TrafficLedger::new(counters),
            uplink: UplinkMode::default(),
            tally: UplinkTally::default(),
            now: Time::ZERO,
        }
    }

    /// Returns the switch tables of the plane.
    #[must_use]
    #[inline]
    pub fn tables(&self) -> &SwitchTables<N> {
        &self.tables
    }

    /// Forwards a frame of a port or of the uplink to all ports that the switch names. Inlined into its few callers together with
    /// the family's code: a call would cost 60 instructions more per frame.
    #[inline(always)]
    pub fn forward<S: FrameSink, W: UplinkWire>(
        &mut self,
        origin: FrameOrigin,
        frame: &mut Frame<'_>,
        sinks: &mut S,
        wire: &mut W,
    ) -> ForwardResult {
        if wire.is_watched() {
            return self.forward_watched(origin, frame, sinks, wire);
        }
        self.pass::<false, _, _>(origin, frame, sinks, wire)
    }

    /// Forwards a frame while a capture watches the plane.
    #[cold]
    #[inline(never)]
    fn forward_watched<S: FrameSink, W: UplinkWire>(
        &mut self,
        origin: FrameOrigin,
        frame: &mut Frame<'_>,
        sinks: &mut S,
        wire: &mut W,
    ) -> ForwardResult {
        self.pass::<true, _, _>(origin, frame, sinks, wire)
    }

    #[inline(always)]
    fn pass<const WATCHED: bool, S: FrameSink, W: UplinkWire>(
        &mut self,
        origin: FrameOrigin,
        frame: &mut Frame<'_>,
        sinks: &mut S,
        wire: &mut W,
    ) -> ForwardResult {
        let (ends, length) = (frame.ends(), frame.length());
        if let FrameOrigin::Port(port) = origin {
            self.pacing.left(port, length);
        }
        let mut decision = self.decide(origin, ends, frame, length);
        if WATCHED {
            let lost = self.lost_here(origin, decision, frame);
            wire.watch(FrameObservation { at: origin, way: FrameDirection::In, lost }, frame.tagged());
        }
        match (origin, decision.dropped) {
            (FrameOrigin::Port(port), Some(reason)) if self.refuses(port, reason) => {
                return ForwardResult { refused: Some(reason), sent: false };
            }
            (FrameOrigin::Uplink, None) if is_truncated(frame.untagged()) && !self.passes_truncated() => {
                return ForwardResult::default();
            }
            (FrameOrigin::Uplink, Some(SwitchDropReason::TooLong)) => self.tally.too_long += 1,
            _ => {}
        }
        if !decision.ports.is_empty() && (ends.is_to_group() || self.storm.limits.counts_unknown) {
            let ports = self.control_storm(origin, ends.destination(), decision.ports, length);
            if WATCHED && ports != decision.ports {
                keep_from(decision.ports, frame, wire);
            }
            decision.ports = ports;
        }
        let fate = if WATCHED {
            self.hand_out(origin, ends, decision, frame, &mut CapturedPorts { sinks, wire })
        } else {
            self.hand_out(origin, ends, decision, frame, sinks)
        };
        match origin {
            FrameOrigin::Port(port) if fate.is_some() => {
                self.pacing.crossed(port, length, decision.ports, self.now);
            }
            FrameOrigin::Uplink if fate >= Some(DeliveryOutcome::Dropped) => {
                self.tally.received(ends.destination(), length, fate == Some(DeliveryOutcome::Reached));
            }
            FrameOrigin::Port(_) | FrameOrigin::Uplink => {}
        }
        let sent = decision.uplink && self.uplink.link && self.leave(frame, sinks, wire);
        if sent {
            self.tally.sent(ends.destination(), length);
        }
        if WATCHED && decision.uplink {
            watch_leaving(sent, frame, wire);
        }
        if let FrameOrigin::Port(port) = origin {
            self.count_sent(port, ends, length, !decision.ports.is_empty(), sent);
        }
        ForwardResult { refused: None, sent }
    }

    /// Delivers a frame to every port of the decision. Returns the best [`DeliveryOutcome`] of the frame at these
    /// ports; `None` if the decision has no port.
    #[inline(always)]
    fn hand_out<S: FrameSink>(
        &mut self,
        origin: FrameOrigin,
        ends: AddressPair,
        decision: SwitchDecision,
        frame: &mut Frame<'_>,
        sinks: &mut S,
    ) -> Option<DeliveryOutcome> {
        let SwitchDecision { ports, replicated, inexact, .. } = decision;
        if ports.is_empty() {
            return None;
        }
        let from_uplink = origin == FrameOrigin::Uplink;
        let about = DeliveryFlags { from_uplink, alone: true, inexact, strips: false };
        let mut findings = S::Findings::default();
        if let Some(port) = ports.single() {
            let about = DeliveryFlags { strips: self.tables.strips(port, replicated), ..about };
            return Some(self.deliver(port, about, ends, frame, sinks, &mut findings));
        }
        Some(self.hand_out_copies(ports, replicated, about, ends, frame, sinks))
    }

    #[inline(never)]
    fn hand_out_copies<S: FrameSink>(
        &mut self,
        ports: PortSet,
        replicated: bool,
        about: DeliveryFlags,
        ends: AddressPair,
        frame: &mut Frame<'_>,
        sinks: &mut S,
    ) -> DeliveryOutcome {
        let mut findings = S::Findings::default();
        self.shares.spend(WorkCost::of_copies(ports.count() - 1, frame.length()));
        ports.iter().fold(DeliveryOutcome::Missed, |fate, port| {
            let about = DeliveryFlags { alone: false, strips: self.tables.strips(port, replicated), ..about };
            fate.max(self.deliver(port, about, ends, frame, sinks, &mut findings))
        })
    }

    #[inline(always)]
    pub(crate) fn deliver<S: FrameSink>(
        &mut self,
        port: PortIndex,
        about: DeliveryFlags,
        ends: AddressPair,
        frame: &mut Frame<'_>,
        sinks: &mut S,
        findings: &mut S::Findings,
    ) -> DeliveryOutcome {
        match sinks.deliver(port, frame, about, findings) {
            Ok(bytes) => {
                self.count_received(port, about.from_uplink, ends, bytes);
                DeliveryOutcome::Reached
            }
            Err(missed) => self.count_lost(port, missed),
        }
    }

    #[cold]
    pub(crate) fn count_lost(&mut self, port: PortIndex, missed: DeliveryError) -> DeliveryOutcome {
        let counters = self.ledger.of(port);
        match missed {
            DeliveryError::Disabled => counters.rx_disabled += 1,
            DeliveryError::Fault => counters.dma_faults += 1,
            DeliveryError::Dropped => counters.rx_no_descriptors += 1,
            DeliveryError::Full => {
                counters.rx_no_descriptors += 1;
                return DeliveryOutcome::Missed;
            }
            DeliveryError::Waits => return DeliveryOutcome::Reached,
        }
        DeliveryOutcome::Dropped
    }

    #[inline(always)]
    pub(crate) fn count_received(
        &mut self,
        port: PortIndex,
        from_uplink: bool,
        ends: AddressPair,
        bytes: usize,
    ) {
        let traffic = self.ledger.received(port);
        traffic.add(!from_uplink, bytes);
        if ends.is_to_group() {
            traffic.add_group(ends.destination().is_broadcast());
        }
    }

    /// Counts the late delivery of a frame that had waited for a receive buffer ([`DeliveryError::Waits`]).
    pub fn came_late(&mut self, port: PortIndex, from_uplink: bool, ends: AddressPair, bytes: usize) {
        self.count_received(port, from_uplink, ends, bytes);
    }

    /// Counts the late delivery of unicast frames that a device has joined into a packet, or that left a trunk together
    /// ([`DeliveryError::Waits`]).
    pub fn came_together(&mut self, port: PortIndex, from_uplink: bool, frames: TrafficSum) {
        self.ledger.received(port).add_run(!from_uplink, frames.packets, frames.bytes);
    }

    /// Counts frames that a device has joined into a packet, and whose late delivery has failed.
    pub fn lost_joined(&mut self, port: PortIndex, missed: DeliveryError, frames: u64) {
        (0..frames).for_each(|_| _ = self.count_lost(port, missed));
    }

    /// Counts a frame that a port sent: to other ports (`local`), to the `uplink`, or both.
    #[inline]
    pub(crate) fn count_sent(
        &mut self,
        port: PortIndex,
        ends: AddressPair,
        length: usize,
        local: bool,
        uplink: bool,
    ) {
        if !local && !uplink {
            self.ledger.of(port).tx_unclaimed += 1;
        }
        let traffic = self.ledger.sent(port);
        traffic.add(local, length);
        if ends.is_to_group() {
            traffic.add_group(ends.destination().is_broadcast());
        }
    }

    /// Counts a frame that is dropped for a violation of its sender, and returns `true`. Returns `false` for every
    /// other reason to drop a frame, which is counted after the delivery.
    #[cold]
    fn refuses(&mut self, port: PortIndex, reason: SwitchDropReason) -> bool {
        if let SwitchDropReason::Guarded(reason) = reason {
            self.ledger.guarded(port)[reason as usize] += 1;
        }
        let counters = self.ledger.of(port);
        match reason {
            SwitchDropReason::Unwanted
            | SwitchDropReason::OnlySender
            | SwitchDropReason::Disabled
            | SwitchDropReason::TooLong => return false,
            SwitchDropReason::Guarded(_) => {}
            SwitchDropReason::LinkControl => counters.tx_link_control += 1,
            SwitchDropReason::SourceSpoofed | SwitchDropReason::VlanSpoofed => counters.tx_spoofed += 1,
        }
        counters.tx_blocked += 1;
        true
    }

    /// Counts a frame whose length field is wrong. Returns `true` if the uplink forwards such frames.
    #[cold]
    fn passes_truncated(&mut self) -> bool {
        self.tally.truncated += 1;
        self.uplink.passes_truncated
    }

    /// Applies storm control to a frame. Returns the ports that get it: all, mirrors included, or none during a storm.
    #[cold]
    fn control_storm(&mut self, from: FrameOrigin, to: MacAddress, ports: PortSet, length: usize) -> PortSet {
        let part = self.storm_parts.of(from, self.tables.enabled.count(), self.storm.began);
        if self.storm.admits(to, self.tables.knows(to), length, part) {
            return ports;
        }
        ports.iter().for_each(|port| self.ledger.of(port).rx_storm += 1);
        PortSet::NONE
    }

    /// Returns the reason to drop a frame before delivery, or `None` to forward the frame.
    fn lost_here(
        &self,
        origin: FrameOrigin,
        decision: SwitchDecision,
        frame: &mut Frame<'_>,
    ) -> Option<FrameDropReason> {
        let SwitchDecision { ports, uplink, dropped, .. } = decision;
        let truncated = origin == FrameOrigin::Uplink && dropped.is_none() && is_truncated(frame.untagged());
        if truncated && !self.uplink.passes_truncated {
            return Some(FrameDropReason::Truncated);
        }
        (ports.is_empty() && !uplink)
            .then(|| dropped.map_or(FrameDropReason::Unclaimed, FrameDropReason::Dropped))
    }

    /// Sends a frame by the uplink, or in loopback forwards it as received at once. Returns `false` if it was dropped.
    #[inline(always)]
    fn leave<S: FrameSink, W: UplinkWire>(
        &mut self,
        frame: &mut Frame<'_>,
        sinks: &mut S,
        wire: &mut W,
    ) -> bool {
        if self.uplink.loops_back {
            self.come_back(frame, sinks, wire)
        } else {
            wire.transmit(frame.tagged())
        }
    }

    #[cold]
    #[inline(never)]
    fn come_back<S: FrameSink, W: UplinkWire>(
        &mut self,
        frame: &mut Frame<'_>,
        sinks: &mut S,
        wire: &mut W,
    ) -> bool {
        if self.uplink.receives {
            self.tally.arrived(frame.length());
            self.forward(FrameOrigin::Uplink, frame, sinks, wire);
        }
        true
    }
}

/// Reports to the captures that storm control keeps a frame from some ports.
fn keep_from<W: UplinkWire>(ports: PortSet, frame: &mut Frame<'_>, wire: &mut W) {
    for port in ports.iter() {
        let seen = FrameObservation {
            at: FrameOrigin::Port(port),
            way: FrameDirection::Out,
            lost: Some(FrameDropReason::Storm),
        };
        wire.watch(seen, frame.tagged());
    }
}

/// Reports a frame for the uplink to the captures, as dropped unless it was `sent`.
fn watch_leaving<W: UplinkWire>(sent: bool, frame: &mut Frame<'_>, wire: &mut W) {
    let lost = (!sent).then_some(FrameDropReason::Uplink);
    wire.watch(FrameObservation { at: FrameOrigin::Uplink, way: FrameDirection::Out, lost }, frame.tagged());
}
