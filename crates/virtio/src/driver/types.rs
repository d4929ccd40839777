//! Values that pass between a driver and its ring: buffers, returned chains, requests and errors.

use crate::memory::MemoryFault;

/// Maximum number of used entries that a driver reads at once.
pub(super) const USED_BURST: usize = 32;

/// Buffer of a chain, as the driver makes it available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverBuffer {
    /// Guest address of the driver's buffer.
    pub address: u64,
    /// Length of the driver's buffer in bytes.
    pub length: u32,
    /// True if the device writes the driver's buffer; false if the device reads it.
    pub writable: bool,
}

/// Chain that the device has returned to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReturnedChain {
    /// Id of the returned chain, which the driver may use again.
    pub id: u16,
    /// Number of bytes that the device has written into the chain's buffers.
    pub written: u32,
}

/// Interrupts that a driver requests from its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptRequest {
    /// The driver polls, and requests no interrupts.
    None,
    /// The driver requests an interrupt for the next returned chains.
    Next,
    /// The driver requests an interrupt when the device has returned this number of further chains, and one more
    /// (of a packed ring: descriptors). Without event indexes this is a request for the next chains.
    After(u16),
}

/// Error after which a driver cannot continue its ring: the ring is not in memory, or the device is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DriverRingError {
    /// A part of the driver's ring is not in memory.
    #[error("cannot access the ring: {0}")]
    Memory(#[from] MemoryFault),
    /// The device has returned more chains than it had.
    #[error("the device returned {returned} chains, but has only {outstanding}")]
    UsedIndex {
        /// Number of chains that the used index returns.
        returned: u16,
        /// Number of chains that the device has.
        outstanding: u16,
    },
    /// The device has returned a chain that it did not have.
    #[error("the device returned chain {id}, which it does not have")]
    UnknownChain {
        /// Id of the chain that the device returned.
        id: u32,
    },
}

/// Chain that a used entry of a ring names. In order, it stands for all chains up to this one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UsedEntry {
    pub(super) id: u16,
    pub(super) written: u32,
}
