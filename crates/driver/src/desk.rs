//! Registers and memory that only store values, for tests that act as the card. A memory access that leaves its
//! allocation panics.

use crate::hal::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use i82576::Time;

/// Device address of the first allocation, which needs more than 32 bits.
pub(crate) const BASE: u64 = 0x12_0000_0000;

/// Registers and memory of one function, for tests that act as the card.
#[derive(Debug, Default)]
pub(crate) struct TestHal {
    pub(crate) registers: BTreeMap<u32, u32>,
    /// DMA allocations by their device address, in rising order.
    memory: Vec<(u64, Vec<u8>)>,
}

impl TestHal {
    /// Returns the allocation that an address is in, and the address's offset in it.
    fn find(&self, iova: u64) -> (usize, usize) {
        let at = self.memory.partition_point(|(start, _)| *start <= iova);
        assert!(at > 0, "DMA address {iova:#x} was not allocated");
        (at - 1, (iova - self.memory[at - 1].0) as usize)
    }
}

impl Hal for TestHal {
    fn read(&mut self, offset: u32) -> u32 {
        self.registers.get(&offset).copied().unwrap_or(0)
    }
    fn write(&mut self, offset: u32, value: u32) {
        self.registers.insert(offset, value);
    }
    fn now(&self) -> Time {
        Time::ZERO
    }
    fn wait(&mut self, _time: Duration) {}
}

impl DmaHal for TestHal {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        let end = self.memory.last().map_or(BASE, |(start, bytes)| start + bytes.len() as u64);
        let iova = end.next_multiple_of(align as u64);
        self.memory.push((iova, vec![0; length]));
        Ok(DmaAllocation { iova, length })
    }
    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        let (region, offset) = self.find(iova);
        into.copy_from_slice(&self.memory[region].1[offset..][..into.len()]);
    }
    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        let (region, offset) = self.find(iova);
        self.memory[region].1[offset..][..from.len()].copy_from_slice(from);
    }
}
