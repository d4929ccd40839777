//! Memory that a driver and its card share at one device address, with the DMA functions that the driver's
//! HAL needs.

use driver::hal::DESCRIPTOR;
use driver::{DmaAllocation, OutOfDmaMemory, PrefetchPurpose};
use host::shared::{SharedMemory, SharedMemoryError};
use std::sync::atomic::{Ordering, fence};

/// DMA memory that a driver shares with its card, at a fixed device address.
#[derive(Debug)]
pub struct SharedDmaMemory {
    memory: SharedMemory,
    base: u64,
}

impl SharedDmaMemory {
    /// Creates `bytes` zero bytes (a multiple of 4,096) at the device address `base`.
    ///
    /// # Errors
    /// [`SharedMemoryError`].
    pub fn new(base: u64, bytes: u64) -> Result<Self, SharedMemoryError> {
        Ok(Self { memory: SharedMemory::new(bytes)?, base })
    }

    /// Returns the device address of the first byte of the shared DMA memory.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns the shared memory, to share it with the card.
    #[must_use]
    pub fn shared(&self) -> &SharedMemory {
        &self.memory
    }

    /// Allocates zeroed DMA memory, as [`driver::DmaHal::dma_alloc`] requires.
    ///
    /// # Errors
    /// [`OutOfDmaMemory`].
    pub fn allocate(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        // Never freed, so the bytes are still the zeros of the file.
        let piece = self.memory.allocate(length as u64, align as u64).ok_or(OutOfDmaMemory(length))?;
        Ok(DmaAllocation { iova: self.base + piece.offset(), length })
    }

    /// Copies bytes out of the DMA memory, as [`driver::DmaHal::dma_read`] requires.
    ///
    /// # Panics
    /// The driver reads outside its memory.
    #[inline]
    pub fn read(&self, iova: u64, into: &mut [u8]) {
        let read = self.memory.memory().read(iova.wrapping_sub(self.base), into);
        fence(Ordering::Acquire);
        assert!(read.is_ok(), "the driver read {} bytes at {iova:#x}, outside its memory", into.len());
    }

    /// Copies completed descriptors out of the DMA memory, as [`driver::DmaHal::read_completed`] requires.
    ///
    /// # Panics
    /// The driver reads outside its memory.
    #[inline]
    pub fn read_completed(&self, iova: u64, size: usize, into: &mut [[u8; DESCRIPTOR]]) -> usize {
        let completed = self.memory.memory().read_completed(iova.wrapping_sub(self.base), size, into);
        completed.expect("the driver reads descriptors in its memory")
    }

    /// Prefetches bytes of the DMA memory, as [`driver::DmaHal::prefetch`] requires.
    #[inline]
    pub fn prefetch(&self, iova: u64, length: usize, access: PrefetchPurpose) {
        self.memory
            .memory()
            .prefetch((iova.wrapping_sub(self.base), length), access == PrefetchPurpose::Write);
    }

    /// Copies bytes into the DMA memory, as [`driver::DmaHal::dma_write`] requires.
    ///
    /// # Panics
    /// The driver writes outside its memory.
    pub fn write(&mut self, iova: u64, from: &[u8]) {
        fence(Ordering::Release);
        let written = self.memory.memory().write(iova.wrapping_sub(self.base), from);
        assert!(written.is_ok(), "the driver wrote {} bytes at {iova:#x}, outside its memory", from.len());
    }
}
