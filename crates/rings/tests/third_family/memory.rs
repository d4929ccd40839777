//! Guest memory of the toy card's ports, in two windows with unmapped addresses between them.

use pcie::burst::HEAD;
use pcie::{Bus, DmaFault, Function, HintedMemory, Iova};

/// Number of descriptors in a ring of the toy card.
pub(crate) const SLOTS: u32 = 48;
/// Addresses of the toy card's transmit ring and receive ring.
pub(crate) const RINGS: [Iova; 2] = [0, 0x400];
/// Address of sent frames in the memory of a toy card's port.
pub(crate) const SENT: Iova = 0x10_0000;
/// Address of the receive buffers in the memory of a toy card's port.
pub(crate) const BUFFERS: Iova = 0x12_0000;
/// Size of a receive buffer of the toy card in bytes.
pub(crate) const BUFFER: u64 = 2048;

/// Bit of a descriptor's second word in the toy card: the descriptor describes a plain frame.
pub(crate) const PLAIN: u64 = 1 << 63;
/// Bit of a descriptor's second word in the toy card: the driver requests a report.
pub(crate) const REPORT: u64 = 1 << 62;
/// Bit of a descriptor's second word in the toy card: the descriptor is finished.
pub(crate) const DONE: u64 = 1 << 61;

/// Memory of the toy card's ports: rings, and all buffers.
pub(crate) struct ToyMemory {
    windows: Vec<[Vec<u8>; 2]>,
    /// Number of frames whose first bytes were gathered.
    pub(crate) gathered: usize,
}

impl ToyMemory {
    pub(crate) fn new(ports: usize) -> Self {
        Self { windows: vec![[vec![0; 0x1000], vec![0; 0x4_0000]]; ports], gathered: 0 }
    }

    /// Returns the first byte that differs from `other`'s memory: its port, window and offset.
    pub(crate) fn difference(&self, other: &Self) -> Option<(usize, usize, usize)> {
        let windows = self.windows.iter().zip(&other.windows).enumerate();
        let mut pairs =
            windows.flat_map(|(port, (one, two))| (0..2).map(move |n| (port, n, &one[n], &two[n])));
        pairs.find_map(|(port, n, one, two)| {
            Some((port, n, one.iter().zip(two).position(|(one, two)| one != two)?))
        })
    }

    pub(crate) fn range(
        &mut self,
        function: Function,
        iova: Iova,
        length: usize,
    ) -> Result<&mut [u8], DmaFault> {
        let fault = DmaFault { function, iova };
        let Function::Vf(n) = function else { return Err(fault) };
        let windows = self.windows.get_mut(usize::from(n)).ok_or(fault)?;
        let (window, start) = if iova < SENT { (0, iova) } else { (1, iova - SENT) };
        windows[window].get_mut(start as usize..start as usize + length).ok_or(fault)
    }
}

impl Bus for ToyMemory {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        into.copy_from_slice(self.range(function, iova, into.len())?);
        Ok(())
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        self.range(function, iova, from.len())?.copy_from_slice(from);
        Ok(())
    }

    fn gather(
        &mut self,
        from: HintedMemory<'_>,
        sources: &[Iova],
        lengths: &[u32],
        heads: &mut [[u8; HEAD]],
    ) -> usize {
        let frames = sources.iter().zip(lengths).zip(heads);
        let found = frames.map_while(|((source, length), head)| {
            let frame = self.range(from.function, *source, *length as usize).ok()?;
            *head = [0; HEAD];
            let within = frame.len().min(HEAD);
            head[..within].copy_from_slice(&frame[..within]);
            Some(())
        });
        let count = found.count();
        self.gathered += count;
        count
    }

    fn msix(&mut self, _function: Function, _vector: u16) {}
}
