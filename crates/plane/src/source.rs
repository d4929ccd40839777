//! Sending side of a device's ports, and the plane's visit to a transmit queue. The queue hands over frames until its
//! budget is spent or its port's rate stops it. The device chooses the next queue, since it knows which queues are
//! ready.

use crate::PortIndex;
use crate::forward::Plane;
use crate::frame::{AddressPair, Frame};
use crate::ledger::{PendingTraffic, PortCounters};
use crate::sink::{ForwardResult, FrameSink};
use crate::switch::FrameOrigin;
use crate::tag::TAG;
use crate::uplink::{UnsegmentedLayout, UplinkWire};
use crate::verdict::{BurstTerms, BurstVerdict};
use units::Time;

/// A transmit queue of a port. All queues of a port share its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransmitQueueId {
    /// Port that the queue belongs to.
    pub port: PortIndex,
    /// Number of the queue among its port's queues, 0 to 15.
    pub queue: u8,
}

/// Sending side of a device's ports, from which the plane takes frames.
pub trait FrameSource: FrameSink + Sized {
    /// Returns `true` if a queue may send now, apart from its rate: it is enabled, and its function may use the bus.
    fn may_send(&self, sender: TransmitQueueId) -> bool;

    /// Hands over the frames of a queue until `budget` frames have left, the next is not due
    /// ([`FrameForwarder::is_due`]), or the queue is empty. Returns `false` if the queue is empty. The device passes
    /// itself to [`FrameForwarder::send`], for frames to its own ports.
    fn hand_over<L: FrameForwarder>(&mut self, sender: TransmitQueueId, budget: usize, lane: &mut L) -> bool;

    /// Returns `true` if a transmit queue holds a frame or a part of one.
    fn has_more(&self, sender: TransmitQueueId) -> bool;
}

/// Interface to the plane for a [`FrameSource`] while one of its transmit queues is visited.
pub trait FrameForwarder {
    /// Forwards a finished frame to its receivers. `own` is the device with the sending port.
    fn send<S: FrameSink>(&mut self, own: &mut S, frame: &mut Frame<'_>) -> ForwardResult;

    /// Returns the settings by which the receivers of frames in the port's bursts are decided; `None` if each frame is
    /// sent outside bursts.
    fn burst_terms(&self) -> Option<BurstTerms> {
        None
    }

    /// Decides the receiver of a frame in a burst by the frame's addresses, where the port has
    /// [`FrameForwarder::burst_terms`].
    fn judge(&mut self, ends: AddressPair, terms: BurstTerms) -> BurstVerdict {
        let _ = (ends, terms);
        BurstVerdict::ALONE
    }

    /// Returns the length in bytes of the longest frame of a burst that a port accepts.
    fn longest_taken(&self, to: PortIndex, terms: BurstTerms) -> usize {
        let _ = (to, terms);
        0
    }

    /// Returns how many frames of the given lengths the port's rate lets leave now.
    fn admits(&self, lengths: &[u32], terms: BurstTerms) -> usize {
        let _ = (lengths, terms);
        0
    }

    /// Counts a run of frames for one receiver, which have reached a port, and charges them to rates: the frames'
    /// lengths, and the sum of the lengths.
    fn count_run(&mut self, to: PortIndex, lengths: &[u32], bytes: u64, terms: BurstTerms) {
        let _ = (to, lengths, bytes, terms);
    }

    /// Returns `true` if the uplink takes TCP packets that are not segmented.
    fn takes_uncut(&self) -> bool;

    /// Sends an unsegmented packet to the uplink, once `complete` has finished its headers. Returns `true` if the uplink took it,
    /// and `None`, with the packet unchanged, if the family has to segment it.
    fn send_uncut(
        &mut self,
        packet: &mut Frame<'_>,
        uncut: &UnsegmentedLayout,
        shortest: usize,
        complete: impl FnOnce(&mut [u8]),
    ) -> Option<bool>;

    /// Returns `true` if the port's transmit rate lets the next frame leave now.
    fn is_due(&self) -> bool;

    /// Returns the VLAN tag of a frame that the port sends, given the tag that its descriptor requests.
    fn tag(&self, asked: Option<u16>) -> Option<u16>;

    /// Returns the ether type of VLAN tags, and that of outer tags if they are in use.
    fn tag_types(&self) -> (u16, Option<u16>);

    /// Returns the traffic counters of the port.
    fn counters(&mut self) -> &mut PortCounters;

    /// Adds the frames that the port sent since the last call to the port's counters. Returns the added traffic.
    fn settle(&mut self) -> PendingTraffic;
}

/// A visit to a transmit queue of a port.
#[derive(Debug)]
struct QueueVisit<'a, W, const N: usize> {
    plane: &'a mut Plane<N>,
    wire: &'a mut W,
    port: PortIndex,
    /// True if the port's frames may have to wait ([`crate::pacing::Pacing::may_delay`]).
    waits: bool,
}

impl<W: UplinkWire, const N: usize> FrameForwarder for QueueVisit<'_, W, N> {
    #[inline(always)]
    fn send<S: FrameSink>(&mut self, own: &mut S, frame: &mut Frame<'_>) -> ForwardResult {
        self.plane.forward(FrameOrigin::Port(self.port), frame, own, self.wire)
    }

    fn burst_terms(&self) -> Option<BurstTerms> {
        self.plane.burst_terms(self.port, self.wire.is_watched())
    }

    #[inline]
    fn judge(&mut self, ends: AddressPair, terms: BurstTerms) -> BurstVerdict {
        self.plane.judge(self.port, ends, terms.tag)
    }

    #[inline]
    fn longest_taken(&self, to: PortIndex, terms: BurstTerms) -> usize {
        self.plane.longest_taken(to, terms.tag)
    }

    #[inline]
    fn admits(&self, lengths: &[u32], terms: BurstTerms) -> usize {
        if !self.waits {
            return lengths.len();
        }
        let tag = if terms.tag.is_some() { TAG } else { 0 };
        let lengths = lengths.iter().map(|length| *length as usize + tag);
        self.plane.pacing.admits(self.port, lengths, self.plane.now)
    }

    #[inline]
    fn count_run(&mut self, to: PortIndex, lengths: &[u32], bytes: u64, terms: BurstTerms) {
        self.plane.count_run(self.port, to, terms.tag.is_some(), (lengths, bytes));
    }

    #[inline]
    fn takes_uncut(&self) -> bool {
        self.wire.takes_uncut()
    }

    fn send_uncut(
        &mut self,
        packet: &mut Frame<'_>,
        uncut: &UnsegmentedLayout,
        shortest: usize,
        complete: impl FnOnce(&mut [u8]),
    ) -> Option<bool> {
        self.plane.forward_uncut(self.port, packet, uncut, shortest, complete, self.wire)
    }

    #[inline]
    fn is_due(&self) -> bool {
        !self.waits || self.plane.pacing.due(self.port) <= self.plane.now
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

    fn settle(&mut self) -> PendingTraffic {
        self.plane.ledger.settle_sent(self.port)
    }
}

/// Result of a visit to a transmit queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VisitResult {
    /// True if the queue was allowed to send.
    pub served: bool,
    /// True if frames are left in the queue.
    pub left: bool,
    /// Time at which the queue's remaining frames may leave, if not now.
    pub due: Option<Time>,
}

impl<const N: usize> Plane<N> {
    /// Sends pending frames of a transmit queue, within `budget`. Returns `None` if [`FrameSource::may_send`] is false.
    #[inline]
    pub fn visit<F: FrameSource, W: UplinkWire>(
        &mut self,
        sender: TransmitQueueId,
        budget: usize,
        family: &mut F,
        wire: &mut W,
    ) -> Option<VisitResult> {
        let TransmitQueueId { port, queue } = sender;
        let now = self.now;
        if !family.may_send(sender) {
            self.pacing.rest(port, queue);
            return None;
        }
        self.pacing.visit(port, now);
        let served = self.pacing.due(port) <= now;
        let waits = self.pacing.may_delay(port);
        let left =
            !served || family.hand_over(sender, budget, &mut QueueVisit { plane: self, wire, port, waits });
        let left = left && family.has_more(sender);
        let due = Some(self.pacing.due(port)).filter(|due| left && *due > now);
        self.pacing.visited(port, queue, left, now);
        Some(VisitResult { served, left, due })
    }
}
