//! Visits a transmit queue: takes frames from the queue until the budget is spent or the port's rate stops it.

use crate::PortIndex;
use crate::forward::ForwardingPlane;
use crate::frame::{AddressPair, Frame};
use crate::ledger::{PortCounters, UncountedTraffic};
use crate::sink::{ForwardResult, FrameSink};
use crate::source::{FrameForwarder, FrameSource, TransmitQueueId};
use crate::switch::FrameOrigin;
use crate::tag::TAG;
use crate::uncut::UncutOutcome;
use crate::uplink::{UnsegmentedPacketLayout, UplinkWire};
use crate::verdict::{BurstFrameVerdict, PortBurstSettings};
use units::{Time, WorkCost};

/// Plane and uplink, as a device uses them while the plane takes frames from one of its transmit queues.
#[derive(Debug)]
struct TransmitQueuePoll<'a, W, const N: usize> {
    plane: &'a mut ForwardingPlane<N>,
    wire: &'a mut W,
    port: PortIndex,
    /// True if the port's frames may have to wait ([`crate::pacing::TransmitPacing::may_delay`]).
    waits: bool,
}

impl<W: UplinkWire, const N: usize> FrameForwarder for TransmitQueuePoll<'_, W, N> {
    #[inline(always)]
    fn send<S: FrameSink>(&mut self, own: &mut S, frame: &mut Frame<'_>) -> ForwardResult {
        self.plane.shares.spend(WorkCost::of_frame(frame.length()));
        self.plane.forward(FrameOrigin::Port(self.port), frame, own, self.wire)
    }

    fn burst_terms(&self) -> Option<PortBurstSettings> {
        self.plane.burst_terms(self.port, self.wire.is_watched())
    }

    #[inline]
    fn judge(&mut self, ends: AddressPair, terms: PortBurstSettings) -> BurstFrameVerdict {
        self.plane.judge(self.port, ends, terms.tag)
    }

    #[inline]
    fn longest_taken(&self, to: PortIndex, terms: PortBurstSettings) -> usize {
        self.plane.longest_taken(to, terms.tag)
    }

    #[inline]
    fn admits(&self, lengths: &[u32], terms: PortBurstSettings) -> usize {
        if !self.waits {
            return lengths.len();
        }
        let tag = if terms.tag.is_some() { TAG } else { 0 };
        let lengths = lengths.iter().map(|length| *length as usize + tag);
        self.plane.pacing.admits(self.port, lengths, self.plane.now)
    }

    #[inline]
    fn count_run(&mut self, to: Option<PortIndex>, lengths: &[u32], bytes: u64, terms: PortBurstSettings) {
        self.plane.shares.spend(WorkCost::of_burst(lengths.len(), bytes));
        self.plane.count_run(self.port, to, terms.tag.is_some(), (lengths, bytes));
    }

    #[inline]
    fn takes_uncut(&self) -> bool {
        self.wire.takes_uncut()
    }

    fn send_uncut<S: FrameSink>(
        &mut self,
        own: &mut S,
        packet: &mut Frame<'_>,
        uncut: &UnsegmentedPacketLayout,
        shortest: usize,
        complete: impl FnOnce(&mut [u8]),
    ) -> Option<UncutOutcome> {
        let length = packet.length();
        let sent = self.plane.forward_uncut(self.port, packet, (uncut, shortest), complete, (own, self.wire));
        if sent.is_some() {
            self.plane.shares.spend(WorkCost::of_frame(length));
        }
        sent
    }

    #[inline]
    fn is_due(&self) -> bool {
        self.plane.shares.may_continue()
            && (!self.waits || self.plane.pacing.due(self.port) <= self.plane.now)
    }

    #[inline]
    fn has_credit(&self) -> bool {
        self.plane.shares.may_begin()
    }

    #[inline]
    fn charge(&mut self, cost: WorkCost) {
        self.plane.shares.spend(cost);
    }

    #[inline]
    fn tag(&self, asked: Option<u16>) -> Option<u16> {
        self.plane.tables().transmit_tag(self.port, asked)
    }

    #[inline]
    fn tag_types(&self) -> (u16, Option<u16>) {
        let tables = self.plane.tables();
        (tables.inner, tables.outer)
    }

    #[inline]
    fn counters(&mut self) -> &mut PortCounters {
        self.plane.ledger.of(self.port)
    }

    fn settle(&mut self) -> UncountedTraffic {
        self.plane.ledger.settle_sent(self.port)
    }
}

/// Result of taking frames from a transmit queue in one visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransmitQueuePollResult {
    /// True if the queue was allowed to send in this visit.
    pub served: bool,
    /// True if frames are left in the queue.
    pub left: bool,
    /// Time at which the queue's remaining frames may leave, if not now.
    pub due: Option<Time>,
}

impl<const N: usize> ForwardingPlane<N> {
    /// Sends pending frames of a transmit queue, within `budget`. Returns `None` if [`FrameSource::may_send`] is false.
    #[inline]
    pub fn visit<F: FrameSource, W: UplinkWire>(
        &mut self,
        sender: TransmitQueueId,
        budget: usize,
        family: &mut F,
        wire: &mut W,
    ) -> Option<TransmitQueuePollResult> {
        let TransmitQueueId { port, queue } = sender;
        let now = self.now;
        if !family.may_send(sender) {
            self.pacing.rest(port, queue);
            return None;
        }
        self.pacing.visit(port, now);
        let served = self.shares.begin_visit(port) & (self.pacing.due(port) <= now);
        let waits = self.pacing.may_delay(port);
        let left = !served
            || family.hand_over(sender, budget, &mut TransmitQueuePoll { plane: self, wire, port, waits });
        self.shares.end_visit(port, queue);
        let left = left && family.has_more(sender);
        let due = Some(self.pacing.due(port)).filter(|due| left && *due > now);
        self.pacing.visited(port, queue, left, now);
        Some(TransmitQueuePollResult { served, left, due })
    }

    /// Forwards a frame that the host sends for a port, such as an announcement of the port's guest. The port is charged for
    /// the frame and its copies as for one of its own.
    pub fn send_own<S: FrameSink, W: UplinkWire>(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        own: &mut S,
        wire: &mut W,
    ) -> ForwardResult {
        self.shares.begin_visit(port);
        self.shares.spend(WorkCost::of_frame(frame.length()));
        let result = self.forward(FrameOrigin::Port(port), frame, own, wire);
        self.shares.end_own(port);
        result
    }
}
