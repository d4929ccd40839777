//! Memory requests and interrupts of a port's PCI functions, under the function's routing id and through the
//! IOMMU. The machine charges interrupts.

use crate::machine::chipset::{AssignedFunction, Chipset};
use driver::vf::RECEIVE_VECTOR;
use driver::{DmaAllocation, hal::OutOfDmaMemory};
use pcie::msix::InterruptMessage;
use pcie::{Bus, DmaFault, Function, Iova, Rid};

/// First address that a guest's driver may allocate. Lower addresses belong to the guest's kernel.
const FIRST: u64 = 1 << 20;

/// VF, and the part of its guest's memory in which the guest's VF driver allocates.
#[derive(Debug)]
pub(crate) struct FunctionMemory {
    pub(crate) assigned: AssignedFunction,
    /// Interrupt messages of the VF's vectors, as programmed at assignment.
    pub(crate) messages: Vec<InterruptMessage>,
    next: u64,
}

impl FunctionMemory {
    /// Creates the memory of a VF, whose driver allocates in the part of the guest's memory that begins at
    /// `part`.
    pub(crate) fn new(assigned: AssignedFunction, messages: Vec<InterruptMessage>, part: u64) -> Self {
        Self { assigned, messages, next: part + FIRST }
    }

    /// Allocates the next free bytes of the guest's memory.
    pub(crate) fn allocate(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        let iova = self.next.next_multiple_of(align.max(1) as u64);
        self.assigned.region.at(iova, length).ok_or(OutOfDmaMemory(length))?;
        self.next = iova + length as u64;
        Ok(DmaAllocation { iova, length })
    }

    /// Reads descriptors or a modelled frame from memory that the VF's driver allocated.
    pub(crate) fn read(&self, chipset: &Chipset, iova: u64, into: &mut [u8]) {
        let host = self.assigned.region.at(iova, into.len()).expect("the driver reads memory it allocated");
        chipset.memory.read_for_driver(host, into).expect("guest memory is part of host memory");
    }

    /// Writes memory that the VF's driver allocated.
    pub(crate) fn write(&self, chipset: &mut Chipset, iova: u64, from: &[u8]) {
        let host = self.assigned.region.at(iova, from.len()).expect("the driver writes memory it allocated");
        chipset.memory.write(host, from).expect("guest memory is part of host memory");
    }
}

/// VFs of a port, and the interrupts that they sent.
#[derive(Debug, Default)]
pub(crate) struct PortVirtualFunctions {
    pub(crate) paths: Vec<FunctionMemory>,
    /// Interrupts of a port's VFs that are not delivered yet: the sending function, and its interrupt
    /// message.
    pub(crate) sent: Vec<(Rid, InterruptMessage)>,
    /// Bit mask of VFs with a receive interrupt that is not delivered yet.
    pub(crate) received: u8,
    /// Number of DMA requests that came from a function without a domain, or that the IOMMU blocked.
    pub(crate) faults: u64,
}

/// Bus on which a port's functions access memory and send interrupts, during one call.
pub(crate) struct PortBus<'a> {
    pub(crate) functions: &'a mut PortVirtualFunctions,
    pub(crate) chipset: &'a mut Chipset,
}

impl PortBus<'_> {
    #[inline]
    fn assigned(&self, function: Function) -> Option<AssignedFunction> {
        match function {
            Function::Pf => None,
            Function::Vf(n) => self.functions.paths.get(usize::from(n)).map(|path| path.assigned),
        }
    }

    #[cold]
    fn fault(&mut self, function: Function, iova: Iova) -> DmaFault {
        self.functions.faults += 1;
        DmaFault { function, iova }
    }
}

impl Bus for PortBus<'_> {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        let assigned = self.assigned(function).ok_or_else(|| self.fault(function, iova))?;
        self.chipset.dma_read(assigned, iova, into).map_err(|_| self.fault(function, iova))
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        let assigned = self.assigned(function).ok_or_else(|| self.fault(function, iova))?;
        self.chipset.dma_write(assigned, iova, from).map_err(|_| self.fault(function, iova))
    }

    fn msix(&mut self, function: Function, vector: u16) {
        let PortVirtualFunctions { paths, sent, received, .. } = &mut *self.functions;
        if let Function::Vf(n) = function
            && let Some(path) = paths.get(usize::from(n))
            && let Some(message) = path.messages.get(usize::from(vector))
        {
            sent.push((path.assigned.rid, *message));
            *received |= if vector == RECEIVE_VECTOR { 1 << (n & 7) } else { 0 };
        }
    }
}
