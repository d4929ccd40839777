//! Bus that reads the memory of one function and writes that of another apart, so that the time of each access is known.

use pcie::{Bus, DmaFault, Function, Iova};

/// Bus whose copies between functions are the default ones of [`Bus`]: a read and a write for each frame.
pub(super) struct SeparateAccess<'a, B>(pub(super) &'a mut B);

impl<B: Bus> Bus for SeparateAccess<'_, B> {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        self.0.dma_read(function, iova, into)
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        self.0.dma_write(function, iova, from)
    }

    fn msix(&mut self, function: Function, vector: u16) {
        self.0.msix(function, vector);
    }
}
