//! AF_XDP ring: entries, and two indices that increase modulo 2^32. The producer writes entries and advances
//! `producer`, the consumer reads them and advances `consumer`. Each read of the kernel's index is checked: it is
//! never further from the own one than the ring's size.
//!
//! `queue` interprets the entries.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::memory::XdpMemoryMapping;

/// Frame in the UMEM (`struct xdp_desc`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct XdpDescriptor {
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) options: u32,
}

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
    entries: NonNull<T>,
    /// Index of this process in the ring, which may exceed the index that it last published to the kernel.
    ours: u32,
    /// Index of the kernel in the AF_XDP ring, at the last read.
    theirs: u32,
    side: PhantomData<Side>,
}

// SAFETY: `entries` is inside `memory`, which is moved along and can be sent; no other code of this process
// accesses them.
unsafe impl<T: Send, Side> Send for XdpRing<T, Side> {}

impl<T: Copy, Side> XdpRing<T, Side> {
    /// Creates the ring in this mapping, which no other ring uses. Returns `None` if the ring does not fit.
    pub(super) fn new(memory: Arc<XdpMemoryMapping>, layout: XdpRingLayout) -> Option<Self> {
        let bytes = layout.size as usize * size_of::<T>();
        let entries = memory.place(layout.entries, bytes, align_of::<T>())?.cast();
        for offset in [layout.producer, layout.consumer, layout.flags] {
            memory.word(offset)?;
        }
        let fits = layout.size.is_power_of_two();
        fits.then_some(Self { memory, layout, entries, ours: 0, theirs: 0, side: PhantomData })
    }

    /// Returns a 32-bit word of the ring, whose offset was checked when the ring was created.
    fn word(&self, offset: usize) -> &AtomicU32 {
        static NOWHERE: AtomicU32 = AtomicU32::new(0);
        self.memory.word(offset).unwrap_or(&NOWHERE)
    }

    /// Returns true if the kernel must be woken up to handle the ring's entries.
    pub(super) fn wants_waking(&self) -> bool {
        const NEED_WAKEUP: u32 = 1;
        self.word(self.layout.flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }

    /// Returns the number of entries between two indices of the ring.
    fn distance(&self, from: u32, to: u32) -> Result<u32, BrokenXdpRing> {
        let distance = to.wrapping_sub(from);
        if distance <= self.layout.size { Ok(distance) } else { Err(BrokenXdpRing) }
    }

    /// Returns the address of the ring entry with this index.
    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the index is less than the size, and that many entries are inside the mapping.
        unsafe { self.entries.add((index & (self.layout.size - 1)) as usize) }
    }
}

impl<T: Copy> XdpRing<T, RingProducerSide> {
    /// Returns the number of free entries in the ring.
    pub(super) fn room(&mut self) -> Result<u32, BrokenXdpRing> {
        // Acquire: the kernel has finished reading an entry before its index passes it.
        let theirs = self.word(self.layout.consumer).load(Ordering::Acquire);
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
        // SAFETY: the entry is inside the mapping and aligned, and it is ours until the index is published.
        unsafe { self.entry(self.ours).write(entry) };
        self.ours = self.ours.wrapping_add(1);
        true
    }

    /// Publishes the written entries of the ring to the kernel.
    pub(super) fn publish(&self) {
        self.word(self.layout.producer).store(self.ours, Ordering::Release);
    }

    /// Returns the number of entries that were published to the kernel and that it has not read.
    pub(super) fn unread(&mut self) -> Result<u32, BrokenXdpRing> {
        Ok(self.layout.size - self.room()?)
    }
}

impl<T: Copy> XdpRing<T, RingConsumerSide> {
    /// Returns the number of entries that the kernel has written and this process has not read.
    pub(super) fn available(&mut self) -> Result<u32, BrokenXdpRing> {
        let theirs = self.word(self.layout.producer).load(Ordering::Acquire);
        let available = self.distance(self.ours, theirs)?;
        self.theirs = theirs;
        Ok(available)
    }

    /// Returns the next entry that the kernel has written and that this process has not read.
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.ours == self.theirs {
            return None;
        }
        // SAFETY: the entry is inside the mapping and aligned, and the kernel has written it whole: its index, read
        // with acquire order, has passed it, and `available` has found the index within the ring.
        let entry = unsafe { self.entry(self.ours).read() };
        self.ours = self.ours.wrapping_add(1);
        Some(entry)
    }

    /// Returns the consumed entries of the ring to the kernel.
    pub(super) fn release(&self) {
        self.word(self.layout.consumer).store(self.ours, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
