//! One ring: entries, and two indices that count on for ever, modulo 2^32. One side writes entries and moves `producer`,
//! the other reads them and moves `consumer`. What the kernel says of its index is held against our own at each look: it
//! can never be further away than the ring is long.
//!
//! Left out: what the entries mean (`queue`).

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::memory::Mapping;

/// `struct xdp_desc`: a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Descriptor {
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) options: u32,
}

/// Where a ring has what: bytes from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) entries: usize,
    pub(super) flags: usize,
    /// Entries, a power of two.
    pub(super) size: u32,
}

impl Layout {
    /// Bytes of the whole ring, of entries of type `T`.
    pub(super) fn len<T>(&self) -> usize {
        self.entries + self.size as usize * size_of::<T>()
    }
}

/// An index that cannot be: the ring is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// The side that writes entries is ours.
#[derive(Debug)]
pub(super) struct Producing;
/// The side that reads entries is ours.
#[derive(Debug)]
pub(super) struct Consuming;

/// Our side of a ring.
#[derive(Debug)]
pub(super) struct Ring<T, Side> {
    memory: Arc<Mapping>,
    layout: Layout,
    entries: NonNull<T>,
    /// Our index, which may be ahead of what the kernel was told.
    ours: u32,
    /// The kernel's, as it was seen last.
    theirs: u32,
    side: PhantomData<Side>,
}

// SAFETY: `entries` is inside `memory`, which goes along and can be sent; nobody else of this process reaches them.
unsafe impl<T: Send, Side> Send for Ring<T, Side> {}

impl<T: Copy, Side> Ring<T, Side> {
    /// The ring in this mapping, nobody else's; `None` if it does not fit in.
    pub(super) fn new(memory: Arc<Mapping>, layout: Layout) -> Option<Self> {
        let bytes = layout.size as usize * size_of::<T>();
        let entries = memory.place(layout.entries, bytes, align_of::<T>())?.cast();
        for offset in [layout.producer, layout.consumer, layout.flags] {
            memory.word(offset)?;
        }
        let fits = layout.size.is_power_of_two();
        fits.then_some(Self { memory, layout, entries, ours: 0, theirs: 0, side: PhantomData })
    }

    /// A word of the ring. There is one where the layout says: that was seen when the ring was made.
    fn word(&self, offset: usize) -> &AtomicU32 {
        static NOWHERE: AtomicU32 = AtomicU32::new(0);
        self.memory.word(offset).unwrap_or(&NOWHERE)
    }

    /// Whether the kernel wants to be told that there is something to be done.
    pub(super) fn wants_waking(&self) -> bool {
        const NEED_WAKEUP: u32 = 1;
        self.word(self.layout.flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }

    /// Entries between two indices.
    fn distance(&self, from: u32, to: u32) -> Result<u32, Broken> {
        let distance = to.wrapping_sub(from);
        if distance <= self.layout.size { Ok(distance) } else { Err(Broken) }
    }

    /// Where the entry of an index is.
    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the index is less than the size, and so many entries are inside the mapping.
        unsafe { self.entries.add((index & (self.layout.size - 1)) as usize) }
    }
}

impl<T: Copy> Ring<T, Producing> {
    /// For how many entries there is room.
    pub(super) fn room(&mut self) -> Result<u32, Broken> {
        // The kernel has read what it has passed: it is behind its index before we write again.
        let theirs = self.word(self.layout.consumer).load(Ordering::Acquire);
        let under_way = self.distance(theirs, self.ours)?;
        self.theirs = theirs;
        Ok(self.layout.size - under_way)
    }

    /// Writes an entry, to be published; `false` if there was no room for it at the last look.
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.ours.wrapping_sub(self.theirs) >= self.layout.size {
            return false;
        }
        // SAFETY: the place is inside the mapping and aligned, and it is ours until the index says otherwise.
        unsafe { self.entry(self.ours).write(entry) };
        self.ours = self.ours.wrapping_add(1);
        true
    }

    /// Hands the kernel what was written.
    pub(super) fn publish(&self) {
        self.word(self.layout.producer).store(self.ours, Ordering::Release);
    }

    /// Entries that the kernel has been given and has not read, by a new look.
    pub(super) fn unread(&mut self) -> Result<u32, Broken> {
        Ok(self.layout.size - self.room()?)
    }
}

impl<T: Copy> Ring<T, Consuming> {
    /// How many entries there are to be read.
    pub(super) fn available(&mut self) -> Result<u32, Broken> {
        let theirs = self.word(self.layout.producer).load(Ordering::Acquire);
        let available = self.distance(self.ours, theirs)?;
        self.theirs = theirs;
        Ok(available)
    }

    /// The next entry of those that were there at the last look.
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.ours == self.theirs {
            return None;
        }
        // SAFETY: the place is inside the mapping and aligned, and the kernel has written a whole entry to it: its index,
        // read in order, says so, and `available` has found the index within the ring.
        let entry = unsafe { self.entry(self.ours).read() };
        self.ours = self.ours.wrapping_add(1);
        Some(entry)
    }

    /// Hands the places of what was read back to the kernel.
    pub(super) fn release(&self) {
        self.word(self.layout.consumer).store(self.ours, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
