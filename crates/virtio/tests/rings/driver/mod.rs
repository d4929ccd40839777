//! Model drivers, which follow the standard: they make chains available, and collect used ones.

mod packed;
mod split;

pub(crate) use packed::PackedDriver;
pub(crate) use split::SplitDriver;

/// Buffer of a chain: address, length, and true if the device writes it.
pub(crate) type Buffer = (u64, u32, bool);

/// Chain that a driver made available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentChain {
    /// Number by which a test knows the chain.
    pub(crate) token: u32,
    pub(crate) buffers: Vec<Buffer>,
    /// Ring entries that the chain occupies.
    pub(crate) slots: u16,
}

impl SentChain {
    /// Returns the number of bytes that the device may write.
    pub(crate) fn writable(&self) -> u32 {
        self.buffers.iter().filter(|buffer| buffer.2).map(|buffer| buffer.1).sum()
    }
}
