//! Memory requests and interrupts of a port's functions. Each VF reaches the memory of its guest and no other.
//! Left out: what an interrupt costs, which the world charges, and the IOMMU in between.

use driver::{DmaRegion, hal::OutOfDmaMemory};
use pcie::{Bus, DmaFault, Function, Iova};

/// Where a guest's memory begins for its VF.
const BASE: Iova = 0x10_0000;
/// Bytes that a guest may set aside for its VF.
const LIMIT: usize = 4 << 20;

/// A guest's memory, as far as its VF reaches it.
#[derive(Debug, Default)]
pub(super) struct Memory(Vec<u8>);

impl Memory {
    pub(super) fn allocate(&mut self, length: usize, align: usize) -> Result<DmaRegion, OutOfDmaMemory> {
        let start = self.0.len().next_multiple_of(align.max(1));
        let end = start.checked_add(length).filter(|end| *end <= LIMIT).ok_or(OutOfDmaMemory(length))?;
        self.0.resize(end, 0);
        Ok(DmaRegion { iova: BASE + start as u64, length })
    }

    #[inline]
    pub(super) fn at(&mut self, iova: Iova, length: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(iova.checked_sub(BASE)?).ok()?;
        self.0.get_mut(start..start.checked_add(length)?)
    }

    #[inline]
    pub(super) fn read(&self, iova: Iova, into: &mut [u8]) -> Option<()> {
        let start = usize::try_from(iova.checked_sub(BASE)?).ok()?;
        into.copy_from_slice(self.0.get(start..start.checked_add(into.len())?)?);
        Some(())
    }
}

/// What a port's VFs reach, and what they have sent.
#[derive(Debug, Default)]
pub(super) struct PortBus {
    pub(super) memory: Vec<Memory>,
    /// VF and vector of each interrupt that was not taken on yet.
    pub(super) sent: Vec<(u8, u16)>,
    pub(super) faults: u64,
}

impl PortBus {
    fn fault(&mut self, function: Function, iova: Iova) -> DmaFault {
        self.faults += 1;
        DmaFault { function, iova }
    }
}

impl Bus for PortBus {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        let memory = match function {
            Function::Pf => None,
            Function::Vf(n) => self.memory.get(usize::from(n)),
        };
        memory.and_then(|memory| memory.read(iova, into)).ok_or_else(|| self.fault(function, iova))
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        let memory = match function {
            Function::Pf => None,
            Function::Vf(n) => self.memory.get_mut(usize::from(n)),
        };
        match memory.and_then(|memory| memory.at(iova, from.len())) {
            Some(place) => {
                place.copy_from_slice(from);
                Ok(())
            }
            None => Err(self.fault(function, iova)),
        }
    }

    fn msix(&mut self, function: Function, vector: u16) {
        if let Function::Vf(n) = function {
            self.sent.push((n, vector));
        }
    }
}
