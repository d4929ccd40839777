//! Parameters of a ring that a transport starts.

use virtio::layout::RingAddresses;

/// Ring base of a new packed ring: both indices are 0, both wrap counters 1.
const PACKED_START: u32 = 0x8000_8000;

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
    /// Guest addresses of the parts of the ring.
    pub addresses: RingAddresses,
    /// Identity of the memory that holds the ring. A packed ring continues at its record's position only in the same
    /// memory.
    pub memory: u64,
}

impl RingStartParameters {
    /// Returns true if the ring begins at another position than a new one.
    pub(crate) fn continues_a_ring(&self) -> bool {
        let new = if self.packed { PACKED_START } else { 0 };
        self.position.is_some_and(|position| position != new)
    }
}
