//! Messages from VFs to a PF that takes no interrupt, and is visited instead. A visit takes a bounded number of messages, in
//! order; every few visits it looks for resets of VFs ([`Limits`]). Messages that a VF sent before its reset are dropped.
//! Left out: what a message asks for.

use super::queue::{Found, Memory, Message, Queue, QueueState};
use alloc::vec;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// How much a visit may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Messages of a visit.
    pub messages: u32,
    /// Visits from one look at resets to the next.
    pub resets_every: u32,
}

/// An inbox as it is saved, between two visits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InboxState {
    queue: QueueState,
    visits: u32,
    cancelled: Vec<u64>,
    dropped: u64,
    strange: u64,
}

/// Messages that wait, and which of them count.
#[derive(Debug, Clone)]
pub struct Inbox {
    queue: Queue,
    limits: Limits,
    /// Visits since somebody looked for resets.
    visits: u32,
    /// Descriptors taken before this visit.
    before: u64,
    /// For each VF: messages up to this one, counted over all VFs, are from before its reset.
    cancelled: Vec<u64>,
    dropped: u64,
    strange: u64,
}

impl Inbox {
    /// What arrives in a queue, from as many VFs as the queue has numbers for.
    #[must_use]
    pub fn new(queue: Queue, limits: Limits, vfs: u16) -> Self {
        let cancelled = vec![0; vfs.into()];
        Self { queue, limits, visits: 0, before: 0, cancelled, dropped: 0, strange: 0 }
    }

    /// Takes messages from as many VFs as `vfs` from now on, if those were fewer before.
    pub fn grow(&mut self, vfs: u16) {
        self.queue.grow(vfs);
        let count = self.cancelled.len().max(vfs.into());
        self.cancelled.resize(count, 0);
    }

    /// All that a successor needs to go on with the inbox.
    pub fn save<M: Memory + ?Sized>(&self, ring: &M) -> InboxState {
        let (visits, cancelled) = (self.visits, self.cancelled.clone());
        let (dropped, strange) = (self.dropped, self.strange);
        InboxState { queue: self.queue.save(ring), visits, cancelled, dropped, strange }
    }

    /// Makes an inbox that is new go on from a state; `false` if none with its queue and VFs can be in it.
    #[must_use]
    pub fn resume<M: Memory + ?Sized>(&mut self, state: &InboxState, ring: &mut M) -> bool {
        let InboxState { queue, visits, cancelled, dropped, strange } = state;
        if !self.queue.resume(queue, ring) {
            return false;
        }
        let taken = self.queue.taken();
        let reached = taken + u64::from(self.queue.pending(ring));
        let sound = *visits < self.limits.resets_every
            && cancelled.len() == self.cancelled.len()
            && cancelled.iter().all(|cancelled| *cancelled <= reached)
            && dropped.checked_add(*strange).is_some_and(|passed| passed <= taken);
        (self.visits, self.before) = (*visits, taken);
        (self.dropped, self.strange) = (*dropped, *strange);
        self.cancelled.clone_from(cancelled);
        sound
    }

    /// The slots of descriptors that wait, in order.
    pub fn waiting<M: Memory + ?Sized>(&self, ring: &M) -> impl Iterator<Item = u16> {
        self.queue.waiting(ring)
    }

    /// Begins a visit; whether it has to look for resets.
    pub fn begin(&mut self) -> bool {
        self.before = self.queue.taken();
        self.visits += 1;
        let looks = self.visits >= self.limits.resets_every;
        self.visits = if looks { 0 } else { self.visits };
        looks
    }

    /// A VF was reset: nothing that it has sent so far counts.
    pub fn cancel<M: Memory + ?Sized>(&mut self, vf: u16, ring: &M) {
        let so_far = self.queue.taken() + u64::from(self.queue.pending(ring));
        if let Some(cancelled) = self.cancelled.get_mut(usize::from(vf)) {
            *cancelled = so_far;
        }
    }

    /// The next message that counts, as far as this visit goes.
    pub fn next<M: Memory + ?Sized>(&mut self, ring: &mut M) -> Option<Message> {
        while self.queue.taken() - self.before < u64::from(self.limits.messages) {
            match self.queue.take(ring)? {
                Found::Other(_) => self.strange += 1,
                Found::Message(message) if self.is_cancelled(message.vf) => self.dropped += 1,
                Found::Message(message) => return Some(message),
            }
        }
        None
    }

    /// Ends a visit: what the tail register is to be, if a message was taken.
    pub fn end(&mut self) -> Option<u16> {
        (self.queue.taken() > self.before).then(|| self.queue.tail())
    }

    /// Whether there is more than the visit could take.
    pub fn has_more<M: Memory + ?Sized>(&self, ring: &M) -> bool {
        self.queue.pending(ring) > 0
    }

    /// Messages dropped for a reset.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Descriptors that were no messages of VFs.
    #[must_use]
    pub fn strange(&self) -> u64 {
        self.strange
    }

    fn is_cancelled(&self, vf: u16) -> bool {
        self.cancelled.get(usize::from(vf)).is_none_or(|cancelled| self.queue.taken() <= *cancelled)
    }
}
