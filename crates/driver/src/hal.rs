//! What a driver needs of the world: registers, a clock, and memory that the card can reach too.
//! Left out: interrupts. Whoever owns the driver hears them and calls it.

use core::time::Duration;
use i82576::Time;

/// Bytes of the longest descriptor of any family.
pub const DESCRIPTOR: usize = 32;

/// Purpose of a prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Memory will be read.
    Read,
    /// Memory will be written.
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

    /// Copies consecutive descriptors of `size` bytes, 16 or 32, that the card has completed, each to the front of an element of
    /// `into`, up to the first that it has not. Bit 0 of a descriptor's ninth byte says so, and is read before the rest. Returns
    /// how many were copied.
    ///
    /// `iova` is a multiple of `size`.
    #[inline]
    fn read_completed(&self, iova: u64, size: usize, into: &mut [[u8; DESCRIPTOR]]) -> usize {
        let mut completed = 0;
        for (at, raw) in (iova..).step_by(size).zip(into) {
            let mut done = [0];
            self.dma_read(at + 8, &mut done);
            if done[0] & 1 == 0 {
                break;
            }
            self.dma_read(at, &mut raw[..size]);
            completed += 1;
        }
        completed
    }

    /// Fetches `length` bytes at `iova` into the cache, to be copied out or in soon. A hint: the default does nothing.
    #[inline]
    fn prefetch(&self, iova: u64, length: usize, access: Access) {
        let _ = (iova, length, access);
    }
}
