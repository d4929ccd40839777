//! Position in a packed ring: an index and a wrap counter (section 2.8.1), and their form in saved states and messages.

use crate::descriptor::flag;
use serde::{Deserialize, Serialize};

/// Bit of the wrap counter in the 16 bits of a position.
const WRAP: u16 = 1 << 15;

/// Position in a packed ring: the index of a descriptor in bits 14:0, and the wrap counter in bit 15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedPosition(u16);

impl PackedPosition {
    /// Position in a new ring: the first descriptor, and a wrap counter of 1.
    pub const START: Self = Self(WRAP);

    /// Decodes a position from 16 bits, as in an event suppression structure.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Returns the index in bits 14:0, and the wrap counter in bit 15.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Decodes the available position in vhost-user's ring base.
    ///
    /// The upper half is ignored: QEMU sends the used position there, DPDK's virtio-user sends nothing. A device that returns
    /// all chains before it stops has both positions at the same place.
    #[must_use]
    pub const fn from_vhost_base(base: u32) -> Self {
        Self(base as u16)
    }

    /// Returns vhost-user's ring base: the available position in the lower half, the used position, which is the same, in the
    /// upper one.
    #[must_use]
    pub const fn vhost_base(self) -> u32 {
        self.0 as u32 | (self.0 as u32) << 16
    }

    /// Returns the index of the position's descriptor.
    #[must_use]
    #[inline]
    pub const fn index(self) -> u16 {
        self.0 & !WRAP
    }

    /// Returns the wrap counter of the position.
    #[must_use]
    #[inline]
    pub const fn wrap(self) -> bool {
        self.0 & WRAP != 0
    }

    /// Returns the packed ring's position that is `slots`, at most a ring, further in a ring of `size` descriptors.
    #[must_use]
    #[inline]
    pub const fn after(self, slots: u16, size: u16) -> Self {
        // Both are at most 32768: the sum fits into 16 bits.
        let index = self.index() as u32 + slots as u32;
        let wrap = self.0 & WRAP;
        if index < size as u32 {
            Self(index as u16 | wrap)
        } else {
            Self((index - size as u32) as u16 | (wrap ^ WRAP))
        }
    }

    /// Returns the number of slots from this position to `end`, at most a ring further, in a ring of `size` descriptors.
    /// Returns `None` if there is no such distance.
    #[must_use]
    pub(super) const fn slots_to(self, end: Self, size: u16) -> Option<u16> {
        let turns = if self.wrap() == end.wrap() { 0 } else { size };
        match (end.index() + turns).checked_sub(self.index()) {
            Some(slots) if slots <= size => Some(slots),
            _ => None,
        }
    }

    /// Returns true if flags mark the descriptor at this position as available: AVAIL equals the wrap counter, USED does not
    /// (section 2.8.1).
    #[must_use]
    #[inline]
    pub const fn is_available(self, flags: u16) -> bool {
        flags & (flag::AVAIL | flag::USED) == if self.wrap() { flag::AVAIL } else { flag::USED }
    }

    /// Returns the flags that mark the descriptor at this position as available.
    #[must_use]
    #[inline]
    pub const fn available_flags(self) -> u16 {
        if self.wrap() { flag::AVAIL } else { flag::USED }
    }

    /// Returns the flags that mark the descriptor at this position as used: AVAIL and USED equal the wrap counter.
    #[must_use]
    #[inline]
    pub const fn used_flags(self) -> u16 {
        if self.wrap() { flag::AVAIL | flag::USED } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::PackedPosition;
    use crate::descriptor::flag;

    #[test]
    fn wrap_counter_changes_after_the_last_descriptor() {
        let last = PackedPosition::START.after(4, 5);
        assert_eq!((last.index(), last.wrap()), (4, true));
        let next = last.after(1, 5);
        assert_eq!((next.index(), next.wrap()), (0, false));
        assert_eq!(next.after(5, 5), PackedPosition::START);
        let largest = PackedPosition::START.after(32_767, 32_768);
        assert_eq!(largest.after(32_768, 32_768).bits(), 0x7fff);
    }

    #[test]
    fn packed_descriptor_flags_follow_the_wrap_counter() {
        let (first, second) = (PackedPosition::START, PackedPosition::from_bits(0));
        assert!(first.is_available(flag::AVAIL) && second.is_available(flag::USED | flag::NEXT));
        // A ring of zeros has nothing available, and neither has a used descriptor.
        for flags in [0, flag::AVAIL | flag::USED] {
            assert!(!first.is_available(flags) && !second.is_available(flags));
        }
        assert_eq!([first.used_flags(), second.used_flags()], [flag::AVAIL | flag::USED, 0]);
    }

    #[test]
    fn vhost_base_of_a_packed_ring_ignores_its_used_half() {
        // QEMU sends both halves, DPDK's virtio-user the lower one.
        for base in [0x8003_8005, 0x0000_8005] {
            assert_eq!(PackedPosition::from_vhost_base(base), PackedPosition::from_bits(0x8005));
        }
        assert_eq!(PackedPosition::START.vhost_base(), 0x8000_8000);
    }

    #[test]
    fn slots_between_packed_positions_lead_from_one_to_the_other() {
        for size in 1..=24_u16 {
            let positions =
                || (0..size).flat_map(|index| [index, index | 1 << 15]).map(PackedPosition::from_bits);
            for (from, end) in positions().flat_map(|from| positions().map(move |end| (from, end))) {
                let reached: std::vec::Vec<_> =
                    (0..=size).filter(|slots| from.after(*slots, size) == end).collect();
                assert_eq!(from.slots_to(end, size), reached.first().copied(), "{from:?} {end:?} {size}");
                assert!(reached.len() <= 1);
            }
        }
    }
}
