//! The memory that a guest shares with its card: where the card finds it, and how the driver reaches it. Each of a
//! bus's Hals hands its DMA half on to this.

use driver::{Access, DmaRegion, OutOfDmaMemory};
use host::shared::{SharedMemory, SharedMemoryError};
use std::sync::atomic::{Ordering, fence};

/// Shared memory, from a device address on.
#[derive(Debug)]
pub struct Ram {
    memory: SharedMemory,
    base: u64,
}

impl Ram {
    /// `bytes` zero bytes (a multiple of 4,096), which the card finds at `base`.
    ///
    /// # Errors
    /// [`SharedMemoryError`].
    pub fn new(base: u64, bytes: u64) -> Result<Self, SharedMemoryError> {
        Ok(Self { memory: SharedMemory::new(bytes)?, base })
    }

    /// Where the card finds the first byte.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// What there is to share.
    #[must_use]
    pub fn shared(&self) -> &SharedMemory {
        &self.memory
    }

    /// As [`driver::DmaHal::dma_alloc`].
    ///
    /// # Errors
    /// [`OutOfDmaMemory`].
    pub fn allocate(&mut self, length: usize, align: usize) -> Result<DmaRegion, OutOfDmaMemory> {
        // Never given back, so it is as zero as the file was.
        let piece = self.memory.allocate(length as u64, align as u64).ok_or(OutOfDmaMemory(length))?;
        Ok(DmaRegion { iova: self.base + piece.offset(), length })
    }

    /// As [`driver::DmaHal::dma_read`].
    ///
    /// # Panics
    /// The driver reads outside its memory.
    #[inline]
    pub fn read(&self, iova: u64, into: &mut [u8]) {
        let read = self.memory.memory().read(iova.wrapping_sub(self.base), into);
        fence(Ordering::Acquire);
        assert!(read.is_ok(), "the driver read {} bytes at {iova:#x}, outside its memory", into.len());
    }

    /// As [`driver::DmaHal::prefetch`].
    #[inline]
    pub fn prefetch(&self, iova: u64, length: usize, access: Access) {
        self.memory.memory().prefetch((iova.wrapping_sub(self.base), length), access == Access::Write);
    }

    /// As [`driver::DmaHal::dma_write`].
    ///
    /// # Panics
    /// The driver writes outside its memory.
    pub fn write(&mut self, iova: u64, from: &[u8]) {
        fence(Ordering::Release);
        let written = self.memory.memory().write(iova.wrapping_sub(self.base), from);
        assert!(written.is_ok(), "the driver wrote {} bytes at {iova:#x}, outside its memory", from.len());
    }
}
