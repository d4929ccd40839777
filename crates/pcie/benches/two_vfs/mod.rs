//! VF 0 and VF 1 as the benchmarks of both cards have them: flat memory, addresses, and a frame between them. Left out: the
//! cards, their rings and what is beyond them.

use pcie::Function::{self, Vf};
use pcie::{Bus, DmaFault, Iova};

/// Bytes that each has.
const LENGTH: usize = 0x4_0000;

/// The memory of each.
pub(crate) struct Memory(pub(crate) [Vec<u8>; 2]);

impl Memory {
    pub(crate) fn new() -> Self {
        Self([vec![0; LENGTH], vec![0; LENGTH]])
    }

    fn of(&mut self, function: Function, iova: Iova, length: usize) -> Result<&mut [u8], DmaFault> {
        let Vf(n @ 0..2) = function else { return Err(DmaFault { function, iova }) };
        let at = iova as usize;
        self.0[usize::from(n)].get_mut(at..at + length).ok_or(DmaFault { function, iova })
    }
}

impl Bus for Memory {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        into.copy_from_slice(self.of(function, iova, into.len())?);
        Ok(())
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        self.of(function, iova, from.len())?.copy_from_slice(from);
        Ok(())
    }

    fn msix(&mut self, _function: Function, _vector: u16) {}
}

/// The address of VF `n`, or of somebody else.
pub(crate) const fn address(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

/// TCP over IPv4 with the seed of the pseudo header in its checksum field.
pub(crate) fn frame(to: u8, from: u8, length: usize) -> Vec<u8> {
    let mut frame = [address(to), address(from)].concat();
    let total = (length - 14) as u16;
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([3, 232, 7, 208, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    let seed = 0x0a00 + 1 + 0x0a00 + 2 + 6 + (total - 20);
    frame[50..52].copy_from_slice(&seed.to_be_bytes());
    frame.resize(length, 0x5a);
    frame
}
