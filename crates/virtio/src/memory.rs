//! Access of a device's queue to the guest's memory: a small trait, and its implementation over a [`Bus`].

use core::sync::atomic::{Ordering, fence};
use pcie::{Bus, Function, HintedMemory, MemoryHint};

/// Bytes of a ring descriptor. A [`Bus`] has separate methods for accesses of this size.
const DESCRIPTOR: usize = 16;

/// Error: the device may not access a range of the guest's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the device cannot access guest memory at {address:#x}")]
pub struct MemoryFault {
    /// Address of the refused access: the first address of the range, or one within it.
    pub address: u64,
}

/// Memory of a guest, which the guest may write at the same time.
///
/// An aligned access of two, four or eight bytes happens at once: the guest sees, and writes, all of the bytes or none.
/// Accesses happen in program order as long as a fence of the program orders them: the queues fence by
/// [`core::sync::atomic::fence`] where an acquire or a release is needed, and by [`RingMemory::fence`] where a read must
/// not pass an earlier write.
pub trait RingMemory {
    /// Reads `into.len()` bytes at an address of the guest.
    ///
    /// # Errors
    /// [`MemoryFault`] if the range is not accessible; `into` then holds unspecified bytes.
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault>;

    /// Writes the bytes `from` at an address of the guest.
    ///
    /// # Errors
    /// [`MemoryFault`] if the range is not writable; a part of it may have been written.
    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryFault>;

    /// Stores words of the ring's [record](crate::packed::record), from word `first` on, in this order, each at once. The
    /// default implementation keeps no record.
    #[inline]
    fn record(&mut self, first: usize, words: &[u64]) {
        let _ = (first, words);
    }

    /// Reads words of the ring's record, from word `first` on. The default implementation returns zeros.
    fn recorded(&mut self, first: usize, into: &mut [u64]) {
        let _ = first;
        into.fill(0);
    }

    /// Completes all earlier writes before any later read. The default implementation is the processor's full fence.
    #[inline]
    fn fence(&mut self) {
        fence(Ordering::SeqCst);
    }
}

/// Reads a little-endian number of 16 bits from the guest's memory.
#[inline]
pub(crate) fn read_u16<M: RingMemory>(memory: &mut M, address: u64) -> Result<u16, MemoryFault> {
    let mut bytes = [0; 2];
    memory.read(address, &mut bytes)?;
    Ok(u16::from_le_bytes(bytes))
}

/// Orders earlier reads before later accesses (acquire fence): descriptors are read after the index that published
/// them.
#[inline]
pub(crate) fn acquire() {
    fence(Ordering::Acquire);
}

/// Orders earlier accesses before later writes (release fence): an index is published after the elements before it.
#[inline]
pub(crate) fn release() {
    fence(Ordering::Release);
}

/// Memory of a ring, accessed through a [`Bus`] on behalf of one PCI function.
#[derive(Debug)]
pub struct BusMemory<'a, B> {
    /// Bus to the memory that holds the ring.
    pub bus: &'a mut B,
    /// PCI function on whose behalf the ring's memory is accessed.
    pub function: Function,
    /// Number of the ring among those of the function, which selects the ring's record.
    pub ring: u8,
    /// Hint that speeds up accesses to the part of guest memory that holds the ring.
    pub hint: &'a mut MemoryHint,
}

impl<B: Bus> RingMemory for BusMemory<'_, B> {
    #[inline]
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        let ring = HintedMemory { function: self.function, hint: self.hint };
        self.bus.read_descriptors(ring, address, into).map_err(|fault| MemoryFault { address: fault.iova })
    }

    #[inline]
    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryFault> {
        let written = if from.len().is_multiple_of(DESCRIPTOR) {
            let ring = HintedMemory { function: self.function, hint: self.hint };
            self.bus.write_descriptors(ring, address, from, DESCRIPTOR)
        } else {
            self.bus.dma_write(self.function, address, from)
        };
        written.map_err(|fault| MemoryFault { address: fault.iova })
    }

    #[inline]
    fn record(&mut self, first: usize, words: &[u64]) {
        self.bus.record_ring((self.function, self.ring), first, words);
    }

    fn recorded(&mut self, first: usize, into: &mut [u64]) {
        self.bus.recorded_ring((self.function, self.ring), first, into);
    }
}

#[cfg(test)]
mod tests {
    use super::{BusMemory, MemoryFault, RingMemory, read_u16};
    use pcie::{Bus, DmaFault, Function, Iova, MemoryHint};

    struct SmallMemoryBus([u8; 64]);

    impl SmallMemoryBus {
        fn range(&mut self, function: Function, iova: Iova, length: usize) -> Result<&mut [u8], DmaFault> {
            let start = iova as usize;
            self.0.get_mut(start..start.saturating_add(length)).ok_or(DmaFault { function, iova })
        }
    }

    impl Bus for SmallMemoryBus {
        fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
            into.copy_from_slice(self.range(function, iova, into.len())?);
            Ok(())
        }

        fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
            self.range(function, iova, from.len())?.copy_from_slice(from);
            Ok(())
        }

        fn msix(&mut self, _: Function, _: u16) {}
    }

    #[test]
    fn ring_memory_is_read_and_written_over_the_bus() {
        let (mut bus, mut hint) = (SmallMemoryBus([0; 64]), MemoryHint::default());
        let mut memory = BusMemory { bus: &mut bus, function: Function::Vf(0), ring: 0, hint: &mut hint };
        memory.write(2, &[0x34, 0x12]).unwrap();
        memory.write(16, &[7; 32]).unwrap();
        assert_eq!(read_u16(&mut memory, 2), Ok(0x1234));
        assert_eq!(read_u16(&mut memory, 46), Ok(0x0707));
        assert_eq!(memory.write(60, &[0; 8]), Err(MemoryFault { address: 60 }));
        assert_eq!(read_u16(&mut memory, 63), Err(MemoryFault { address: 63 }));
    }
}
