//! Models drivers that follow the standard: they make chains available, and collect used chains.

use crate::memory::GuestMemory;

mod packed;
mod split;

pub(crate) use packed::PackedDriver;
pub(crate) use split::SplitDriver;

/// Buffer of a chain: address, length, and true if the device writes it.
pub(crate) type Buffer = (u64, u32, bool);

/// Chain that a model driver made available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentChain {
    /// Number by which a test identifies the chain.
    pub(crate) token: u32,
    pub(crate) buffers: Vec<Buffer>,
    /// Number of ring entries that the chain occupies.
    pub(crate) slots: u16,
}

impl SentChain {
    /// Returns the number of the chain's bytes that the device may write.
    pub(crate) fn writable(&self) -> u32 {
        self.buffers.iter().filter(|buffer| buffer.2).map(|buffer| buffer.1).sum()
    }
}

/// Model driver of a split or packed ring.
pub(crate) enum EitherDriver {
    Split(SplitDriver),
    Packed(PackedDriver),
}

impl EitherDriver {
    pub(crate) fn new(is_packed: bool, size: u16, in_order: bool) -> Self {
        if is_packed {
            Self::Packed(PackedDriver::new(size, in_order))
        } else {
            Self::Split(SplitDriver::new(size, in_order))
        }
    }

    pub(crate) fn add(
        &mut self,
        memory: &mut GuestMemory,
        token: u32,
        buffers: &[Buffer],
        indirect: bool,
    ) -> bool {
        match self {
            Self::Split(driver) => driver.add(memory, token, buffers, indirect),
            Self::Packed(driver) => driver.add(memory, token, buffers, indirect),
        }
    }

    pub(crate) fn publish(&mut self, memory: &mut GuestMemory) {
        match self {
            Self::Split(driver) => driver.publish(memory),
            Self::Packed(driver) => driver.publish(memory),
        }
    }

    pub(crate) fn collect(&mut self, memory: &mut GuestMemory) -> Vec<(SentChain, u32)> {
        match self {
            Self::Split(driver) => driver.collect(memory),
            Self::Packed(driver) => driver.collect(memory),
        }
    }
}
