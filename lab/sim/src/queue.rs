//! Event queue ordered by time. Events with equal times keep the order in which they were scheduled.
//!
//! A four-way heap whose entries and slots refer to each other, so that an event can be cancelled or moved
//! without a search. A timer rescheduled for every packet leaves no stale entries. A queue that has reached
//! its largest size allocates nothing.
//!
//! A popped event leaves its entry at the root free. The next scheduled event takes the free root and sinks to its
//! place, so that an event that schedules its successor moves entries of the heap once and not twice.

use alloc::vec::Vec;

use crate::time::VirtualInstant;

#[cfg(test)]
mod tests;

/// Number of children of an entry in the event heap. Four siblings share one or two cache lines.
const CHILDREN: usize = 4;

/// Key of a pending event, for cancelling or moving it. Once the event has been popped or cancelled, the key
/// matches no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventKey {
    slot: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct HeapEntry {
    /// Picoseconds of the event's time in the upper half, and its sequence number in the lower: one comparison, which
    /// compiles to no branch.
    order: u128,
    slot: u32,
}

#[derive(Debug)]
struct EventSlot<E> {
    event: Option<E>,
    generation: u32,
    /// Index of the event in the heap; meaningful only while the queue's slot holds an event.
    position: u32,
}

/// Event queue: the pending events and the current virtual time.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: Vec<HeapEntry>,
    slots: Vec<EventSlot<E>>,
    free: Vec<u32>,
    /// True if the heap's root is free: its event was popped.
    free_root: bool,
    sequence: u64,
    now: VirtualInstant,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<E> EventQueue<E> {
    /// Creates an empty event queue at time zero.
    pub fn new() -> EventQueue<E> {
        EventQueue {
            heap: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            free_root: false,
            sequence: 0,
            now: VirtualInstant::ZERO,
        }
    }

    /// Returns the current time: that of the last event popped.
    pub fn now(&self) -> VirtualInstant {
        self.now
    }

    /// Returns the number of pending events in the queue.
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.free_root)
    }

    /// Returns `true` if no event is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the time of the queue's next event.
    pub fn next_at(&self) -> Option<VirtualInstant> {
        let first = if self.free_root { self.first_child(0)? } else { 0 };
        self.heap.get(first).map(HeapEntry::at)
    }

    /// Schedules `event` for `at`, after everything already scheduled for that time. If `at` is in the past, the
    /// current time is used.
    pub fn schedule(&mut self, at: VirtualInstant, event: E) -> EventKey {
        let slot = self.take_slot(event);
        let entry = self.entry(at, slot);
        if core::mem::take(&mut self.free_root) {
            self.heap[0] = entry;
            self.sink(0);
        } else {
            self.heap.push(entry);
            self.rise(self.heap.len() - 1);
        }
        EventKey { slot, generation: self.slots[slot as usize].generation }
    }

    /// Removes and returns a pending event. Returns `None` if it was popped or cancelled before.
    pub fn cancel(&mut self, key: EventKey) -> Option<E> {
        self.fill_root();
        let position = self.position_of(key)?;
        let slot = self.heap.swap_remove(position).slot;
        if position < self.heap.len() {
            let position = self.rise(position);
            self.sink(position);
        }
        Some(self.release(slot))
    }

    /// Moves a pending event to another time, behind all events already scheduled for that time. Returns `false` if the
    /// event was popped or cancelled before.
    pub fn reschedule(&mut self, key: EventKey, at: VirtualInstant) -> bool {
        self.fill_root();
        let Some(position) = self.position_of(key) else { return false };
        self.heap[position] = self.entry(at, key.slot);
        let position = self.rise(position);
        self.sink(position);
        true
    }

    /// Replaces event `old`, pending or not, by `event` at time `at`, or by nothing if `at` is `None`. If
    /// `old` is pending at that same time, `event` keeps its position in the order.
    pub fn replace(
        &mut self,
        old: Option<EventKey>,
        at: Option<VirtualInstant>,
        event: E,
    ) -> Option<EventKey> {
        match (old, at) {
            (Some(key), Some(at)) if self.is_at(key, at) || self.reschedule(key, at) => {
                self.slots[key.slot as usize].event = Some(event);
                Some(key)
            }
            (Some(key), None) => {
                self.cancel(key);
                None
            }
            (_, at) => at.map(|at| self.schedule(at, event)),
        }
    }

    fn is_at(&self, key: EventKey, at: VirtualInstant) -> bool {
        self.position_of(key).is_some_and(|position| self.heap[position].at() == at)
    }

    /// Removes and returns the next event, and advances the current time to its time.
    pub fn pop(&mut self) -> Option<(VirtualInstant, E)> {
        self.fill_root();
        let first = *self.heap.first()?;
        let (at, slot) = (first.at(), first.slot);
        (self.now, self.free_root) = (at, true);
        Some((at, self.release(slot)))
    }

    /// Removes and returns the next event if it is before `end`; otherwise advances the current time to
    /// `end`.
    pub fn pop_before(&mut self, end: VirtualInstant) -> Option<(VirtualInstant, E)> {
        self.fill_root();
        match self.next_at() {
            Some(at) if at < end => self.pop(),
            _ => {
                self.now = self.now.max(end);
                None
            }
        }
    }

    fn entry(&mut self, at: VirtualInstant, slot: u32) -> HeapEntry {
        self.sequence += 1;
        let at = at.max(self.now);
        HeapEntry { order: u128::from(at.picos()) << 64 | u128::from(self.sequence), slot }
    }

    fn take_slot(&mut self, event: E) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].event = Some(event);
            return slot;
        }
        self.slots.push(EventSlot { event: Some(event), generation: 0, position: 0 });
        self.slots.len() as u32 - 1
    }

    fn position_of(&self, key: EventKey) -> Option<usize> {
        let slot = self.slots.get(key.slot as usize)?;
        (slot.generation == key.generation && slot.event.is_some()).then_some(slot.position as usize)
    }

    /// Moves the heap's last entry to its root, if the root is free.
    fn fill_root(&mut self) {
        if core::mem::take(&mut self.free_root) {
            self.heap.swap_remove(0);
            if !self.heap.is_empty() {
                self.sink(0);
            }
        }
    }

    /// Removes and returns the event of a slot, which is free from then on.
    fn release(&mut self, slot: u32) -> E {
        let found = &mut self.slots[slot as usize];
        found.generation = found.generation.wrapping_add(1);
        self.free.push(slot);
        found.event.take().expect("the slot of a heap entry holds its event")
    }

    /// Moves an entry of the event heap towards the root until its parent is not later. Returns the entry's new index.
    fn rise(&mut self, mut position: usize) -> usize {
        let entry = self.heap[position];
        while position > 0 {
            let parent = (position - 1) / CHILDREN;
            if !entry.is_before(&self.heap[parent]) {
                break;
            }
            self.put(position, self.heap[parent]);
            position = parent;
        }
        self.put(position, entry);
        position
    }

    /// Moves an entry of the event heap away from the root until none of its children is earlier.
    fn sink(&mut self, mut position: usize) {
        let entry = self.heap[position];
        while let Some(child) = self.first_child(position) {
            if !self.heap[child].is_before(&entry) {
                break;
            }
            self.put(position, self.heap[child]);
            position = child;
        }
        self.put(position, entry);
    }

    /// Returns the index of an entry's earliest child.
    #[inline]
    fn first_child(&self, position: usize) -> Option<usize> {
        let from = position * CHILDREN + 1;
        if let Some(children) = self.heap.get(from..).and_then(<[HeapEntry]>::first_chunk::<CHILDREN>) {
            return Some(from + earliest(children));
        }
        (from..self.heap.len())
            .reduce(|first, other| if self.heap[other].is_before(&self.heap[first]) { other } else { first })
    }

    fn put(&mut self, position: usize, entry: HeapEntry) {
        self.heap[position] = entry;
        self.slots[entry.slot as usize].position = position as u32;
    }
}

impl HeapEntry {
    #[inline]
    fn at(&self) -> VirtualInstant {
        VirtualInstant::from_picos((self.order >> 64) as u64)
    }

    #[inline]
    fn is_before(&self, other: &HeapEntry) -> bool {
        self.order < other.order
    }
}

/// Returns the index of the earliest of four siblings. Which one it is cannot be predicted, so nothing branches on it.
#[inline]
fn earliest(children: &[HeapEntry; CHILDREN]) -> usize {
    let [a, b, c, d] = children.each_ref().map(|child| child.order);
    let (left, right) = (usize::from(b < a), 2 + usize::from(d < c));
    if c.min(d) < a.min(b) { right } else { left }
}
