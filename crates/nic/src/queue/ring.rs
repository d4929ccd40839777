//! A ring as its registers describe it, decoded and checked when one of them was written: software may write anything at any
//! time. Left out: the head, which the card moves on, and keeps with the descriptors that it has not given back.

use crate::file::RegisterFile;
use i82576::Queue;
use i82576::bits::dctl;
use i82576::descriptor::SIZE;
use i82576::register::{rx, rx_block, tx, tx_block};
use pcie::Iova;

/// A ring whose registers make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    base: Iova,
    count: u32,
    /// The first descriptor that is not the card's.
    pub tail: u32,
}

impl Ring {
    /// The receive ring of a queue; `None` while it is disabled or its registers make no ring.
    #[must_use]
    pub fn receive(file: &RegisterFile, queue: Queue) -> Option<Self> {
        let at = rx_block(queue);
        Self::checked(file, at, at + rx::RXDCTL, at + rx::RDH, at + rx::RDT)
    }

    /// The transmit ring of a queue; `None` while it is disabled or its registers make no ring.
    #[must_use]
    pub fn transmit(file: &RegisterFile, queue: Queue) -> Option<Self> {
        let at = tx_block(queue);
        Self::checked(file, at, at + tx::TXDCTL, at + tx::TDH, at + tx::TDT)
    }

    fn checked(file: &RegisterFile, block: u32, control: u32, head: u32, tail: u32) -> Option<Self> {
        // Base and length are at the same place in both kinds of block.
        let base = u64::from(file.get(block + tx::TDBAL)) | u64::from(file.get(block + tx::TDBAH)) << 32;
        let count = file.get(block + tx::TDLEN) / SIZE as u32;
        let ring = Self { base, count, tail: file.get(tail) };
        let enabled = file.get(control) & dctl::ENABLE != 0;
        (enabled && file.get(head) < count && ring.tail < count).then_some(ring)
    }

    /// Descriptors from index `from` up to the tail.
    #[must_use]
    pub fn available(&self, from: u32) -> u32 {
        if self.tail >= from { self.tail - from } else { self.count - from + self.tail }
    }

    /// The most descriptors that can be outstanding: a full ring would look like an empty one.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.count - 1
    }

    /// The index `steps` (at most a ring) after `from`.
    #[must_use]
    pub fn advance(&self, from: u32, steps: u32) -> u32 {
        let to = from + steps;
        if to >= self.count { to - self.count } else { to }
    }

    /// Whether `index` is one of this ring's: a cached index may stem from a ring that has been changed.
    #[must_use]
    pub fn contains(&self, index: u32) -> bool {
        index < self.count
    }

    /// Where descriptor `index` is.
    #[must_use]
    pub fn address(&self, index: u32) -> Iova {
        self.base.wrapping_add(u64::from(index) * SIZE as u64)
    }

    /// How many of `wanted` descriptors from `from` on lie in one piece before the ring wraps.
    #[must_use]
    pub fn contiguous(&self, from: u32, wanted: u32) -> u32 {
        wanted.min(self.count - from)
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use crate::file::RegisterFile;
    use i82576::Queue;
    use i82576::register::{tx, tx_block};

    fn ring(length: u32, head: u32, tail: u32) -> Option<Ring> {
        let (mut file, queue) = (RegisterFile::new(), Queue::new(2).unwrap());
        for (at, value) in [(tx::TDLEN, length), (tx::TDH, head), (tx::TDT, tail), (tx::TXDCTL, 1 << 25)] {
            file.set(tx_block(queue) + at, value);
        }
        Ring::transmit(&file, queue)
    }

    #[test]
    fn a_ring_of_length_zero_is_none() {
        assert_eq!(ring(0, 0, 0), None);
    }

    #[test]
    fn head_or_tail_beyond_the_ring_is_none() {
        assert_eq!(ring(128, 8, 0), None);
        assert_eq!(ring(128, 0, 8), None);
        assert!(ring(128, 7, 7).is_some());
    }

    #[test]
    fn a_ring_may_be_anywhere_in_64_bits() {
        let (mut file, queue) = (RegisterFile::new(), Queue::new(2).unwrap());
        let registers =
            [(tx::TDBAL, 0x3456_7080), (tx::TDBAH, 0x12), (tx::TDLEN, 128), (tx::TXDCTL, 1 << 25)];
        for (at, value) in registers {
            file.set(tx_block(queue) + at, value);
        }
        let ring = Ring::transmit(&file, queue).unwrap();
        assert_eq!(ring.address(3), 0x12_3456_7080 + 3 * 16);
    }

    #[test]
    fn available_counts_across_the_wrap() {
        let ring = ring(128, 6, 2).unwrap();
        assert_eq!((ring.available(6), ring.contiguous(6, 4), ring.advance(6, 4)), (4, 2, 2));
        assert_eq!(ring.available(2), 0);
        assert!(ring.contains(7) && !ring.contains(8));
    }
}
