//! Reasons why a ring cannot continue.

use crate::memory::MemoryFault;

/// Reason why a ring cannot continue. The device stops the ring until it is set up again, and touches nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// A part of the ring is not accessible.
    #[error("cannot access the ring: {0}")]
    Memory(#[from] MemoryFault),
    /// The available index is further ahead than the ring is long (section 2.7.13.3).
    #[error("the driver made {pending} chains available in a ring of {size}")]
    AvailableIndex {
        /// Chains between the device's position and the index.
        pending: u16,
        /// Number of entries of the ring.
        size: u16,
    },
    /// An entry of the available ring is no index of the descriptor table (section 2.7.6).
    #[error("the available ring has descriptor {head}, the table has {size}")]
    Head {
        /// Index in the available ring.
        head: u16,
        /// Number of descriptors of the table.
        size: u16,
    },
    /// A list of descriptors in a packed ring has no end, or covers descriptors that the device has not returned
    /// (section 2.8.17).
    #[error("a list of descriptors is longer than the {free} free slots of the packed ring")]
    EndlessList {
        /// Slots of the ring that the driver may use.
        free: u16,
    },
    /// The device returned more chains than it had fetched.
    #[error("{returned} ring entries were returned, {fetched} are fetched")]
    NotFetched {
        /// Entries that the device returned.
        returned: u32,
        /// Entries that the device has fetched and not returned.
        fetched: u16,
    },
}
