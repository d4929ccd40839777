//! The bus of a live card: each function's memory and interrupts are what its VMM has handed over, and nothing
//! else can be reached in its name. A PF that the host drives has neither.

use host::dma::{DmaLimits, DmaTable};
use host::eventfd::EventFd;
use i82576::config::pf;
use i82576::ids::{MAX_VFS, VF_VECTORS};
use pcie::{Bus, DmaFault, Function, Iova};

/// What one function reaches.
#[derive(Debug)]
pub(super) struct Reach {
    pub(super) memory: DmaTable,
    /// The eventfd of each MSI-X vector that has one.
    pub(super) vectors: Box<[Option<EventFd>]>,
    /// Interrupts sent.
    pub(super) interrupts: u64,
}

/// The bus: a [`Reach`] a function.
#[derive(Debug)]
pub(super) struct LiveBus {
    pf: Reach,
    vfs: [Reach; MAX_VFS],
}

/// A burst of descriptors is passed on in pieces of which each becomes visible word by word, so that a
/// driver that sees a descriptor done sees all of it.
const ORDERED: usize = 64;
/// Longest burst of descriptors.
const BURST: usize = nic::queue::BURST * i82576::descriptor::SIZE;

impl LiveBus {
    pub(super) fn new() -> Self {
        let reach = |vectors| Reach {
            memory: DmaTable::new(DmaLimits::default()),
            vectors: std::iter::repeat_with(|| None).take(vectors).collect(),
            interrupts: 0,
        };
        Self { pf: reach(pf::VECTORS.into()), vfs: std::array::from_fn(|_| reach(VF_VECTORS)) }
    }

    /// What a function reaches. There are no functions beyond the last VF.
    pub(super) fn reach(&mut self, function: Function) -> &mut Reach {
        match function {
            Function::Pf => &mut self.pf,
            Function::Vf(n) => &mut self.vfs[usize::from(n) % MAX_VFS],
        }
    }

    fn memory(&self, function: Function) -> &DmaTable {
        match function {
            Function::Pf => &self.pf.memory,
            Function::Vf(n) => &self.vfs[usize::from(n) % MAX_VFS].memory,
        }
    }
}

impl Bus for LiveBus {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        let read = self.memory(function).read(iova, into);
        read.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        let memory = self.memory(function);
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
        let reach = self.reach(function);
        if let Some(Some(eventfd)) = reach.vectors.get(usize::from(vector)) {
            eventfd.signal();
            reach.interrupts += 1;
        }
    }
}
