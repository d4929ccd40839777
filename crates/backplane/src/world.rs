//! Environment of the card: each function's memory, the recorded interrupts, and the wire. A function's addresses are
//! translated only by subtracting the base of its memory.

use driver::{DmaAllocation, OutOfDmaMemory};
use nic::UplinkWire;
use pcie::{Bus, DmaFault, Function, Iova};
use std::collections::VecDeque;

/// First address of a function's memory: not zero, so that an access to address zero is a fault.
const BASE: Iova = 0x10_0000;
/// Size of a function's memory in bytes.
const SIZE: usize = 8 << 20;

/// Memory of one function of the card. Only the allocated part of the memory is mapped.
#[derive(Debug, Default)]
pub struct FunctionDmaMemory {
    bytes: Vec<u8>,
}

impl FunctionDmaMemory {
    /// Allocates and maps zeroed memory for the function.
    ///
    /// # Errors
    /// [`OutOfDmaMemory`].
    pub fn allocate(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        let start = self.bytes.len().next_multiple_of(align.max(1));
        let end = start.checked_add(length).filter(|end| *end <= SIZE).ok_or(OutOfDmaMemory(length))?;
        self.bytes.resize(end, 0);
        Ok(DmaAllocation { iova: BASE + start as u64, length })
    }

    /// Returns the bytes at an address of the function's memory, or `None` unless all of them are mapped.
    #[must_use]
    pub fn get(&self, iova: Iova, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(iova.checked_sub(BASE)?).ok()?;
        self.bytes.get(start..start.checked_add(length)?)
    }

    /// Returns the bytes at an address for writing, as [`FunctionDmaMemory::get`] does for reading.
    pub fn get_mut(&mut self, iova: Iova, length: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(iova.checked_sub(BASE)?).ok()?;
        self.bytes.get_mut(start..start.checked_add(length)?)
    }
}

/// Bus with the memory and the recorded interrupts of the PF (index 0) and eight VFs.
#[derive(Debug)]
pub(crate) struct RecordingBus {
    memory: Vec<FunctionDmaMemory>,
    interrupts: Vec<Vec<u16>>,
    faults: Vec<u64>,
}

/// Wire to and from the card: two queues of frames.
#[derive(Debug, Default)]
pub(crate) struct FrameQueueWire {
    incoming: VecDeque<Vec<u8>>,
    outgoing: Vec<Vec<u8>>,
}

/// Environment of the card: memory of its functions, recorded interrupts, and the wire.
#[derive(Debug)]
pub struct CardEnvironment {
    pub(crate) bus: RecordingBus,
    pub(crate) wire: FrameQueueWire,
}

fn index(function: Function) -> usize {
    match function {
        Function::Pf => 0,
        Function::Vf(n) => usize::from(n & 7) + 1,
    }
}

impl CardEnvironment {
    pub(crate) fn new() -> Self {
        let functions = i82576::ids::MAX_VFS + 1;
        let memory = (0..functions).map(|_| FunctionDmaMemory::default()).collect();
        let bus =
            RecordingBus { memory, interrupts: vec![Vec::new(); functions], faults: vec![0; functions] };
        Self { bus, wire: FrameQueueWire::default() }
    }

    /// Returns a function's memory.
    pub fn memory(&mut self, function: Function) -> &mut FunctionDmaMemory {
        &mut self.bus.memory[index(function)]
    }

    pub(crate) fn memory_of(&self, function: Function) -> &FunctionDmaMemory {
        &self.bus.memory[index(function)]
    }

    /// Returns the interrupt vectors of the MSI-X messages that a function has sent since the last call, in order.
    pub fn take_interrupts(&mut self, function: Function) -> Vec<u16> {
        core::mem::take(&mut self.bus.interrupts[index(function)])
    }

    /// Returns the number of refused memory requests of a function so far.
    #[must_use]
    pub fn faults(&self, function: Function) -> u64 {
        self.bus.faults[index(function)]
    }

    /// Puts a frame on the wire towards the card.
    pub fn send(&mut self, frame: &[u8]) {
        self.wire.incoming.push_back(frame.to_vec());
    }

    /// Returns the frames that the card has put on the wire since the last call.
    pub fn take_frames(&mut self) -> Vec<Vec<u8>> {
        core::mem::take(&mut self.wire.outgoing)
    }
}

impl Bus for RecordingBus {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        match self.memory[index(function)].get(iova, into.len()) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                Ok(())
            }
            None => {
                self.faults[index(function)] += 1;
                Err(DmaFault { function, iova })
            }
        }
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        match self.memory[index(function)].get_mut(iova, from.len()) {
            Some(bytes) => {
                bytes.copy_from_slice(from);
                Ok(())
            }
            None => {
                self.faults[index(function)] += 1;
                Err(DmaFault { function, iova })
            }
        }
    }

    fn msix(&mut self, function: Function, vector: u16) {
        self.interrupts[index(function)].push(vector);
    }
}

impl UplinkWire for FrameQueueWire {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.outgoing.push(frame.to_vec());
        true
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        let frame = self.incoming.pop_front()?;
        into.get_mut(..frame.len())?.copy_from_slice(&frame);
        Some(frame.len())
    }
}
