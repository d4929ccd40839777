//! What a driver needs of the world: registers, a clock, and memory that the card can reach too.
//! Left out: interrupts. Whoever owns the driver hears them and calls it.

use core::time::Duration;
use i82576::Time;

/// What is about to be done with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is written.
    Write,
}

/// Registers of one function, and time.
pub trait Hal {
    /// Reads the 32-bit register at a byte offset of BAR0. A function that is gone reads as all ones.
    fn read(&mut self, offset: u32) -> u32;

    /// Writes the 32-bit register at a byte offset of BAR0. The write may be posted.
    fn write(&mut self, offset: u32, value: u32);

    /// The moment now.
    fn now(&self) -> Time;

    /// Lets at least `time` pass, during which the other side may make progress. Drivers call this only in
    /// bounded loops.
    fn wait(&mut self, time: Duration);
}

/// Memory that the card reaches at `iova` and the driver through [`DmaHal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmaRegion {
    /// Where the card finds the first byte.
    pub iova: u64,
    /// Bytes.
    pub length: usize,
}

/// No memory is left for the card to share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no DMA memory left for {0} bytes")]
pub struct OutOfDmaMemory(pub usize);

/// A [`Hal`] with memory for DMA.
///
/// The region is the driver's own, so an access outside of it is a driver bug: implementations may panic.
pub trait DmaHal: Hal {
    /// Zeroed memory, aligned to `align` (a power of two), for as long as the function lives.
    ///
    /// # Errors
    /// [`OutOfDmaMemory`].
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaRegion, OutOfDmaMemory>;

    /// Copies out of DMA memory. What the card wrote before what this reads is visible to later reads
    /// (acquire).
    fn dma_read(&self, iova: u64, into: &mut [u8]);

    /// Copies into DMA memory. Earlier writes are visible to the card before this one (release).
    fn dma_write(&mut self, iova: u64, from: &[u8]);

    /// Says that `length` bytes at `iova` are about to be copied out, or in. A hint: by default nothing is done.
    #[inline]
    fn prefetch(&self, iova: u64, length: usize, access: Access) {
        let _ = (iova, length, access);
    }
}
