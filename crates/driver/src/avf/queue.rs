//! Admin receive queue: a ring of 32-byte descriptors in memory. The driver posts buffers, the card writes a
//! message and sets the done bit, and the driver finds the bit without reading a register. The driver writes the
//! tail register itself.

use alloc::vec::Vec;
use avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode};
use serde::{Deserialize, Serialize};

/// Maximum of a restored count of descriptors, low enough to count on for centuries.
const MOST_TAKEN: u64 = 1 << 58;

/// Memory of an admin queue's ring. The ring belongs to the driver: an access outside is the driver's bug.
pub trait AdminRingMemory {
    /// Copies bytes out of the admin queue's ring.
    fn read(&self, at: usize, into: &mut [u8]);

    /// Copies bytes into the admin queue's ring.
    fn write(&mut self, at: usize, from: &[u8]);
}

impl AdminRingMemory for [u8] {
    fn read(&self, at: usize, into: &mut [u8]) {
        if let Some(bytes) = self.get(at..at + into.len()) {
            into.copy_from_slice(bytes);
        }
    }

    fn write(&mut self, at: usize, from: &[u8]) {
        if let Some(bytes) = self.get_mut(at..at + from.len()) {
            bytes.copy_from_slice(from);
        }
    }
}

/// Message of a VF to the PF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageFromVf {
    /// Number of the VF that sent the message to the PF.
    pub vf: u16,
    /// Virtchnl operation of the message.
    pub operation: u32,
    /// Length of the message's body in bytes.
    pub length: u16,
    /// Ring slot whose buffer has the message's body, until the tail is written.
    pub slot: u16,
}

/// Contents of a completed admin receive descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminDescriptorContents {
    /// The descriptor holds a message of a VF.
    Message(MessageFromVf),
    /// The descriptor holds no message of a VF, or reports an error.
    Other(u16),
}

/// Saved state of an admin receive queue. Of the queue's memory only pending descriptors are saved.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "QueueState")]
pub struct AdminReceiveQueueState {
    next: u16,
    taken: u64,
    /// Completed descriptors that the driver has not taken yet, in order.
    waiting: Vec<[u8; SIZE]>,
}

/// Driver's side of an admin receive queue: the ring's position and its buffers.
#[derive(Debug, Clone)]
pub struct AdminReceiveQueue {
    slots: u16,
    next: u16,
    taken: u64,
    buffer_bytes: u16,
    /// Address of the queue's first buffer; the others follow.
    buffers: u64,
    /// Number of VFs whose messages the queue accepts.
    vfs: u16,
}

impl AdminReceiveQueue {
    /// Creates a queue of `slots` descriptors in `ring`, with contiguous buffers of `buffer_bytes` from address
    /// `buffers` on, all of them posted. VFs have numbers below `vfs`.
    pub fn new<M: AdminRingMemory + ?Sized>(
        slots: u16,
        buffer_bytes: u16,
        buffers: u64,
        vfs: u16,
        ring: &mut M,
    ) -> Self {
        let queue = Self { slots: slots.max(2), next: 0, taken: 0, buffer_bytes, buffers, vfs };
        (0..queue.slots).for_each(|slot| queue.post(slot, ring));
        queue
    }

    /// Raises the number of VFs whose messages the queue accepts to `vfs`.
    pub fn grow(&mut self, vfs: u16) {
        self.vfs = self.vfs.max(vfs);
    }

    /// Returns the queue's state, from which another process can continue.
    pub fn save<M: AdminRingMemory + ?Sized>(&self, ring: &M) -> AdminReceiveQueueState {
        let waiting = self.waiting(ring).map(|slot| Self::raw(slot, ring)).collect();
        AdminReceiveQueueState { next: self.next, taken: self.taken, waiting }
    }

    /// Restores a saved state into a new queue. Returns false if the state is invalid for a queue of this size.
    #[must_use]
    pub fn resume<M: AdminRingMemory + ?Sized>(
        &mut self,
        state: &AdminReceiveQueueState,
        ring: &mut M,
    ) -> bool {
        let AdminReceiveQueueState { next, taken, waiting } = state;
        let is_done = |raw: &[u8; SIZE]| AdminQueueDescriptor::parse(raw).is_done();
        let fits = *next < self.slots && waiting.len() < self.slots.into() && waiting.iter().all(is_done);
        if !fits || *taken > MOST_TAKEN {
            return false;
        }
        (self.taken, self.next) = (*taken, *next);
        for (raw, step) in waiting.iter().zip(0..) {
            ring.write(usize::from(self.slot(step)) * SIZE, raw);
        }
        true
    }

    /// Returns the slots of completed descriptors that the driver has not taken yet, in order.
    pub fn waiting<M: AdminRingMemory + ?Sized>(&self, ring: &M) -> impl Iterator<Item = u16> {
        (0..self.pending(ring)).map(|step| self.slot(step))
    }

    /// Takes the next completed descriptor, and posts its buffer again.
    pub fn take<M: AdminRingMemory + ?Sized>(&mut self, ring: &mut M) -> Option<AdminDescriptorContents> {
        let slot = self.next;
        let descriptor = Self::descriptor_at(slot, ring);
        if !descriptor.is_done() {
            return None;
        }
        let (vf, length) = (descriptor.return_value, descriptor.length);
        let fits = length <= self.buffer_bytes && vf < self.vfs;
        let found = if descriptor.opcode == opcode::SEND_TO_PF && descriptor.flags & flag::ERR == 0 && fits {
            AdminDescriptorContents::Message(MessageFromVf {
                vf,
                operation: descriptor.cookie_high,
                length,
                slot,
            })
        } else {
            AdminDescriptorContents::Other(descriptor.opcode)
        };
        self.post(slot, ring);
        self.next = (slot + 1) % self.slots;
        self.taken += 1;
        Some(found)
    }

    /// Returns the number of descriptors that the driver has taken from the queue so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the number of completed descriptors that the driver has not taken yet.
    pub fn pending<M: AdminRingMemory + ?Sized>(&self, ring: &M) -> u16 {
        let done = |step: &u16| Self::descriptor_at(self.slot(*step), ring).is_done();
        (0..self.slots).take_while(done).count() as u16
    }

    /// Returns the value of the queue's tail register: the card owns all slots except the one before the slot that the
    /// driver takes next.
    #[must_use]
    pub fn tail(&self) -> u16 {
        (self.next + self.slots - 1) % self.slots
    }

    /// Returns the ring slot that lies `step` slots after the next one to be taken.
    fn slot(&self, step: u16) -> u16 {
        (self.next + step) % self.slots
    }

    fn raw<M: AdminRingMemory + ?Sized>(slot: u16, ring: &M) -> [u8; SIZE] {
        let mut raw = [0; SIZE];
        ring.read(usize::from(slot) * SIZE, &mut raw);
        raw
    }

    fn descriptor_at<M: AdminRingMemory + ?Sized>(slot: u16, ring: &M) -> AdminQueueDescriptor {
        AdminQueueDescriptor::parse(&Self::raw(slot, ring))
    }

    fn post<M: AdminRingMemory + ?Sized>(&self, slot: u16, ring: &mut M) {
        let buffer = self.buffers + u64::from(slot) * u64::from(self.buffer_bytes);
        ring.write(usize::from(slot) * SIZE, &AdminQueueDescriptor::posted(buffer, self.buffer_bytes).emit());
    }
}

#[cfg(test)]
mod tests {
    use super::{AdminReceiveQueue, AdminReceiveQueueState, MOST_TAKEN};
    use crate::avf::tests::{put, sent};
    use avf::admin::SIZE;
    use std::vec;
    use std::vec::Vec;

    fn new() -> (Vec<u8>, AdminReceiveQueue) {
        let mut ring = vec![0; 4 * SIZE];
        let queue = AdminReceiveQueue::new(4, 4_096, 0, 2, ring.as_mut_slice());
        (ring, queue)
    }

    fn resumed(change: impl Fn(&mut AdminReceiveQueueState)) -> bool {
        let (mut ring, mut queue) = new();
        (0..2).for_each(|n| put(&mut ring, n, sent(1, n as u32)));
        let _ = queue.take(ring.as_mut_slice());
        let mut state = queue.save(ring.as_slice());
        change(&mut state);
        let (mut ring, mut queue) = new();
        queue.resume(&state, ring.as_mut_slice())
    }

    #[test]
    fn invalid_saved_admin_queue_state_is_refused() {
        assert!(resumed(|_| ()));
        assert!(resumed(|state| state.next = 3) && !resumed(|state| state.next = 4));
        assert!(resumed(|state| state.taken = MOST_TAKEN) && !resumed(|state| state.taken = MOST_TAKEN + 1));
        assert!(resumed(|state| state.taken = 1 << 40), "years of messages");
        assert!(!resumed(|state| state.waiting[0] = [0; SIZE]), "not done");
        // The driver owns the slot before the next, so the card completes at most three.
        let done = sent(1, 0).emit();
        assert!(
            resumed(|state| state.waiting = vec![done; 3]) && !resumed(|state| state.waiting = vec![done; 4])
        );
    }
}
