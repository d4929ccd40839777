//! The card's surroundings in the tests: a block of memory for each function, a log of memory requests and messages,
//! and a wire of two lists of frames. No memory is mapped around the blocks.

use i82576::ids::{FCS, MAX_FRAME};
use nic::{UnsegmentedPacketLayout, UplinkWire};
use offload::uncut;
use pcie::{Bus, DmaFault, Function, Iova};
use std::collections::VecDeque;

/// Bus address at which each function's memory starts.
pub(crate) const BASE: Iova = 0x1_0000;
/// Size of each function's memory, bytes.
pub(crate) const SIZE: usize = 2 << 20;

/// A memory request of the card, and its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MemoryRequest {
    pub(crate) function: Function,
    pub(crate) write: bool,
    pub(crate) iova: Iova,
    pub(crate) length: usize,
    pub(crate) fault: bool,
}

/// Bus of the tests: the functions' memory, and a log of the card's memory requests, messages and pin changes.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct TestBus {
    memory: Vec<(Function, Vec<u8>)>,
    pub(crate) log: Vec<MemoryRequest>,
    pub(crate) msix: Vec<(Function, u16)>,
    /// Functions in whose name an MSI message was sent, in order.
    pub(crate) msi: Vec<Function>,
    /// Changes of the PF's interrupt pin, in order; true is raised.
    pub(crate) pin: Vec<bool>,
}

/// Uplink in memory: a queue of frames that the card receives, and a list of frames that the card has sent.
#[derive(Clone, Default)]
pub(crate) struct InMemoryUplinkWire {
    pub(crate) incoming: VecDeque<Vec<u8>>,
    pub(crate) outgoing: Vec<Vec<u8>>,
    /// True if the wire takes unsegmented packets, and segments them as Linux does.
    pub(crate) cuts: bool,
    /// Number of unsegmented packets that the wire has taken.
    pub(crate) uncut: usize,
}

/// Surroundings of the card: its bus and its wire.
#[derive(Clone)]
pub(crate) struct CardSurroundings {
    pub(crate) bus: TestBus,
    pub(crate) wire: InMemoryUplinkWire,
}

impl CardSurroundings {
    pub(crate) fn new() -> Self {
        Self { bus: TestBus::default(), wire: InMemoryUplinkWire::default() }
    }
}

impl TestBus {
    /// Returns a function's memory, which starts at [`BASE`].
    pub(crate) fn memory(&mut self, function: Function) -> &mut [u8] {
        let at = self.memory.iter().position(|(owner, _)| *owner == function).unwrap_or_else(|| {
            self.memory.push((function, vec![0; SIZE]));
            self.memory.len() - 1
        });
        &mut self.memory[at].1
    }

    /// Returns bytes of a function's memory, or `None` if the range exceeds it.
    pub(crate) fn range(&mut self, function: Function, iova: Iova, length: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(iova.checked_sub(BASE)?).ok()?;
        self.memory(function).get_mut(start..start.checked_add(length)?)
    }

    fn note(&mut self, function: Function, write: bool, iova: Iova, length: usize) -> Result<(), DmaFault> {
        let fault = self.range(function, iova, length).is_none();
        self.log.push(MemoryRequest { function, write, iova, length, fault });
        if fault { Err(DmaFault { function, iova }) } else { Ok(()) }
    }
}

impl Bus for TestBus {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        self.note(function, false, iova, into.len())?;
        if let Some(bytes) = self.range(function, iova, into.len()) {
            into.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        self.note(function, true, iova, from.len())?;
        if let Some(bytes) = self.range(function, iova, from.len()) {
            bytes.copy_from_slice(from);
        }
        Ok(())
    }

    fn msix(&mut self, function: Function, vector: u16) {
        self.msix.push((function, vector));
    }

    fn msi(&mut self, function: Function) {
        self.msi.push(function);
    }

    fn intx(&mut self, function: Function, raised: bool) {
        assert_eq!(function, Function::Pf, "a VF has no pin");
        self.pin.push(raised);
    }
}

impl UplinkWire for InMemoryUplinkWire {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.outgoing.push(frame.to_vec());
        true
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        let frame = self.incoming.pop_front()?;
        let length = frame.len().min(into.len());
        into[..length].copy_from_slice(&frame[..length]);
        Some(length)
    }

    fn takes_uncut(&self) -> bool {
        self.cuts
    }

    fn transmit_uncut(&mut self, packet: &[u8], whole: &UnsegmentedPacketLayout) -> bool {
        let mut packet = packet.to_vec();
        let arrived = uncut::arrived(&mut packet, whole.ipv4, whole.mss, MAX_FRAME - FCS);
        assert_eq!(arrived, Some(*whole), "the description matches the packet's headers");
        let mut segments = uncut::segments(whole, &packet).unwrap();
        let mut place = vec![0; segments.longest()];
        while let Some(length) = segments.write_next(&mut place) {
            let mut frame = place[..length].to_vec();
            frame.resize(length.max(60 + whole.l3 - 14), 0);
            self.outgoing.push(frame);
        }
        self.uncut += 1;
        true
    }
}
