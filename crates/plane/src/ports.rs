//! Ports of the plane, and sets of ports. A port of the plane is one VF (82576: a pool). A port of the host, in the
//! crates `daemon` and `policy`, is a card with all its VFs.

use core::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, Not};

/// Largest number of ports of a plane: a set of ports has 64 bits.
pub(crate) const MAX_PORTS: usize = 64;

/// Number of a port, 0 to 63. A plane with fewer ports takes it modulo its own number of ports, so an index needs no check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortIndex(u8);

impl PortIndex {
    /// Returns the port with number `n`, or `None` from 64 on.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < MAX_PORTS { Some(Self(n)) } else { None }
    }

    /// Returns the port whose number is the low six bits of a value.
    #[must_use]
    #[inline]
    pub const fn of_field(bits: u32) -> Self {
        Self(bits.to_le_bytes()[0] & 63)
    }

    /// Returns the port of the lowest set bit. `bits` is not 0.
    #[inline]
    const fn lowest(bits: u64) -> Self {
        Self::of_field(bits.trailing_zeros())
    }

    /// Returns the port's number, 0 to 63.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the number as an index into an array with an element for each of `N` ports.
    #[must_use]
    #[inline]
    pub const fn index<const N: usize>(self) -> usize {
        const {
            assert!(
                N.is_power_of_two() && N <= MAX_PORTS,
                "the number of a plane's ports must be a power of two up to 64"
            );
        };
        self.0 as usize % N
    }

    /// Returns the set of this port alone.
    #[must_use]
    #[inline]
    pub const fn only(self) -> PortSet {
        PortSet(1 << (self.0 & 63))
    }
}

/// A set of ports: bit n is port n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PortSet(u64);

impl PortSet {
    /// The empty set of ports.
    pub const NONE: Self = Self(0);

    /// Returns the set of the ports whose bits are set in a number.
    #[must_use]
    #[inline]
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the set of ports as bits: bit n is port n.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns `true` if the set of ports is empty.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of ports in the set.
    #[must_use]
    #[inline]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns `true` if the set has a certain port.
    #[must_use]
    #[inline]
    pub const fn has(self, port: PortIndex) -> bool {
        self.0 >> (port.0 & 63) & 1 != 0
    }

    /// Returns `true` if the sets have a port in common.
    #[must_use]
    #[inline]
    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the set of the lowest port alone, or the empty set.
    #[must_use]
    #[inline]
    pub const fn first(self) -> Self {
        Self(self.0 & self.0.wrapping_neg())
    }

    /// Returns the port of a set with exactly one port.
    #[must_use]
    #[inline]
    pub const fn single(self) -> Option<PortIndex> {
        let single = self.0 != 0 && self.0 & (self.0 - 1) == 0;
        if single { Some(PortIndex::lowest(self.0)) } else { None }
    }

    /// Iterates over the ports of the set in ascending order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = PortIndex> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let next = (left != 0).then(|| PortIndex::lowest(left));
            left &= left.wrapping_sub(1);
            next
        })
    }
}

impl From<PortIndex> for PortSet {
    fn from(port: PortIndex) -> Self {
        port.only()
    }
}

impl BitAnd for PortSet {
    type Output = Self;
    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for PortSet {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAndAssign for PortSet {
    #[inline]
    fn bitand_assign(&mut self, other: Self) {
        self.0 &= other.0;
    }
}

impl BitOrAssign for PortSet {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl Not for PortSet {
    type Output = Self;
    #[inline]
    fn not(self) -> Self {
        Self(!self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{PortIndex, PortSet};
    use alloc::vec::Vec;

    #[test]
    fn port_set_iterates_over_its_ports_in_ascending_numbers() {
        let set = PortSet::new(1 << 63 | 0b1010);
        assert_eq!(set.iter().map(PortIndex::get).collect::<Vec<_>>(), [1, 3, 63]);
        assert_eq!((set.count(), set.first(), set.single()), (3, PortSet::new(2), None));
        assert_eq!(PortSet::new(1 << 63).single(), PortIndex::new(63));
        assert!(set.has(PortIndex::of_field(3)) && !set.has(PortIndex::of_field(2)));
        assert_eq!(PortIndex::new(64), None);
    }

    #[test]
    fn switch_port_index_wraps_at_the_number_of_ports() {
        assert_eq!((PortIndex::of_field(9).index::<8>(), PortIndex::of_field(63).index::<64>()), (1, 63));
    }
}
