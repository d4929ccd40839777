//! Entries of an AF_XDP ring, in memory that is shared with the kernel. The ring's indices say whose an entry is.

use std::ptr::NonNull;
use std::sync::Arc;

use super::memory::XdpMemoryMapping;

/// Entry that the kernel and this process exchange.
///
/// # Safety
/// Any bytes of its size are a value.
pub(super) unsafe trait XdpEntry: Copy + Send {}

// SAFETY: any bytes are an address of a UMEM chunk.
unsafe impl XdpEntry for u64 {}

/// Frame in the UMEM (`struct xdp_desc`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct XdpDescriptor {
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) options: u32,
}

// SAFETY: the fields are integers without padding between them.
unsafe impl XdpEntry for XdpDescriptor {}

/// Entries of one AF_XDP ring.
#[derive(Debug)]
pub(super) struct XdpEntries<T> {
    _memory: Arc<XdpMemoryMapping>,
    start: NonNull<T>,
    /// Number of entries, a power of two.
    size: u32,
}

// SAFETY: `start` is inside the memory, which is moved along and can be sent.
unsafe impl<T: Send> Send for XdpEntries<T> {}

impl<T: XdpEntry> XdpEntries<T> {
    /// Returns the `size` entries at an offset of a mapping. Returns `None` if they do not fit, or are no power of two.
    pub(super) fn new(memory: Arc<XdpMemoryMapping>, offset: usize, size: u32) -> Option<Self> {
        let start = memory.place(offset, size as usize * size_of::<T>(), align_of::<T>())?.cast();
        size.is_power_of_two().then_some(Self { _memory: memory, start, size })
    }

    /// Returns the address of the ring entry with this index.
    fn at(&self, index: u32) -> NonNull<T> {
        // SAFETY: the index is less than the size, and that many entries are inside the mapping.
        unsafe { self.start.add((index & (self.size - 1)) as usize) }
    }

    /// Writes the entry with this index, which is this process's until the index is published.
    pub(super) fn write(&mut self, index: u32, entry: T) {
        // SAFETY: the entry is inside the mapping and aligned. The kernel, its other user, reads it after its index alone.
        unsafe { self.at(index).write(entry) };
    }

    /// Reads the entry with this index, which the kernel has published.
    pub(super) fn read(&self, index: u32) -> T {
        // SAFETY: as above; any bytes are a value, and the kernel writes it again only after it was released.
        unsafe { self.at(index).read() }
    }
}
