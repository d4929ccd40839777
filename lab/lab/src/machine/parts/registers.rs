//! Registers and memory of a VF as its running driver accesses them; each register access is charged.

use crate::machine::chipset::Chipset;
use crate::machine::parts::card::{NicPort, card_time};
use driver::{DmaAllocation, DmaHal, Hal, hal::OutOfDmaMemory};
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::VcpuStep;
use i82576::Time;
use pcie::Function;
use std::time::Duration;

/// Registers and memory of a VF during one step of its guest.
pub(crate) struct VfRegisters<'a> {
    pub(crate) step: &'a mut VcpuStep,
    pub(crate) port: &'a mut NicPort,
    pub(crate) vf: u8,
    pub(crate) chipset: &'a mut Chipset,
    pub(crate) table: &'a CostTable,
}

impl Hal for VfRegisters<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.step.charge(CycleCategory::Driver, self.table[CostConstant::MmioRead]);
        self.port.nic.read(Function::Vf(self.vf), offset, card_time(self.step.now()))
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.step.charge(CycleCategory::Driver, self.table[CostConstant::MmioWrite]);
        self.port.nic.write(Function::Vf(self.vf), offset, value, card_time(self.step.now()));
    }

    fn now(&self) -> Time {
        card_time(self.step.now())
    }

    fn wait(&mut self, _time: Duration) {}
}

impl DmaHal for VfRegisters<'_> {
    fn dma_alloc(&mut self, length: usize, _align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
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
