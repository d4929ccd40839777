//! The bus of a live card: each VF's memory and interrupts are what its VMM has handed over, and nothing else
//! can be reached in its name. The PF has neither.

use host::dma::{DmaLimits, DmaTable};
use host::eventfd::EventFd;
use i82576::ids::{MAX_VFS, VF_VECTORS};
use pcie::{Bus, DmaFault, Function, Iova};

/// What one VF reaches.
#[derive(Debug)]
pub(super) struct Reach {
    pub(super) memory: DmaTable,
    pub(super) vectors: [Option<EventFd>; VF_VECTORS],
    /// Interrupts sent.
    pub(super) interrupts: u64,
}

/// The bus: a [`Reach`] a VF.
#[derive(Debug)]
pub(super) struct LiveBus {
    vfs: [Reach; MAX_VFS],
}

/// A burst of descriptors is passed on in pieces of which each becomes visible word by word, so that a
/// driver that sees a descriptor done sees all of it.
const ORDERED: usize = 64;
/// Longest burst of descriptors.
const BURST: usize = nic::queue::BURST * i82576::descriptor::SIZE;

impl LiveBus {
    pub(super) fn new() -> Self {
        let reach = |_| Reach {
            memory: DmaTable::new(DmaLimits::default()),
            vectors: [const { None }; VF_VECTORS],
            interrupts: 0,
        };
        Self { vfs: std::array::from_fn(reach) }
    }

    pub(super) fn vf(&mut self, index: i82576::VfIndex) -> &mut Reach {
        &mut self.vfs[index.index()]
    }

    fn memory(&self, function: Function, iova: Iova) -> Result<&DmaTable, DmaFault> {
        match function {
            Function::Pf => None,
            Function::Vf(n) => self.vfs.get(usize::from(n)).map(|reach| &reach.memory),
        }
        .ok_or(DmaFault { function, iova })
    }
}

impl Bus for LiveBus {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        let read = self.memory(function, iova)?.read(iova, into);
        read.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        let memory = self.memory(function, iova)?;
        let descriptors = from.len() <= BURST && from.len().is_multiple_of(i82576::descriptor::SIZE);
        let piece = if descriptors { ORDERED } else { from.len().max(1) };
        let mut at = iova;
        for part in from.chunks(piece) {
            memory.write(at, part).map_err(|fault| DmaFault { function, iova: fault.iova })?;
            at = at.wrapping_add(part.len() as u64);
        }
        Ok(())
    }

    fn msix(&mut self, function: Function, vector: u16) {
        let Function::Vf(n) = function else { return };
        let Some(reach) = self.vfs.get_mut(usize::from(n)) else { return };
        if let Some(Some(eventfd)) = reach.vectors.get(usize::from(vector)) {
            eventfd.signal();
            reach.interrupts += 1;
        }
    }
}
