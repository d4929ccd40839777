//! Interface of a driver to its environment: registers, a clock, and memory shared with the card. The driver's owner
//! receives interrupts and calls the driver.

use core::time::Duration;
use i82576::{MacAddress, Time};

/// Bytes of the longest descriptor of any family.
pub const DESCRIPTOR: usize = 32;

/// Purpose for which memory is prefetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefetchPurpose {
    /// The driver will read the prefetched memory.
    Read,
    /// The driver will write the prefetched memory.
    Write,
}

/// Interface to the registers of one function, and to a clock.
pub trait Hal {
    /// Reads the 32-bit register at a byte offset of BAR0. Returns all ones for a removed function.
    fn read(&mut self, offset: u32) -> u32;

    /// Writes the 32-bit register at a byte offset of BAR0. The write may be posted.
    fn write(&mut self, offset: u32, value: u32);

    /// Returns the current time of the driver's clock.
    fn now(&self) -> Time;

    /// Waits for at least `time`, during which the card may make progress. Drivers call this only in bounded loops.
    fn wait(&mut self, time: Duration);

    /// Returns true if the switch behind the card would give a VF an address. PF drivers ask before they acknowledge a VF's request.
    /// True by default: a real card has no such rules.
    fn may_have_address(&mut self, _vf: u8, _address: MacAddress) -> bool {
        true
    }

    /// Has the switch behind the card take an address back from a VF if the switch knows another user of it. Returns true then: the
    /// PF driver takes the address out of the card. PF drivers call it when the VF loses the right to use the addresses of others.
    /// False by default: a real card knows no user.
    fn revoke_address(&mut self, _vf: u8, _address: MacAddress) -> bool {
        false
    }
}

/// Memory that the card accesses at `iova` and the driver through [`DmaHal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmaAllocation {
    /// Device address of the region's first byte.
    pub iova: u64,
    /// Length of the region in bytes.
    pub length: usize,
}

/// Error: no DMA memory is left for this many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot allocate {0} bytes of DMA memory: the memory is exhausted")]
pub struct OutOfDmaMemory(pub usize);

/// Interface to a function's registers and clock ([`Hal`]), and to memory for DMA.
///
/// A region belongs to the driver, so an access outside of it is a driver bug: implementations may panic.
pub trait DmaHal: Hal {
    /// Allocates zeroed memory, aligned to `align` (a power of two), for the life of the function.
    ///
    /// # Errors
    /// [`OutOfDmaMemory`].
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory>;

    /// Copies bytes out of DMA memory. An acquire operation: later reads see every write that the card made before it
    /// wrote these bytes.
    fn dma_read(&self, iova: u64, into: &mut [u8]);

    /// Copies bytes into DMA memory at a device address. A release operation: a card that sees these bytes sees every
    /// earlier write too.
    fn dma_write(&mut self, iova: u64, from: &[u8]);

    /// Copies consecutive descriptors of `size` bytes (16 or 32) up to the first incomplete one, each to the front
    /// of an element of `into`. Bit 0 of the ninth byte marks a completed descriptor, and is read before the rest.
    /// Returns the number of copied descriptors.
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

    /// Prefetches `length` bytes at `iova` into the processor's cache before a copy. Only a hint: the default
    /// implementation does nothing.
    #[inline]
    fn prefetch(&self, iova: u64, length: usize, access: PrefetchPurpose) {
        let _ = (iova, length, access);
    }
}

impl<H: Hal + ?Sized> Hal for &mut H {
    fn read(&mut self, offset: u32) -> u32 {
        H::read(self, offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        H::write(self, offset, value);
    }

    fn now(&self) -> Time {
        H::now(self)
    }

    fn wait(&mut self, time: Duration) {
        H::wait(self, time);
    }

    fn may_have_address(&mut self, vf: u8, address: MacAddress) -> bool {
        H::may_have_address(self, vf, address)
    }

    fn revoke_address(&mut self, vf: u8, address: MacAddress) -> bool {
        H::revoke_address(self, vf, address)
    }
}

impl<H: DmaHal + ?Sized> DmaHal for &mut H {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        H::dma_alloc(self, length, align)
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        H::dma_read(self, iova, into);
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        H::dma_write(self, iova, from);
    }

    fn read_completed(&self, iova: u64, size: usize, into: &mut [[u8; DESCRIPTOR]]) -> usize {
        H::read_completed(self, iova, size, into)
    }

    fn prefetch(&self, iova: u64, length: usize, access: PrefetchPurpose) {
        H::prefetch(self, iova, length, access);
    }
}
