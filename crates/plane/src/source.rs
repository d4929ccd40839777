//! The side of a family's ports that hands frames over, and what the plane does around it: a port is visited, hands over as
//! many frames as the budget and its rate allow, and pays for them in time. Left out: which queue is visited next; the
//! family decides that, which knows the queues that are ready.

use crate::Port;
use crate::forward::Plane;
use crate::frame::{Ends, Frame};
use crate::ledger::{PortCounters, Traffic};
use crate::sink::{Forwarded, Sink};
use crate::switch::Origin;
use crate::tag::TAG;
use crate::uplink::{Uncut, Wire};
use crate::verdict::{BurstTerms, Verdict};
use units::Time;

/// A queue of a port in which frames wait to be sent: the rate is the port's, the frames are the queue's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    /// Whose it is.
    pub port: Port,
    /// Which it is there, 0 to 15.
    pub queue: u8,
}

/// The side of a family's ports that hands frames over.
pub trait Source: Sink + Sized {
    /// Whether a queue may send at all at the moment.
    fn may_send(&self, sender: Sender) -> bool;

    /// Hands over the frames of a queue one after the other, until `budget` of them have left, `lane` says that the next one
    /// is not due, or the queue is empty, which it answers by `false`. It passes itself to [`Lane::send`], which delivers
    /// what goes to the family's own ports.
    fn hand_over<L: Lane>(&mut self, sender: Sender, budget: usize, lane: &mut L) -> bool;

    /// Whether a queue holds anything.
    fn has_more(&self, sender: Sender) -> bool;
}

/// The plane as a source finds it while one of its queues is visited.
pub trait Lane {
    /// Puts a finished frame on the plane. `own` are the ports of the source's family.
    fn send<S: Sink>(&mut self, own: &mut S, frame: &mut Frame<'_>) -> Forwarded;

    /// Returns the terms by which bursts of the port's frames are judged; `None` if each frame is sent alone.
    fn burst_terms(&self) -> Option<BurstTerms> {
        None
    }

    /// Judges a frame by its addresses, where the port has [`Lane::burst_terms`].
    fn judge(&mut self, ends: Ends, terms: BurstTerms) -> Verdict {
        let _ = (ends, terms);
        Verdict::ALONE
    }

    /// Returns the bytes of the longest frame of a burst that a port takes.
    fn longest_taken(&self, to: Port, terms: BurstTerms) -> usize {
        let _ = (to, terms);
        0
    }

    /// Returns how many of these frames may leave now.
    fn admits(&self, lengths: &[u32], terms: BurstTerms) -> usize {
        let _ = (lengths, terms);
        0
    }

    /// Counts and charges a run of frames, all of one verdict, that have reached a port: their lengths, and the sum of these.
    fn count_run(&mut self, to: Port, lengths: &[u32], bytes: u64, terms: BurstTerms) {
        let _ = (to, lengths, bytes, terms);
    }

    /// Whether the uplink takes packets that are not cut into segments yet.
    fn takes_uncut(&self) -> bool;

    /// Sends such a packet as it is; see [`Plane::forward_uncut`].
    fn send_uncut(
        &mut self,
        packet: &mut Frame<'_>,
        uncut: &Uncut,
        shortest: usize,
        complete: impl FnOnce(&mut [u8]),
    ) -> Option<bool>;

    /// Whether the next frame may leave now.
    fn is_due(&self) -> bool;

    /// The tag of a frame whose sender asks for one, or for none.
    fn tag(&self, asked: Option<u16>) -> Option<u16>;

    /// The type of tags, and of outer ones if they are in use.
    fn tag_types(&self) -> (u16, Option<u16>);

    /// The port's counters.
    fn counters(&mut self) -> &mut PortCounters;

    /// Adds what the port has sent since the last time to its counters, and answers it.
    fn settle(&mut self) -> Traffic;
}

/// A visit to a queue of a port.
#[derive(Debug)]
struct Visit<'a, W, const N: usize> {
    plane: &'a mut Plane<N>,
    wire: &'a mut W,
    port: Port,
    /// Frames of the port may have to wait for those before them.
    waits: bool,
}

impl<W: Wire, const N: usize> Lane for Visit<'_, W, N> {
    #[inline(always)]
    fn send<S: Sink>(&mut self, own: &mut S, frame: &mut Frame<'_>) -> Forwarded {
        self.plane.forward(Origin::Port(self.port), frame, own, self.wire)
    }

    fn burst_terms(&self) -> Option<BurstTerms> {
        self.plane.burst_terms(self.port, self.wire.is_watched())
    }

    #[inline]
    fn judge(&mut self, ends: Ends, terms: BurstTerms) -> Verdict {
        self.plane.judge(self.port, ends, terms.tag)
    }

    #[inline]
    fn longest_taken(&self, to: Port, terms: BurstTerms) -> usize {
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
    fn count_run(&mut self, to: Port, lengths: &[u32], bytes: u64, terms: BurstTerms) {
        self.plane.count_run(self.port, to, terms.tag.is_some(), (lengths, bytes));
    }

    #[inline]
    fn takes_uncut(&self) -> bool {
        self.wire.takes_uncut()
    }

    fn send_uncut(
        &mut self,
        packet: &mut Frame<'_>,
        uncut: &Uncut,
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

    fn settle(&mut self) -> Traffic {
        self.plane.ledger.settle_sent(self.port)
    }
}

/// What a visit came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Visited {
    /// The queue had its turn.
    pub served: bool,
    /// Something is left in it.
    pub left: bool,
    /// When that may leave, if not now.
    pub due: Option<Time>,
}

impl<const N: usize> Plane<N> {
    /// Visits a queue; `None` if it may not send, and waits for something else than the plane.
    #[inline]
    pub fn visit<F: Source, W: Wire>(
        &mut self,
        sender: Sender,
        budget: usize,
        family: &mut F,
        wire: &mut W,
    ) -> Option<Visited> {
        let Sender { port, queue } = sender;
        let now = self.now;
        if !family.may_send(sender) {
            self.pacing.rest(port, queue);
            return None;
        }
        self.pacing.visit(port, now);
        let served = self.pacing.due(port) <= now;
        let waits = self.pacing.may_delay(port);
        let left = !served || family.hand_over(sender, budget, &mut Visit { plane: self, wire, port, waits });
        let left = left && family.has_more(sender);
        let due = Some(self.pacing.due(port)).filter(|due| left && *due > now);
        self.pacing.visited(port, queue, left, now);
        Some(Visited { served, left, due })
    }
}
