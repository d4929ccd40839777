//! Describes a ring in messages: its addresses, its position, and the eventfds that accompany messages.

/// Addresses of a ring in the front end's process, as `SET_VRING_ADDR` states them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingAddresses {
    /// Number of the ring: 2k receives and 2k + 1 transmits, for queue pair k.
    pub ring: u32,
    /// True if writes to the used ring are logged (`VHOST_VRING_F_LOG`).
    pub logged: bool,
    /// User address of the descriptor table, or of a packed ring's descriptors.
    pub descriptors: u64,
    /// User address of the used ring, or of a packed ring's device area.
    pub used: u64,
    /// User address of the available ring, or of a packed ring's driver area.
    pub available: u64,
    /// Guest address at which writes to the used ring are logged.
    pub log: u64,
}

/// Parameters of a request that sets an eventfd of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingEventfdMessage {
    /// Number of the ring (0-255) that gets an eventfd.
    pub ring: u32,
    /// True if an eventfd is attached to the message; without one, the ring is polled.
    pub attached: bool,
}

/// Index of a slot in a packed ring, with the wrap counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedIndex {
    /// Slot of the ring, below the ring's size.
    pub index: u16,
    /// Wrap counter of the packed ring at that index.
    pub wrap: bool,
}

impl PackedIndex {
    /// Position of a ring that was never used.
    const FIRST: Self = Self { index: 0, wrap: true };

    fn from_bits(bits: u16) -> Self {
        Self { index: bits & 0x7fff, wrap: bits & 0x8000 != 0 }
    }

    fn to_bits(self) -> u16 {
        self.index & 0x7fff | if self.wrap { 0x8000 } else { 0 }
    }
}

/// Position of a ring: the next descriptor that the back end takes, and the next that it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingBase {
    /// Position of a split ring.
    Split {
        /// Index of the next entry of the available ring. The used ring's index is in guest memory.
        available: u16,
    },
    /// Position of a packed ring.
    Packed {
        /// Position of the next descriptor that the back end takes.
        available: PackedIndex,
        /// Position of the next slot in which the back end returns a descriptor.
        used: PackedIndex,
    },
}

impl RingBase {
    /// Returns the position of a ring that was never used.
    #[must_use]
    pub fn first(packed: bool) -> Self {
        if packed {
            Self::Packed { available: PackedIndex::FIRST, used: PackedIndex::FIRST }
        } else {
            Self::Split { available: 0 }
        }
    }

    /// Decodes a ring's position from the number in `SET_VRING_BASE`.
    ///
    /// For a packed ring QEMU sends both positions in 32 bits. DPDK's virtio-user sends only the lower 16, for a ring
    /// without unfinished descriptors: then both positions are equal. (QEMU's number may have an empty upper half too,
    /// at slot 0 in every other round. The two are then equal as well, since a back end that is asked for its position
    /// finishes its descriptors first.)
    #[must_use]
    pub fn from_wire(number: u32, packed: bool) -> Self {
        let (lower, upper) = (number as u16, (number >> 16) as u16);
        if packed {
            let used = if upper == 0 { lower } else { upper };
            Self::Packed { available: PackedIndex::from_bits(lower), used: PackedIndex::from_bits(used) }
        } else {
            Self::Split { available: lower }
        }
    }

    /// Encodes the ring's position for `SET_VRING_BASE` and the reply to `GET_VRING_BASE`.
    #[must_use]
    pub fn to_wire(self) -> u32 {
        match self {
            Self::Split { available } => u32::from(available),
            Self::Packed { available, used } => {
                u32::from(used.to_bits()) << 16 | u32::from(available.to_bits())
            }
        }
    }

    /// Returns true if the position is inside a ring of `size` descriptors. Indexes of a split ring run freely.
    pub(crate) fn is_inside(self, size: u32) -> bool {
        match self {
            Self::Split { .. } => true,
            Self::Packed { available, used } => {
                u32::from(available.index) < size && u32::from(used.index) < size
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_base_of_32_bits_has_two_packed_positions() {
        let base = RingBase::from_wire(0x8005_0007, true);
        let available = PackedIndex { index: 7, wrap: false };
        assert_eq!(base, RingBase::Packed { available, used: PackedIndex { index: 5, wrap: true } });
        assert_eq!(base.to_wire(), 0x8005_0007);
    }

    #[test]
    fn ring_base_of_16_bits_sets_both_packed_positions() {
        let position = PackedIndex { index: 9, wrap: true };
        let base = RingBase::Packed { available: position, used: position };
        assert_eq!(RingBase::from_wire(0x8009, true), base);
    }

    #[test]
    fn initial_ring_base_is_0_if_split_and_0x80008000_if_packed() {
        assert_eq!(RingBase::first(true).to_wire(), 0x8000_8000);
        assert_eq!(RingBase::first(false).to_wire(), 0);
    }
}
