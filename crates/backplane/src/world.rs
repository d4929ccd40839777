//! What surrounds the card: each function's memory, the interrupts that arrived, and the wire.
//! Left out: address translation beyond a function's own memory.

use driver::{DmaRegion, OutOfDmaMemory};
use nic::Wire;
use pcie::{Bus, DmaFault, Function, Iova};
use std::collections::VecDeque;

/// Where a function's memory begins: an address of zero is a fault.
const BASE: Iova = 0x10_0000;
/// Bytes of a function's memory.
const SIZE: usize = 8 << 20;

/// A function's memory: what is allocated is mapped, and nothing else.
#[derive(Debug, Default)]
pub struct Memory {
    bytes: Vec<u8>,
}

impl Memory {
    /// Maps zeroed memory for the function.
    ///
    /// # Errors
    /// [`OutOfDmaMemory`].
    pub fn allocate(&mut self, length: usize, align: usize) -> Result<DmaRegion, OutOfDmaMemory> {
        let start = self.bytes.len().next_multiple_of(align.max(1));
        let end = start.checked_add(length).filter(|end| *end <= SIZE).ok_or(OutOfDmaMemory(length))?;
        self.bytes.resize(end, 0);
        Ok(DmaRegion { iova: BASE + start as u64, length })
    }

    /// The bytes at an address, if all of them are mapped.
    #[must_use]
    pub fn get(&self, iova: Iova, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(iova.checked_sub(BASE)?).ok()?;
        self.bytes.get(start..start.checked_add(length)?)
    }

    /// As [`Memory::get`], to write.
    pub fn get_mut(&mut self, iova: Iova, length: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(iova.checked_sub(BASE)?).ok()?;
        self.bytes.get_mut(start..start.checked_add(length)?)
    }
}

/// A bus with the PF (index 0) and eight VFs on it.
#[derive(Debug)]
pub(crate) struct RecordingBus {
    memory: Vec<Memory>,
    interrupts: Vec<Vec<u16>>,
    faults: Vec<u64>,
}

/// Two queues of frames.
#[derive(Debug, Default)]
pub(crate) struct QueueWire {
    incoming: VecDeque<Vec<u8>>,
    outgoing: Vec<Vec<u8>>,
}

/// Everything around the card.
#[derive(Debug)]
pub struct World {
    pub(crate) bus: RecordingBus,
    pub(crate) wire: QueueWire,
}

fn index(function: Function) -> usize {
    match function {
        Function::Pf => 0,
        Function::Vf(n) => usize::from(n & 7) + 1,
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let functions = i82576::ids::MAX_VFS + 1;
        let memory = (0..functions).map(|_| Memory::default()).collect();
        let bus =
            RecordingBus { memory, interrupts: vec![Vec::new(); functions], faults: vec![0; functions] };
        Self { bus, wire: QueueWire::default() }
    }

    /// A function's memory.
    pub fn memory(&mut self, function: Function) -> &mut Memory {
        &mut self.bus.memory[index(function)]
    }

    pub(crate) fn memory_of(&self, function: Function) -> &Memory {
        &self.bus.memory[index(function)]
    }

    /// Vectors of the messages a function has sent since the last call, in order.
    pub fn take_interrupts(&mut self, function: Function) -> Vec<u16> {
        core::mem::take(&mut self.bus.interrupts[index(function)])
    }

    /// Refused memory requests of a function so far.
    #[must_use]
    pub fn faults(&self, function: Function) -> u64 {
        self.bus.faults[index(function)]
    }

    /// Puts a frame on the wire towards the card.
    pub fn send(&mut self, frame: &[u8]) {
        self.wire.incoming.push_back(frame.to_vec());
    }

    /// The frames that the card has put on the wire since the last call.
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

impl Wire for QueueWire {
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
