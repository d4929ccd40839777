//! Registers and memory of a VF as its driver accesses them during a run; each register access is charged.

use crate::machine::chipset::Chipset;
use crate::machine::parts::card::{Port, card_time};
use driver::{DmaHal, DmaRegion, Hal, hal::OutOfDmaMemory};
use hypervisor::account::{Category, Charge};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::Step;
use i82576::Time;
use pcie::Function;
use std::time::Duration;

/// Registers and memory of a VF during one step of its guest.
pub(crate) struct Registers<'a> {
    pub(crate) step: &'a mut Step,
    pub(crate) port: &'a mut Port,
    pub(crate) vf: u8,
    pub(crate) chipset: &'a mut Chipset,
    pub(crate) table: &'a CostTable,
}

impl Hal for Registers<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.step.charge(Category::Driver, self.table[Cost::MmioRead]);
        self.port.nic.read(Function::Vf(self.vf), offset, card_time(self.step.now()))
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.step.charge(Category::Driver, self.table[Cost::MmioWrite]);
        self.port.nic.write(Function::Vf(self.vf), offset, value, card_time(self.step.now()));
    }

    fn now(&self) -> Time {
        card_time(self.step.now())
    }

    fn wait(&mut self, _time: Duration) {}
}

impl DmaHal for Registers<'_> {
    fn dma_alloc(&mut self, length: usize, _align: usize) -> Result<DmaRegion, OutOfDmaMemory> {
        // A driver allocates before it starts, never on the path of a frame.
        Err(OutOfDmaMemory(length))
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        self.port.functions.paths[usize::from(self.vf)].read(self.chipset, iova, into);
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.port.functions.paths[usize::from(self.vf)].write(self.chipset, iova, from);
    }
}
