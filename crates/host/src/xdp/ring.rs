//! AF_XDP ring: entries, and two indices that increase modulo 2^32. The producer writes entries and advances
//! `producer`, the consumer reads them and advances `consumer`. Each read of the kernel's index is checked: it is
//! never further from the own one than the ring's size.
//!
//! `queue` interprets the entries. The proofs include this file with the memory of a model checker, which runs it in every order
//! and under weak memory.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::entries::{XdpEntries, XdpEntry};
use super::memory::XdpMemoryMapping;

/// Offsets of a ring's indices, flags and entries, in bytes from the ring's start.
#[derive(Clone, Copy, Debug)]
pub(super) struct XdpRingLayout {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) entries: usize,
    pub(super) flags: usize,
    /// Number of entries in the AF_XDP ring, a power of two.
    pub(super) size: u32,
}

impl XdpRingLayout {
    /// Returns the size in bytes of the whole AF_XDP ring with entries of type `T`.
    pub(super) fn len<T>(&self) -> usize {
        self.entries + self.size as usize * size_of::<T>()
    }
}

/// Error: the kernel's index of the ring is impossible, so the ring is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BrokenXdpRing;

/// Marker type of a ring to which this process writes entries.
#[derive(Debug)]
pub(super) struct RingProducerSide;
/// Marker type of a ring from which this process reads entries.
#[derive(Debug)]
pub(super) struct RingConsumerSide;

/// AF_XDP ring, as this process writes or reads its entries.
#[derive(Debug)]
pub(super) struct XdpRing<T, Side> {
    memory: Arc<XdpMemoryMapping>,
    layout: XdpRingLayout,
    entries: XdpEntries<T>,
    /// Index of this process in the ring, which may exceed the index that it last published to the kernel.
    ours: u32,
    /// Index of the kernel in the AF_XDP ring, at the last read.
    theirs: u32,
    side: PhantomData<Side>,
}

impl<T: XdpEntry, Side> XdpRing<T, Side> {
    /// Creates the ring in this mapping, which no other ring uses. Returns `None` if the ring does not fit.
    pub(super) fn new(memory: Arc<XdpMemoryMapping>, layout: XdpRingLayout) -> Option<Self> {
        let entries = XdpEntries::new(memory.clone(), layout.entries, layout.size)?;
        for offset in [layout.producer, layout.consumer, layout.flags] {
            memory.word(offset)?;
        }
        Some(Self { memory, layout, entries, ours: 0, theirs: 0, side: PhantomData })
    }

    /// Returns true if the kernel must be woken up to handle the ring's entries.
    pub(super) fn wants_waking(&self) -> bool {
        const NEED_WAKEUP: u32 = 1;
        self.memory.checked_word(self.layout.flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }

    /// Returns the number of entries between two indices of the ring.
    fn distance(&self, from: u32, to: u32) -> Result<u32, BrokenXdpRing> {
        let distance = to.wrapping_sub(from);
        if distance <= self.layout.size { Ok(distance) } else { Err(BrokenXdpRing) }
    }
}

impl<T: XdpEntry> XdpRing<T, RingProducerSide> {
    /// Returns the number of free entries in the ring.
    pub(super) fn room(&mut self) -> Result<u32, BrokenXdpRing> {
        // Acquire: the kernel has finished reading an entry before its index passes it.
        let theirs = self.memory.checked_word(self.layout.consumer).load(Ordering::Acquire);
        let pending = self.distance(theirs, self.ours)?;
        self.theirs = theirs;
        Ok(self.layout.size - pending)
    }

    /// Writes an entry, to be published later. Returns false if the ring was full at the last read of the kernel's
    /// index.
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.ours.wrapping_sub(self.theirs) >= self.layout.size {
            return false;
        }
        self.entries.write(self.ours, entry);
        self.ours = self.ours.wrapping_add(1);
        true
    }

    /// Publishes the written entries of the ring to the kernel.
    pub(super) fn publish(&self) {
        self.memory.checked_word(self.layout.producer).store(self.ours, Ordering::Release);
    }

    /// Returns the number of entries that were published to the kernel and that it has not read.
    pub(super) fn unread(&mut self) -> Result<u32, BrokenXdpRing> {
        Ok(self.layout.size - self.room()?)
    }
}

impl<T: XdpEntry> XdpRing<T, RingConsumerSide> {
    /// Returns the number of entries that the kernel has written and this process has not read.
    pub(super) fn available(&mut self) -> Result<u32, BrokenXdpRing> {
        let theirs = self.memory.checked_word(self.layout.producer).load(Ordering::Acquire);
        let available = self.distance(self.ours, theirs)?;
        self.theirs = theirs;
        Ok(available)
    }

    /// Returns the next entry that the kernel has written and that this process has not read.
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.ours == self.theirs {
            return None;
        }
        // The kernel has written it whole: its index, read with acquire order, has passed it, and `available` has found the
        // index within the ring.
        let entry = self.entries.read(self.ours);
        self.ours = self.ours.wrapping_add(1);
        Some(entry)
    }

    /// Returns the consumed entries of the ring to the kernel.
    pub(super) fn release(&self) {
        self.memory.checked_word(self.layout.consumer).store(self.ours, Ordering::Release);
    }
}
