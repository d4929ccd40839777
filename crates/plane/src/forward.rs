//! Forwards a frame. The switch names the ports that get the frame; ports and uplink get it, and each port is counted
//! and charged. `source` and `sink` do the work of the device before and after.

use crate::frame::{Ends, Frame};
use crate::ledger::{Ledger, PortCounters};
use crate::pacing::Pacing;
use crate::sink::{About, Fate, Forwarded, Missed, Sink};
use crate::switch::{Decision, Flows, Origin, Reason, Storm, Tables};
use crate::uplink::{Tally, Uplink, Wire, is_truncated};
use crate::watch::{Loss, Seen, Way};
use crate::watched::Watched;
use crate::{Port, Ports};
use units::{MacAddress, Time};

/// A forwarding plane of `N` ports.
#[derive(Debug, Clone)]
pub struct Plane<const N: usize> {
    /// Tables by which the switch decides.
    pub(crate) tables: Tables<N>,
    pub(crate) flows: Flows<N>,
    /// Transmit rates and debts of the ports.
    pub pacing: Pacing<N>,
    /// Storm control: windows, limits and counts.
    pub storm: Storm,
    /// Traffic counters of the ports.
    pub ledger: Ledger<N>,
    /// State of the uplink: link, reception, loopback.
    pub uplink: Uplink,
    /// Counts of the frames that crossed the uplink since the device last took these counts.
    pub tally: Tally,
    /// Time of the current poll.
    pub now: Time,
}

impl<const N: usize> Plane<N> {
    /// Creates a plane. No flow is remembered, and the uplink has no link.
    #[must_use]
    pub fn new(tables: Tables<N>, pacing: Pacing<N>, storm: Storm, counters: [PortCounters; N]) -> Self {
        Self {
            tables,
            flows: Flows::new(),
            pacing,
            storm,
            ledger: Ledger::new(counters),
            uplink: Uplink::default(),
            tally: Tally::default(),
            now: Time::ZERO,
        }
    }

    /// Returns the switch tables.
    #[must_use]
    #[inline]
    pub fn tables(&self) -> &Tables<N> {
        &self.tables
    }

    /// Forwards a frame of a port or of the uplink to all ports that the switch names. Inlined into its few callers together with
    /// the family's code: a call would cost 60 instructions more per frame.
    #[inline(always)]
    pub fn forward<S: Sink, W: Wire>(
        &mut self,
        origin: Origin,
        frame: &mut Frame<'_>,
        sinks: &mut S,
        wire: &mut W,
    ) -> Forwarded {
        if wire.is_watched() {
            return self.forward_watched(origin, frame, sinks, wire);
        }
        self.pass::<false, _, _>(origin, frame, sinks, wire)
    }

    /// Forwards a frame while frames are captured.
    #[cold]
    #[inline(never)]
    fn forward_watched<S: Sink, W: Wire>(
        &mut self,
        origin: Origin,
        frame: &mut Frame<'_>,
        sinks: &mut S,
        wire: &mut W,
    ) -> Forwarded {
        self.pass::<true, _, _>(origin, frame, sinks, wire)
    }

    #[inline(always)]
    fn pass<const WATCHED: bool, S: Sink, W: Wire>(
        &mut self,
        origin: Origin,
        frame: &mut Frame<'_>,
        sinks: &mut S,
        wire: &mut W,
    ) -> Forwarded {
        let (ends, length) = (frame.ends(), frame.length());
        if let Origin::Port(port) = origin {
            self.pacing.left(port, length);
        }
        let mut decision = self.flows.decide(&self.tables, ends, frame.tag, length, origin);
        if WATCHED {
            let lost = self.lost_here(origin, decision, frame);
            wire.watch(Seen { at: origin, way: Way::In, lost }, frame.tagged());
        }
        match (origin, decision.dropped) {
            (Origin::Port(port), Some(reason)) if self.refuses(port, reason) => {
                return Forwarded { refused: Some(reason), sent: false };
            }
            (Origin::Uplink, None) if is_truncated(frame.untagged()) && !self.passes_truncated() => {
                return Forwarded::default();
            }
            (Origin::Uplink, Some(Reason::TooLong)) => self.tally.too_long += 1,
            _ => {}
        }
        if !decision.ports.is_empty() && (ends.is_to_group() || self.storm.limits.counts_unknown) {
            let ports = self.control_storm(ends.destination(), decision.ports, length);
            if WATCHED && ports != decision.ports {
                keep_from(decision.ports, frame, wire);
            }
            decision.ports = ports;
        }
        let fate = if WATCHED {
            self.hand_out(origin, ends, decision, frame, &mut Watched { sinks, wire })
        } else {
            self.hand_out(origin, ends, decision, frame, sinks)
        };
        match origin {
            Origin::Port(port) if fate.is_some() => {
                self.pacing.crossed(port, length, decision.ports, self.now);
            }
            Origin::Uplink if fate >= Some(Fate::Dropped) => {
                self.tally.received(ends.destination(), length, fate == Some(Fate::Reached));
            }
            Origin::Port(_) | Origin::Uplink => {}
        }
        let sent = decision.uplink && self.uplink.link && self.leave(frame, sinks, wire);
        if sent {
            self.tally.sent(ends.destination(), length);
        }
        if WATCHED && decision.uplink {
            let lost = (!sent).then_some(Loss::Uplink);
            wire.watch(Seen { at: Origin::Uplink, way: Way::Out, lost }, frame.tagged());
        }
        if let Origin::Port(port) = origin {
            self.count_sent(port, ends, length, !decision.ports.is_empty(), sent);
        }
        Forwarded { refused: None, sent }
    }

    /// Delivers a frame to every port of the decision. Returns the best [`Fate`] of the frame at these ports; `None` if
    /// the decision has no port.
    #[inline(always)]
    fn hand_out<S: Sink>(
        &mut self,
        origin: Origin,
        ends: Ends,
        decision: Decision,
        frame: &mut Frame<'_>,
        sinks: &mut S,
    ) -> Option<Fate> {
        let Decision { ports, replicated, inexact, .. } = decision;
        if ports.is_empty() {
            return None;
        }
        let from_uplink = origin == Origin::Uplink;
        let about = About { from_uplink, alone: true, inexact, strips: false };
        let mut findings = S::Findings::default();
        if let Some(port) = ports.single() {
            let about = About { strips: self.tables.strips(port, replicated), ..about };
            return Some(self.deliver(port, about, ends, frame, sinks, &mut findings));
        }
        Some(self.hand_out_copies(ports, replicated, about, ends, frame, sinks))
    }

    #[inline(never)]
    fn hand_out_copies<S: Sink>(
        &mut self,
        ports: Ports,
        replicated: bool,
        about: About,
        ends: Ends,
        frame: &mut Frame<'_>,
        sinks: &mut S,
    ) -> Fate {
        let mut findings = S::Findings::default();
        ports.iter().fold(Fate::Missed, |fate, port| {
            let about = About { alone: false, strips: self.tables.strips(port, replicated), ..about };
            fate.max(self.deliver(port, about, ends, frame, sinks, &mut findings))
        })
    }

    #[inline(always)]
    fn deliver<S: Sink>(
        &mut self,
        port: Port,
        about: About,
        ends: Ends,
        frame: &mut Frame<'_>,
        sinks: &mut S,
        findings: &mut S::Findings,
    ) -> Fate {
        match sinks.deliver(port, frame, about, findings) {
            Ok(bytes) => {
                self.count_received(port, about.from_uplink, ends, bytes);
                Fate::Reached
            }
            Err(missed) => self.count_lost(port, missed),
        }
    }

    #[cold]
    fn count_lost(&mut self, port: Port, missed: Missed) -> Fate {
        let counters = self.ledger.of(port);
        match missed {
            Missed::Disabled => counters.rx_disabled += 1,
            Missed::Fault => counters.dma_faults += 1,
            Missed::Dropped => counters.rx_no_descriptors += 1,
            Missed::Full => {
                counters.rx_no_descriptors += 1;
                return Fate::Missed;
            }
            Missed::Waits => return Fate::Reached,
        }
        Fate::Dropped
    }

    #[inline(always)]
    fn count_received(&mut self, port: Port, from_uplink: bool, ends: Ends, bytes: usize) {
        let traffic = self.ledger.received(port);
        traffic.add(!from_uplink, bytes);
        if ends.is_to_group() {
            traffic.add_group(ends.destination().is_broadcast());
        }
    }

    /// Counts the late delivery of a frame that had waited for a receive buffer ([`Missed::Waits`]).
    pub fn came_late(&mut self, port: Port, from_uplink: bool, ends: Ends, bytes: usize) {
        self.count_received(port, from_uplink, ends, bytes);
    }

    /// Counts a frame that a port sent: to other ports (`local`), to the `uplink`, or both.
    #[inline]
    pub(crate) fn count_sent(&mut self, port: Port, ends: Ends, length: usize, local: bool, uplink: bool) {
        if !local && !uplink {
            self.ledger.of(port).tx_unclaimed += 1;
        }
        let traffic = self.ledger.sent(port);
        traffic.add(local, length);
        if ends.is_to_group() {
            traffic.add_group(ends.destination().is_broadcast());
        }
    }

    /// Counts a violation of the sender and returns `true`: the frame ends here. Returns `false` for every other
    /// reason; other drops are counted after the delivery.
    #[cold]
    fn refuses(&mut self, port: Port, reason: Reason) -> bool {
        let counters = self.ledger.of(port);
        match reason {
            Reason::Unwanted | Reason::OnlySender | Reason::Disabled | Reason::TooLong => return false,
            Reason::LinkControl => counters.tx_link_control += 1,
            Reason::SourceSpoofed | Reason::VlanSpoofed => counters.tx_spoofed += 1,
        }
        counters.tx_blocked += 1;
        true
    }

    /// Counts a frame whose length field is wrong. Returns `true` if such frames are forwarded.
    #[cold]
    fn passes_truncated(&mut self) -> bool {
        self.tally.truncated += 1;
        self.uplink.passes_truncated
    }

    /// Applies storm control to a frame. Returns the ports that get it: all, mirrors included, or none during a storm.
    #[cold]
    fn control_storm(&mut self, dst: MacAddress, ports: Ports, length: usize) -> Ports {
        if self.storm.admits(dst, self.tables.knows(dst), length) {
            return ports;
        }
        ports.iter().for_each(|port| self.ledger.of(port).rx_storm += 1);
        Ports::NONE
    }

    /// Returns the reason to drop a frame before delivery, or `None` to forward it.
    fn lost_here(&self, origin: Origin, decision: Decision, frame: &mut Frame<'_>) -> Option<Loss> {
        let Decision { ports, uplink, dropped, .. } = decision;
        let truncated = origin == Origin::Uplink && dropped.is_none() && is_truncated(frame.untagged());
        if truncated && !self.uplink.passes_truncated {
            return Some(Loss::Truncated);
        }
        (ports.is_empty() && !uplink).then(|| dropped.map_or(Loss::Unclaimed, Loss::Dropped))
    }

    /// Sends a frame by the uplink, or in loopback forwards it as received at once. Returns `false` if it was dropped.
    #[inline(always)]
    fn leave<S: Sink, W: Wire>(&mut self, frame: &mut Frame<'_>, sinks: &mut S, wire: &mut W) -> bool {
        if self.uplink.loops_back {
            self.come_back(frame, sinks, wire)
        } else {
            wire.transmit(frame.tagged())
        }
    }

    #[cold]
    #[inline(never)]
    fn come_back<S: Sink, W: Wire>(&mut self, frame: &mut Frame<'_>, sinks: &mut S, wire: &mut W) -> bool {
        if self.uplink.receives {
            self.tally.arrived(frame.length());
            self.forward(Origin::Uplink, frame, sinks, wire);
        }
        true
    }
}

/// Reports to the captures a frame that storm control keeps from ports.
fn keep_from<W: Wire>(ports: Ports, frame: &mut Frame<'_>, wire: &mut W) {
    for port in ports.iter() {
        let seen = Seen { at: Origin::Port(port), way: Way::Out, lost: Some(Loss::Storm) };
        wire.watch(seen, frame.tagged());
    }
}
