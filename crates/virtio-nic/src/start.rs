//! Parameters of a ring that a transport starts.

use virtio::layout::RingAddresses;

/// Parameters with which a transport starts a ring. Ring 2k receives and ring 2k + 1 transmits, for queue pair k.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingStartParameters {
    /// Number of the ring.
    pub ring: u32,
    /// Number of entries of the ring.
    pub size: u32,
    /// True if the ring is packed.
    pub packed: bool,
    /// True if the ring is enabled. A disabled ring delivers nothing, and the frames that the guest sends are dropped.
    pub enabled: bool,
    /// Position at which the ring begins, as vhost-user's ring base. `None` continues where the ring was paused.
    pub position: Option<u32>,
    /// True if the VMM says, by a record that its guest cannot write, that the ring has run on another card.
    pub has_run_elsewhere: bool,
    /// Guest addresses of the parts of the ring.
    pub addresses: RingAddresses,
    /// Identity of the memory that holds the ring. A packed ring continues at its record's position only in the same
    /// memory.
    pub memory: u64,
}
