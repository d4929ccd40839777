//! Chains of a driver's ring: which ids and descriptors are free, and which chains the device has.

use alloc::boxed::Box;

/// Chain that the device has, by id; in a split ring also a descriptor of a chain, by index.
#[derive(Debug, Clone, Copy, Default)]
struct ChainEntry {
    /// Number of the chain's descriptors; 0 if the device does not have the chain.
    slots: u16,
    /// Descriptor behind this one in its chain of a split ring.
    next: u16,
    /// Number of bytes that the device may write into the chain.
    writable: u32,
}

/// Free ids of a ring, used first in, first out, and the chains that the device has.
#[derive(Debug, Clone)]
pub(super) struct ChainTable {
    entries: Box<[ChainEntry]>,
    /// Free ids, in a circle.
    ids: Box<[u16]>,
    /// Place in the circle of the next id to use, and of the next id to be freed.
    first: u16,
    end: u16,
    /// Number of descriptors that the device does not have.
    free: u16,
    outstanding: u16,
    /// Id of the oldest chain that the device has, if chains are returned in order.
    oldest: u16,
}

impl ChainTable {
    pub(super) fn new(size: u16, id: impl Fn(u16) -> u16) -> Self {
        let entries = (0..size).map(|_| ChainEntry::default()).collect();
        let ids = (0..size).map(id).collect();
        Self { entries, ids, first: 0, end: 0, free: size, outstanding: 0, oldest: 0 }
    }

    #[inline]
    pub(super) fn size(&self) -> u16 {
        self.ids.len() as u16
    }

    #[inline]
    pub(super) fn free(&self) -> u16 {
        self.free
    }

    #[inline]
    pub(super) fn outstanding(&self) -> u16 {
        self.outstanding
    }

    #[inline]
    pub(super) fn oldest(&self) -> u16 {
        self.oldest
    }

    #[inline]
    pub(super) fn is_outstanding(&self, id: u16) -> bool {
        self.entries.get(usize::from(id)).is_some_and(|entry| entry.slots > 0)
    }

    /// Returns the number of descriptors of a chain that the device has.
    #[inline]
    pub(super) fn slots(&self, id: u16) -> Option<u16> {
        self.entries.get(usize::from(id)).map(|entry| entry.slots).filter(|slots| *slots > 0)
    }

    /// Returns the id that is used next, if one is free.
    #[inline]
    pub(super) fn next_id(&self) -> u16 {
        self.ids[usize::from(self.first)]
    }

    /// Takes a free id. The caller has checked that one is free.
    #[inline]
    pub(super) fn take_id(&mut self) -> u16 {
        let id = self.ids[usize::from(self.first)];
        self.first = self.after(self.first);
        id
    }

    /// Links a descriptor to the next one of its chain in a split ring.
    #[inline]
    pub(super) fn link(&mut self, descriptor: u16, next: u16) {
        self.entries[usize::from(descriptor)].next = next;
    }

    /// Records that the device gets a chain.
    #[inline]
    pub(super) fn lend(&mut self, id: u16, slots: u16, writable: u32) {
        let entry = &mut self.entries[usize::from(id)];
        (entry.slots, entry.writable) = (slots, writable);
        self.free -= slots;
        self.outstanding += 1;
    }

    /// Takes a chain back, and frees its id, or its `ids` linked descriptors. Returns the number of the chain's
    /// descriptors, and the bytes that the device may have written.
    #[inline]
    pub(super) fn take_back(&mut self, id: u16, ids: impl Fn(u16) -> u16) -> (u16, u32) {
        let ChainEntry { slots, writable, .. } = self.entries[usize::from(id)];
        self.entries[usize::from(id)].slots = 0;
        let (mut at, ids) = (id, ids(slots));
        for _ in 0..ids {
            self.ids[usize::from(self.end)] = at;
            self.end = self.after(self.end);
            at = self.entries[usize::from(at)].next;
        }
        self.free += slots;
        self.outstanding -= 1;
        let oldest = self.oldest + ids;
        self.oldest = if oldest >= self.size() { oldest - self.size() } else { oldest };
        (slots, writable)
    }

    #[inline]
    fn after(&self, place: u16) -> u16 {
        if place + 1 == self.size() { 0 } else { place + 1 }
    }
}
