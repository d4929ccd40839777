//! Events to come, in the order of their time, and for the same time in the order they were scheduled. Left
//! out: what events are, and running them.
//!
//! A four-way heap whose entries know their slot and whose slots know their entry, so that an event can be
//! cancelled or moved at once: a timer that is set anew for every packet leaves nothing behind. In steady state
//! nothing is allocated.

use alloc::vec::Vec;

use crate::time::Instant;

#[cfg(test)]
mod tests;

/// Children of an entry of the heap: four keep siblings in one or two cache lines.
const WAYS: usize = 4;

/// An event that is to come, for cancelling or moving it. The key of an event that has happened or was
/// cancelled fits nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventKey {
    slot: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    sequence: u64,
    slot: u32,
}

#[derive(Debug)]
struct Slot<E> {
    event: Option<E>,
    generation: u32,
    /// Where in the heap, while there is an event.
    place: u32,
}

/// Events to come, and the time it is.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: Vec<Entry>,
    slots: Vec<Slot<E>>,
    free: Vec<u32>,
    sequence: u64,
    now: Instant,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<E> EventQueue<E> {
    /// An empty queue at the beginning of time.
    pub fn new() -> EventQueue<E> {
        EventQueue { heap: Vec::new(), slots: Vec::new(), free: Vec::new(), sequence: 0, now: Instant::ZERO }
    }

    /// The time it is: that of the latest event taken.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How many events are to come.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.first().map(|entry| entry.at)
    }

    /// Lets `event` happen at `at`, after everything already scheduled for then. What would have happened in
    /// the past happens now.
    pub fn schedule(&mut self, at: Instant, event: E) -> EventKey {
        let slot = self.take_slot(event);
        let entry = self.entry(at, slot);
        self.heap.push(entry);
        self.rise(self.heap.len() - 1);
        EventKey { slot, generation: self.slots[slot as usize].generation }
    }

    /// Takes an event out again; `None` if it has happened or was cancelled.
    pub fn cancel(&mut self, key: EventKey) -> Option<E> {
        let place = self.place_of(key)?;
        Some(self.remove(place))
    }

    /// Moves an event to another time, as if it were scheduled now; `false` if it has happened or was
    /// cancelled.
    pub fn reschedule(&mut self, key: EventKey, at: Instant) -> bool {
        let Some(place) = self.place_of(key) else { return false };
        self.heap[place] = self.entry(at, key.slot);
        let place = self.rise(place);
        self.sink(place);
        true
    }

    /// Puts an event in the place of another, whose time has come or has not: scheduled now for `at`, or not at
    /// all. If that is when the other was to happen, this one takes its turn.
    pub fn replace(&mut self, old: Option<EventKey>, at: Option<Instant>, event: E) -> Option<EventKey> {
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

    fn is_at(&self, key: EventKey, at: Instant) -> bool {
        self.place_of(key).is_some_and(|place| self.heap[place].at == at)
    }

    /// Takes the next event, and the time becomes its time.
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let at = self.next_at()?;
        self.now = at;
        Some((at, self.remove(0)))
    }

    /// Takes the next event if it happens before `end`; otherwise the time becomes `end`, if it is not later.
    pub fn pop_before(&mut self, end: Instant) -> Option<(Instant, E)> {
        match self.next_at() {
            Some(at) if at < end => self.pop(),
            _ => {
                self.now = self.now.max(end);
                None
            }
        }
    }

    fn entry(&mut self, at: Instant, slot: u32) -> Entry {
        self.sequence += 1;
        Entry { at: at.max(self.now), sequence: self.sequence, slot }
    }

    fn take_slot(&mut self, event: E) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].event = Some(event);
            return slot;
        }
        self.slots.push(Slot { event: Some(event), generation: 0, place: 0 });
        self.slots.len() as u32 - 1
    }

    fn place_of(&self, key: EventKey) -> Option<usize> {
        let slot = self.slots.get(key.slot as usize)?;
        (slot.generation == key.generation && slot.event.is_some()).then_some(slot.place as usize)
    }

    fn remove(&mut self, place: usize) -> E {
        let entry = self.heap.swap_remove(place);
        if place < self.heap.len() {
            let place = self.rise(place);
            self.sink(place);
        }
        let slot = &mut self.slots[entry.slot as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(entry.slot);
        slot.event.take().expect("an entry's slot has its event")
    }

    /// Moves the entry at `place` towards the front until it is not before its parent; answers where it is.
    fn rise(&mut self, mut place: usize) -> usize {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / WAYS;
            if !entry.is_before(&self.heap[parent]) {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
        place
    }

    /// Moves the entry at `place` towards the back until none of its children is before it.
    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while let Some(child) = self.first_child(place) {
            if !self.heap[child].is_before(&entry) {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, entry);
    }

    fn first_child(&self, place: usize) -> Option<usize> {
        let from = place * WAYS + 1;
        let to = (from + WAYS).min(self.heap.len());
        (from..to)
            .reduce(|first, other| if self.heap[other].is_before(&self.heap[first]) { other } else { first })
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.slots[entry.slot as usize].place = place as u32;
    }
}

impl Entry {
    #[inline]
    fn is_before(&self, other: &Entry) -> bool {
        (self.at, self.sequence) < (other.at, other.sequence)
    }
}
