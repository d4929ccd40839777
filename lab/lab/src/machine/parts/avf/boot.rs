//! Registers and memory of an adaptive-VF card's PF and VF while their drivers start. Nothing is charged,
//! because the measurement has not begun. The PF driver responds at once.

use super::{AvfBus, AvfPort};
use crate::machine::chipset::Chipset;
use crate::machine::parts::bus::FunctionMemory;
use avf::control::{CardCommand, CardControl};
use avf::virtchnl::VfTrafficStatistics;
use driver::{DmaAllocation, DmaHal, Hal, hal::OutOfDmaMemory};
use i82576::Time;
use pcie::Function;
use std::time::Duration;

/// Access of a starting driver to its function's registers and memory.
pub(super) struct AvfBootHal<'a> {
    pub(super) port: &'a mut AvfPort,
    pub(super) chipset: &'a mut Chipset,
    pub(super) function: Function,
    pub(super) now: Time,
}

impl AvfBootHal<'_> {
    fn path(&self) -> &FunctionMemory {
        let AvfPort { functions, .. } = &*self.port;
        functions.path(self.function).expect("a driver's function exists")
    }

    fn path_mut(&mut self) -> &mut FunctionMemory {
        match self.function {
            Function::Pf => &mut self.port.functions.pf,
            Function::Vf(_) => &mut self.port.functions.vf,
        }
    }
}

impl Hal for AvfBootHal<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        match self.function {
            Function::Pf => self.port.card.pf_read(offset),
            Function::Vf(vf) => self.port.card.read(vf, offset),
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        let AvfPort { card, functions, .. } = &mut *self.port;
        match self.function {
            Function::Pf => card.pf_write(offset, value, &mut AvfBus { functions, chipset: self.chipset }),
            Function::Vf(vf) => card.write(vf, offset, value),
        }
    }

    fn now(&self) -> Time {
        self.now
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        self.port.round(self.now, self.chipset);
    }
}

impl DmaHal for AvfBootHal<'_> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        self.path_mut().allocate(length, align)
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        self.path().read(self.chipset, iova, into);
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        let AvfPort { functions, .. } = &*self.port;
        let path = functions.path(self.function).expect("a driver's function exists");
        path.write(self.chipset, iova, from);
    }
}

impl CardControl for AvfBootHal<'_> {
    fn order(&mut self, vf: u8, order: CardCommand<'_>) {
        self.port.card.order(vf, order);
    }

    fn statistics(&mut self, vf: u8) -> VfTrafficStatistics {
        self.port.card.statistics(vf)
    }
}

/// Wire that delivers a single given frame to the card.
pub(super) struct SingleFrameWire<'a>(pub(super) Option<&'a [u8]>);

impl plane::UplinkWire for SingleFrameWire<'_> {
    fn transmit(&mut self, _frame: &[u8]) -> bool {
        false
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        let frame = self.0.take()?;
        into.get_mut(..frame.len())?.copy_from_slice(frame);
        Some(frame.len())
    }
}
