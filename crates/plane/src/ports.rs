//! Ports of the plane, and sets of them. Left out: what is behind a port.

use core::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, Not};

/// The most ports that a plane can have: as many as a set has bits.
pub const MAX_PORTS: usize = 64;

/// A port of the plane, 0..64. A plane of fewer ports takes the number modulo its own, so an index needs no check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port(u8);

impl Port {
    /// `n` as a port, if a plane can have that many.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < MAX_PORTS { Some(Self(n)) } else { None }
    }

    /// The port that the low six bits of a number name.
    #[must_use]
    #[inline]
    pub const fn of_field(bits: u32) -> Self {
        Self(bits as u8 & 63)
    }

    /// The number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The number as an index into what each of `N` ports has.
    #[must_use]
    #[inline]
    pub const fn index<const N: usize>(self) -> usize {
        const { assert!(N.is_power_of_two() && N <= MAX_PORTS, "a plane has 1, 2, 4 .. 64 ports") };
        self.0 as usize % N
    }

    /// The set of this port alone.
    #[must_use]
    #[inline]
    pub const fn only(self) -> Ports {
        Ports(1 << (self.0 & 63))
    }
}

/// A set of ports: bit n is port n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Ports(u64);

impl Ports {
    /// No port.
    pub const NONE: Self = Self(0);

    /// The ports whose bits are set.
    #[must_use]
    #[inline]
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// A bit a port.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// There is none.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    #[must_use]
    #[inline]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether a port is one of them.
    #[must_use]
    #[inline]
    pub const fn has(self, port: Port) -> bool {
        self.0 >> (port.0 & 63) & 1 != 0
    }

    /// Whether a port is in both sets.
    #[must_use]
    #[inline]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The first of them and no other.
    #[must_use]
    #[inline]
    pub const fn first(self) -> Self {
        Self(self.0 & self.0.wrapping_neg())
    }

    /// The port, if there is just one.
    #[must_use]
    #[inline]
    pub const fn single(self) -> Option<Port> {
        let single = self.0 != 0 && self.0 & (self.0 - 1) == 0;
        if single { Some(Port(self.0.trailing_zeros() as u8)) } else { None }
    }

    /// Each of them, in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Port> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let next = (left != 0).then(|| Port(left.trailing_zeros() as u8));
            left &= left.wrapping_sub(1);
            next
        })
    }
}

impl From<Port> for Ports {
    fn from(port: Port) -> Self {
        port.only()
    }
}

impl BitAnd for Ports {
    type Output = Self;
    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Ports {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAndAssign for Ports {
    #[inline]
    fn bitand_assign(&mut self, other: Self) {
        self.0 &= other.0;
    }
}

impl BitOrAssign for Ports {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl Not for Ports {
    type Output = Self;
    #[inline]
    fn not(self) -> Self {
        Self(!self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Port, Ports};
    use alloc::vec::Vec;

    #[test]
    fn a_set_names_its_ports_in_order() {
        let set = Ports::new(1 << 63 | 0b1010);
        assert_eq!(set.iter().map(Port::get).collect::<Vec<_>>(), [1, 3, 63]);
        assert_eq!((set.count(), set.first(), set.single()), (3, Ports::new(2), None));
        assert_eq!(Ports::new(1 << 63).single(), Port::new(63));
        assert!(set.has(Port::of_field(3)) && !set.has(Port::of_field(2)));
        assert_eq!(Port::new(64), None);
    }

    #[test]
    fn a_port_beyond_the_planes_last_is_another_of_the_planes() {
        assert_eq!((Port::of_field(9).index::<8>(), Port::of_field(63).index::<64>()), (1, 63));
    }
}
