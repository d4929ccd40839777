//! Range of mapped memory, accessed only by copies after a bounds check.
//!
//! [`MappedFile`] maps the memory, and [`crate::dma`] translates a guest's addresses.

use std::ptr::NonNull;
use std::sync::Arc;

use super::atomic::AtomicU8;
use super::copy::{self, LINE};
use super::marks::set_marks;
use super::{MappedFile, MemoryAccessError};

/// Maximum bytes of a frame that are prefetched into the processor's caches.
pub(super) const PREFETCHED: usize = 32 * LINE;

/// Mapped bytes of guest memory, offsets 0 to `len - 1`.
pub(crate) struct MappedGuestMemory {
    base: NonNull<u8>,
    len: usize,
    writable: bool,
}

// SAFETY: a mapping belongs to the process, not to a thread; `base` is only used for the copies below, which tolerate
// any concurrent writer, since the guest is one.
unsafe impl Send for MappedGuestMemory {}
// SAFETY: as above; every access through `&self` tolerates concurrent access.
unsafe impl Sync for MappedGuestMemory {}

impl MappedGuestMemory {
    /// Creates a view of `len` mapped bytes from `base` on.
    ///
    /// # Safety
    /// `len` bytes from `base` on must be mapped for as long as the value lives, for writing too if `writable`.
    pub(super) unsafe fn new(base: NonNull<u8>, len: usize, writable: bool) -> Self {
        Self { base, len, writable }
    }

    /// Returns the address in this process of the view's first mapped byte, for copies.
    #[inline]
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the number of mapped bytes in the view.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the address in this process of the view's first mapped byte, as a number.
    pub(super) fn address(&self) -> usize {
        self.base.addr().get()
    }

    /// Returns true if stores to the mapped bytes are permitted.
    #[inline]
    pub(super) fn is_writable(&self) -> bool {
        self.writable
    }

    /// Copies bytes out of the memory, as [`MappedFile::read`] does.
    #[inline]
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), MemoryAccessError> {
        let source = self.at(offset, buffer.len())?;
        // SAFETY: `at` checked that `buffer.len()` bytes are mapped; `buffer` is ours, so they do not
        // overlap.
        unsafe { copy::out_of_guest(source.as_ptr(), buffer) };
        Ok(())
    }

    /// Copies completed ring descriptors, as [`MappedFile::read_completed`] does.
    #[inline]
    pub(crate) fn read_completed(
        &self,
        offset: u64,
        size: usize,
        into: &mut [[u8; copy::LONG]],
    ) -> Result<usize, MemoryAccessError> {
        let len = size.saturating_mul(into.len());
        // Atomic loads that order others need memory that is mapped for writing.
        let source = self.at_writable(offset, len)?;
        if !source.cast::<u64>().is_aligned() || !matches!(size, copy::SHORT | copy::LONG) {
            return Err(MemoryAccessError::OutOfRange { offset, len });
        }
        // SAFETY: `at_writable` checked that as many descriptors of `size` bytes as `into` has elements are mapped for
        // writing; they are aligned.
        Ok(unsafe { copy::completed_out_of_guest(source.as_ptr(), size, into) })
    }

    /// Copies bytes into the memory, as [`MappedFile::write`] does.
    #[inline]
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryAccessError> {
        let target = self.at_writable(offset, bytes.len())?;
        // SAFETY: `at_writable` checked that `bytes.len()` bytes are mapped for writing.
        unsafe { copy::into_guest(bytes, target.as_ptr()) };
        Ok(())
    }

    /// Copies ring descriptors of `size` bytes (16 or 32) into the memory. If they are 8-byte aligned, they are stored
    /// word by word, one descriptor after the other, the second word of each last: a guest that sees that word sees the
    /// whole descriptor.
    ///
    /// # Errors
    /// [`MemoryAccessError::OutOfRange`], [`MemoryAccessError::ReadOnly`].
    #[inline]
    pub(crate) fn write_descriptors(
        &self,
        offset: u64,
        bytes: &[u8],
        size: usize,
    ) -> Result<(), MemoryAccessError> {
        let target = self.at_writable(offset, bytes.len())?;
        // SAFETY: `at_writable` checked that `bytes.len()` bytes are mapped for writing.
        unsafe { copy::descriptors_into_guest(bytes, size, target.as_ptr()) };
        Ok(())
    }

    /// Stores words into the memory, as [`MappedFile::store_words`] does.
    #[inline]
    pub(crate) fn store_words(&self, offset: u64, words: &[u64]) -> Result<(), MemoryAccessError> {
        let target = self.at_writable(offset, size_of_val(words))?.cast::<u64>();
        if !target.is_aligned() {
            return Err(MemoryAccessError::OutOfRange { offset, len: size_of_val(words) });
        }
        // SAFETY: `at_writable` checked that as many words are mapped for writing; they are aligned.
        unsafe { copy::store_words(words, target.as_ptr()) };
        Ok(())
    }

    /// Sets the bits `first` to `last` of a bitmap in the memory: bit `n % 8` of byte `n / 8` is bit `n`. Bits outside
    /// the memory are dropped. A bit that is set already costs a load only.
    pub(crate) fn set_bits(&self, first: u64, last: u64) {
        let end = last.saturating_add(1).min((self.len as u64).saturating_mul(8));
        let mut bit = first;
        while bit < end {
            let Ok(byte) = self.at_writable(bit / 8, 1) else { return };
            let is_whole = bit.is_multiple_of(8) && end - bit >= 8;
            let (mask, bits) = if is_whole { (u8::MAX, 8) } else { (1 << (bit % 8), 1) };
            // SAFETY: `at_writable` checked that the byte is mapped for writing, for as long as `self` lives. Any value
            // is valid. Other processes change it by atomic accesses too; this process accesses it otherwise only by
            // copies, whose source or target is never a reference.
            set_marks(unsafe { AtomicU8::from_ptr(byte.as_ptr()) }, mask);
            bit += bits;
        }
    }

    /// Prefetches cache lines of the memory, as [`MappedFile::prefetch`] does.
    #[inline]
    pub(crate) fn prefetch(&self, (offset, length): (u64, usize), writes: bool) {
        let length = length.min(PREFETCHED);
        if let Ok(first) = self.at(offset, length) {
            // SAFETY: `at` checked that `length` bytes are mapped there.
            unsafe { prefetch_lines(first, length, writes) };
        }
    }

    /// Returns the address of `len` mapped bytes at `offset`.
    #[inline]
    pub(super) fn at(&self, offset: u64, len: usize) -> Result<NonNull<u8>, MemoryAccessError> {
        let start =
            usize::try_from(offset).ok().filter(|start| *start <= self.len && len <= self.len - *start);
        let start = start.ok_or(MemoryAccessError::OutOfRange { offset, len })?;
        // SAFETY: `start` is at most `self.len`, so the result is inside the mapping or one past its end.
        Ok(unsafe { self.base.add(start) })
    }

    /// Returns the address of `len` mapped bytes at `offset`, for stores.
    #[inline]
    pub(super) fn at_writable(&self, offset: u64, len: usize) -> Result<NonNull<u8>, MemoryAccessError> {
        if !self.writable {
            return Err(MemoryAccessError::ReadOnly);
        }
        self.at(offset, len)
    }
}

/// Prefetches the cache lines of private memory, for writing if `writes`, up to the same limit as for guest memory.
#[inline]
pub fn prefetch(bytes: &[u8], writes: bool) {
    // SAFETY: all bytes of the slice are valid.
    unsafe { prefetch_lines(NonNull::from(bytes).cast(), bytes.len().min(PREFETCHED), writes) };
}

/// Prefetches the cache lines of `length` bytes from `first` on, for writing if `writes`.
///
/// # Safety
/// `length` bytes from `first` on must be mapped.
#[inline(always)]
unsafe fn prefetch_lines(first: NonNull<u8>, length: usize, writes: bool) {
    for at in (0..length).step_by(LINE) {
        // SAFETY: the caller vouches for `length` bytes.
        copy::prefetch(unsafe { first.add(at) }.as_ptr(), writes);
    }
}

/// Part of a file's mapping that belongs to one DMA region. The window keeps the mapping alive.
pub(crate) struct DmaRegionWindow {
    view: MappedGuestMemory,
    _mapping: Arc<MappedFile>,
}

impl DmaRegionWindow {
    /// Creates a window of `len` bytes at offset `skip` of the mapping, for stores too if `writable`. Returns `None` if
    /// the mapping is too short or read-only.
    pub(crate) fn new(mapping: Arc<MappedFile>, skip: u64, len: u64, writable: bool) -> Option<Self> {
        let len = usize::try_from(len).ok()?;
        let whole = &mapping.view;
        let base = if writable { whole.at_writable(skip, len) } else { whole.at(skip, len) };
        // SAFETY: `len` bytes from there on are inside the mapping, which stays as long as `_mapping` does.
        let view = unsafe { MappedGuestMemory::new(base.ok()?, len, writable) };
        Some(Self { view, _mapping: mapping })
    }

    /// Returns the mapped bytes of the DMA region.
    #[inline]
    pub(crate) fn view(&self) -> &MappedGuestMemory {
        &self.view
    }
}
