//! Polls the messages of VFs for a PF without interrupts. One run of the PF driver takes a bounded number of messages,
//! in order; every few runs it checks for resets of VFs ([`VfMessageInboxLimits`]). Messages that a VF sent before its
//! reset are dropped.

use super::queue::{
    AdminDescriptorContents, AdminReceiveQueue, AdminReceiveQueueState, AdminRingMemory, MessageFromVf,
};
use alloc::vec;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Limits of the inbox of VF messages for one run of the PF driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VfMessageInboxLimits {
    /// Maximum number of VF messages that one run of the PF driver takes.
    pub messages: u32,
    /// Number of runs of the PF driver from one check for VF resets to the next.
    pub resets_every: u32,
}

/// Saved state of the PF's inbox of VF messages, taken between two runs of the PF driver.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "InboxState")]
pub struct VfMessageInboxState {
    queue: AdminReceiveQueueState,
    visits: u32,
    cancelled: Vec<u64>,
    dropped: u64,
    strange: u64,
}

/// Messages of VFs that the PF has not taken from its receive queue. A reset of a VF voids that VF's messages.
#[derive(Debug, Clone)]
pub struct VfMessageInbox {
    queue: AdminReceiveQueue,
    limits: VfMessageInboxLimits,
    /// Number of runs of the PF driver since the last check for resets.
    visits: u32,
    /// Number of descriptors that were taken from the queue before the present run of the PF driver.
    before: u64,
    /// Last message that a reset voids, by VF: its number in the sequence of all VFs' messages, which begins at 1; 0
    /// voids none.
    cancelled: Vec<u64>,
    dropped: u64,
    strange: u64,
}

impl VfMessageInbox {
    /// Creates an inbox that takes messages from a queue, for VFs 0..`vfs`.
    #[must_use]
    pub fn new(queue: AdminReceiveQueue, limits: VfMessageInboxLimits, vfs: u16) -> Self {
        let cancelled = vec![0; vfs.into()];
        Self { queue, limits, visits: 0, before: 0, cancelled, dropped: 0, strange: 0 }
    }

    /// Accepts messages of VFs 0..`vfs` from now on. The number of VFs never shrinks.
    pub fn grow(&mut self, vfs: u16) {
        self.queue.grow(vfs);
        let count = self.cancelled.len().max(vfs.into());
        self.cancelled.resize(count, 0);
    }

    /// Returns the inbox's state, from which another process can continue.
    pub fn save<M: AdminRingMemory + ?Sized>(&self, ring: &M) -> VfMessageInboxState {
        let (visits, cancelled) = (self.visits, self.cancelled.clone());
        let (dropped, strange) = (self.dropped, self.strange);
        VfMessageInboxState { queue: self.queue.save(ring), visits, cancelled, dropped, strange }
    }

    /// Restores a saved state into a new inbox. Returns false if the state is invalid for its queue and VFs.
    #[must_use]
    pub fn resume<M: AdminRingMemory + ?Sized>(&mut self, state: &VfMessageInboxState, ring: &mut M) -> bool {
        let VfMessageInboxState { queue, visits, cancelled, dropped, strange } = state;
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

    /// Returns the slots of pending messages in the receive queue, in order.
    pub fn waiting<M: AdminRingMemory + ?Sized>(&self, ring: &M) -> impl Iterator<Item = u16> {
        self.queue.waiting(ring)
    }

    /// Begins one run of the PF driver over the inbox. Returns true if the run has to check for resets of VFs.
    pub fn begin(&mut self) -> bool {
        self.before = self.queue.taken();
        self.visits += 1;
        let looks = self.visits >= self.limits.resets_every;
        self.visits = if looks { 0 } else { self.visits };
        looks
    }

    /// Voids every message that a VF has sent so far, because the VF was reset.
    pub fn cancel<M: AdminRingMemory + ?Sized>(&mut self, vf: u16, ring: &M) {
        let so_far = self.queue.taken() + u64::from(self.queue.pending(ring));
        if let Some(cancelled) = self.cancelled.get_mut(usize::from(vf)) {
            *cancelled = so_far;
        }
    }

    /// Takes the next valid message from the inbox's receive queue, up to the run's limit of messages.
    pub fn next<M: AdminRingMemory + ?Sized>(&mut self, ring: &mut M) -> Option<MessageFromVf> {
        while self.queue.taken() - self.before < u64::from(self.limits.messages) {
            match self.queue.take(ring)? {
                AdminDescriptorContents::Other(_) => self.strange += 1,
                AdminDescriptorContents::Message(message) if self.is_cancelled(message.vf) => {
                    self.dropped += 1;
                }
                AdminDescriptorContents::Message(message) => return Some(message),
            }
        }
        None
    }

    /// Ends one run of the PF driver over the inbox. Returns the tail register's new value if a message was taken.
    pub fn end(&mut self) -> Option<u16> {
        (self.queue.taken() > self.before).then(|| self.queue.tail())
    }

    /// Returns true if VF messages are still pending.
    pub fn has_more<M: AdminRingMemory + ?Sized>(&self, ring: &M) -> bool {
        self.queue.pending(ring) > 0
    }

    /// Returns the number of messages dropped because their VF was reset.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of descriptors that held an error, or no message of a VF.
    #[must_use]
    pub fn strange(&self) -> u64 {
        self.strange
    }

    fn is_cancelled(&self, vf: u16) -> bool {
        self.cancelled.get(usize::from(vf)).is_none_or(|cancelled| self.queue.taken() <= *cancelled)
    }
}

#[cfg(test)]
mod tests {
    use super::{VfMessageInbox, VfMessageInboxLimits, VfMessageInboxState};
    use crate::avf::queue::AdminReceiveQueue;
    use crate::avf::tests::{put, sent};
    use avf::admin::{AdminQueueDescriptor, SIZE, flag};
    use std::vec;
    use std::vec::Vec;

    const LIMITS: VfMessageInboxLimits = VfMessageInboxLimits { messages: 8, resets_every: 3 };
    const SLOTS: u16 = 8;
    const VFS: u16 = 2;

    fn new(limits: VfMessageInboxLimits) -> (Vec<u8>, VfMessageInbox) {
        let mut ring = vec![0; usize::from(SLOTS) * SIZE];
        let queue = AdminReceiveQueue::new(SLOTS, 4_096, 0, VFS, ring.as_mut_slice());
        (ring, VfMessageInbox::new(queue, limits, VFS))
    }

    /// Creates an inbox that has taken three descriptors, of which one was dropped and one was invalid. Two are
    /// pending, one of them voided by its VF's reset.
    fn midway() -> (Vec<u8>, VfMessageInbox) {
        let (mut ring, mut inbox) = new(VfMessageInboxLimits { messages: 3, ..LIMITS });
        let strange = AdminQueueDescriptor { flags: sent(0, 3).flags | flag::ERR, ..sent(0, 3) };
        [sent(0, 1), sent(1, 2), strange]
            .into_iter()
            .zip(0..)
            .for_each(|(it, slot)| put(&mut ring, slot, it));
        inbox.cancel(0, ring.as_slice());
        put(&mut ring, 3, sent(1, 4));
        assert!(!inbox.begin());
        let served = core::iter::from_fn(|| inbox.next(ring.as_mut_slice()));
        assert!(served.map(|message| message.operation).eq([2]));
        inbox.cancel(1, ring.as_slice());
        put(&mut ring, 4, sent(1, 5));
        (ring, inbox)
    }

    fn resumed(change: impl Fn(&mut VfMessageInboxState)) -> bool {
        let (ring, inbox) = midway();
        let mut state = inbox.save(ring.as_slice());
        change(&mut state);
        let (mut ring, mut inbox) = new(LIMITS);
        inbox.resume(&state, ring.as_mut_slice())
    }

    #[test]
    fn restored_inbox_keeps_pending_messages_and_counters() {
        let (old, before) = midway();
        assert_eq!((before.dropped(), before.strange()), (1, 1));
        let (mut ring, mut inbox) = new(LIMITS);
        assert!(inbox.resume(&before.save(old.as_slice()), ring.as_mut_slice()));
        assert_eq!((inbox.dropped(), inbox.strange()), (1, 1));
        assert_eq!(inbox.end(), None, "no message was taken since");
        assert!(!inbox.begin(), "the second visit");
        assert!(core::iter::from_fn(|| inbox.next(ring.as_mut_slice())).map(|it| it.operation).eq([5]));
        assert_eq!((inbox.dropped(), inbox.end()), (2, Some(4)));
        assert!(inbox.begin(), "the third looks for resets");
    }

    #[test]
    fn invalid_saved_message_inbox_state_is_refused() {
        assert!(resumed(|_| ()));
        // The limit: the two pending ones, and all that were taken.
        assert!(
            resumed(|state| state.cancelled = vec![5, 5]) && !resumed(|state| state.cancelled = vec![5, 6])
        );
        assert!(resumed(|state| state.dropped = 2) && !resumed(|state| state.dropped = 3));
        assert!(!resumed(|state| state.dropped = u64::MAX));
        assert!(resumed(|state| state.visits = 2) && !resumed(|state| state.visits = 3));
        assert!(!resumed(|state| state.cancelled = vec![0]));
    }
}
