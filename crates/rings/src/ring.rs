//! A valid ring of descriptors, and the arithmetic of its indices. The card keeps the head with the descriptors that it
//! has not written back.

use pcie::Iova;
use pcie::low::low_dword;

/// A ring of descriptors whose tail is within the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    base: Iova,
    count: u32,
    /// Size of the ring's descriptors in bytes.
    size: u32,
    tail: u32,
}

impl Ring {
    /// Creates a ring of `count` descriptors of `size` bytes each. Returns `None` if the tail is beyond the ring. The
    /// tail is the first descriptor that is not the card's.
    #[must_use]
    #[inline]
    pub fn new(base: Iova, count: u32, size: usize, tail: u32) -> Option<Self> {
        (tail < count).then_some(Self { base, count, size: low_dword(size as u64), tail })
    }

    /// Returns the size of the ring's descriptors in bytes.
    #[must_use]
    #[inline]
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// Returns the number of descriptors from index `from` up to the tail.
    #[must_use]
    #[inline]
    pub fn available(&self, from: u32) -> u32 {
        if self.tail >= from { self.tail - from } else { self.count - from + self.tail }
    }

    /// Returns the maximum number of descriptors that the card can have: a full ring would look like an empty one.
    #[must_use]
    #[inline]
    pub fn most(&self) -> u32 {
        self.count - 1
    }

    /// Returns the number of receive descriptors that broadcasts and multicasts of other ports leave free
    /// ([`plane::DeliveryFlags::leave_room`]): an eighth of the ring, and at most 8, since some drivers post 16 buffers in a
    /// ring of 512.
    #[must_use]
    pub fn reserve(&self) -> u32 {
        (self.most() / 8).min(8)
    }

    /// Returns the ring index that is `steps` (at most a ring) after `from`.
    #[must_use]
    #[inline]
    pub fn advance(&self, from: u32, steps: u32) -> u32 {
        let to = from + steps;
        if to >= self.count { to - self.count } else { to }
    }

    /// Returns true if `index` is within this ring. An index that the card kept may stem from a ring that has been
    /// changed.
    #[must_use]
    #[inline]
    pub fn contains(&self, index: u32) -> bool {
        index < self.count
    }

    /// Returns the address of the ring's descriptor `index`.
    #[must_use]
    #[inline]
    pub fn address(&self, index: u32) -> Iova {
        self.base.wrapping_add(u64::from(index) * u64::from(self.size))
    }

    /// Returns how many of `wanted` descriptors from `from` on are contiguous before the ring wraps.
    #[must_use]
    #[inline]
    pub fn contiguous(&self, from: u32, wanted: u32) -> u32 {
        wanted.min(self.count - from)
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;

    #[test]
    fn reserve_is_an_eighth_of_a_ring_and_at_most_8() {
        let reserve = |count| Ring::new(0, count, 16, 0).unwrap().reserve();
        assert_eq!([1, 8, 9, 32, 64, 65, 4_096].map(reserve), [0, 0, 1, 3, 7, 8, 8]);
    }

    #[test]
    fn ring_with_its_tail_beyond_its_end_is_invalid() {
        assert_eq!(Ring::new(0, 8, 16, 8), None);
        assert_eq!(Ring::new(0, 0, 16, 0), None);
        assert!(Ring::new(0, 8, 16, 7).is_some());
    }

    #[test]
    fn ring_address_may_use_all_64_bits() {
        let ring = Ring::new(0x12_3456_7080, 8, 16, 0).unwrap();
        assert_eq!(ring.address(3), 0x12_3456_7080 + 3 * 16);
    }

    #[test]
    fn available_ring_descriptors_are_counted_across_the_wrap() {
        let ring = Ring::new(0, 8, 16, 2).unwrap();
        assert_eq!((ring.available(6), ring.contiguous(6, 4), ring.advance(6, 4)), (4, 2, 2));
        assert_eq!(ring.available(2), 0);
        assert!(ring.contains(7) && !ring.contains(8));
    }
}
