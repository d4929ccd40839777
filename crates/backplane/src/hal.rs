//! Implements the drivers' [`Hal`] on the card in the same process. Register writes take effect at once; none is
//! posted.

use crate::Backplane;
use core::time::Duration;
use driver::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use i82576::Time;
use pcie::{Function, Iova};

/// Registers of the PF and the clock, for the PF's driver. A wait advances the clock and runs the card, but not the PF
/// driver.
#[derive(Debug)]
pub struct BackplanePfHal<'a> {
    pub(crate) backplane: &'a mut Backplane,
}

/// Registers and memory of a VF, for its driver. A wait advances the clock, and runs the card and the PF driver.
#[derive(Debug)]
pub struct BackplaneVfHal<'a> {
    pub(crate) backplane: &'a mut Backplane,
    pub(crate) function: Function,
}

impl Hal for BackplanePfHal<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.backplane.nic.read(Function::Pf, offset, self.backplane.now)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.backplane.nic.write(Function::Pf, offset, value, self.backplane.now);
    }

    fn now(&self) -> Time {
        self.backplane.now
    }

    fn wait(&mut self, time: Duration) {
        self.backplane.advance(time);
    }
}

impl Hal for BackplaneVfHal<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.backplane.nic.read(self.function, offset, self.backplane.now)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.backplane.nic.write(self.function, offset, value, self.backplane.now);
    }

    fn now(&self) -> Time {
        self.backplane.now
    }

    fn wait(&mut self, time: Duration) {
        self.backplane.advance(time);
    }
}

impl DmaHal for BackplaneVfHal<'_> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        self.backplane.world.memory(self.function).allocate(length, align)
    }

    fn dma_read(&self, iova: Iova, into: &mut [u8]) {
        let memory = self.backplane.world.memory_of(self.function);
        let bytes = memory.get(iova, into.len()).expect("the driver reads memory it has allocated");
        into.copy_from_slice(bytes);
    }

    fn dma_write(&mut self, iova: Iova, from: &[u8]) {
        let memory = self.backplane.world.memory(self.function);
        let bytes = memory.get_mut(iova, from.len()).expect("the driver writes memory it has allocated");
        bytes.copy_from_slice(from);
    }
}
