//! Errors after which a device stops a ring.

use crate::memory::MemoryFault;

/// Error after which a ring cannot continue. The device stops the ring, and accesses no part of it until the ring is
/// set up again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// A part of the ring is not accessible in the guest's memory.
    #[error("cannot access the ring: {0}")]
    Memory(#[from] MemoryFault),
    /// The available index is further ahead than the ring is long (section 2.7.13.3).
    #[error("the driver made {pending} chains available in a ring of {size} entries")]
    AvailableIndex {
        /// Number of chains between the device's position and the available index.
        pending: u16,
        /// Number of entries of the ring whose index is invalid.
        size: u16,
    },
    /// An entry of the available ring is no index of the descriptor table (section 2.7.6).
    #[error("the available ring names descriptor {head}, but the table has {size} descriptors")]
    Head {
        /// Invalid index in the available ring.
        head: u16,
        /// Number of descriptors of the ring's table.
        size: u16,
    },
    /// A list of descriptors in a packed ring has no end, or covers descriptors that the device has not returned
    /// (section 2.8.17).
    #[error("a list of ring descriptors is longer than the {free} free slots of the packed ring")]
    EndlessList {
        /// Number of slots of the ring that the driver may use.
        free: u16,
    },
    /// The device returned more chains than it had fetched.
    #[error("the device returned {returned} ring entries, but has fetched only {fetched}")]
    NotFetched {
        /// Number of entries that the device returned.
        returned: u32,
        /// Number of entries that the device has fetched and not returned.
        fetched: u16,
    },
    /// The device returned more chains of a packed ring at once than the ring's record has room for.
    #[error("the device returned {returned} chains at once; a packed ring's record has room for {most}")]
    TooManyReturned {
        /// Number of chains that the device returned at once.
        returned: usize,
        /// Number of chains that the record has room for.
        most: usize,
    },
}
