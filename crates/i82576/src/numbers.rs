//! Indices as types, so that a queue cannot be taken for a pool. Left out: arithmetic that nobody needs.

use crate::ids;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A number that names none of what a port has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a port has no {what} {number}")]
pub struct NoSuch {
    what: &'static str,
    number: u8,
}

/// The index types as the numbers that they are, with a check on the way back.
macro_rules! as_number {
    ($type:ty, $what:literal) => {
        impl From<$type> for u8 {
            fn from(index: $type) -> u8 {
                index.get()
            }
        }

        impl TryFrom<u8> for $type {
            type Error = NoSuch;

            fn try_from(number: u8) -> Result<Self, NoSuch> {
                Self::new(number).ok_or(NoSuch { what: $what, number })
            }
        }
    };
}

as_number!(VfIndex, "virtual function");
as_number!(Pool, "pool");
as_number!(Queue, "queue");
as_number!(Vector, "vector");

impl From<VfIndex> for pcie::VfIndex {
    fn from(vf: VfIndex) -> Self {
        Self::of_field(vf.0.into())
    }
}

impl TryFrom<pcie::VfIndex> for VfIndex {
    type Error = NoSuch;

    fn try_from(vf: pcie::VfIndex) -> Result<Self, NoSuch> {
        Self::try_from(vf.get())
    }
}

/// A virtual function of the port, 0..=7. Pool `n` of the switch belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct VfIndex(u8);

impl VfIndex {
    /// `n` as a VF, if the port has that many.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < ids::MAX_VFS { Some(Self(n)) } else { None }
    }

    /// Every VF of a port, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ids::MAX_VFS as u8).map(Self)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The VF's bit in per-VF and per-pool masks.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self.0
    }

    /// The VF's first or second queue pair (`which` 0 or 1): queue n, and queue n + 8.
    #[must_use]
    pub const fn queue(self, which: u8) -> Queue {
        Queue(self.0 + 8 * (which & 1))
    }

    /// The VF's pool.
    #[must_use]
    pub const fn pool(self) -> Pool {
        Pool(self.0)
    }

    /// The port's internal vector behind this VF's vector 0: 22 - 3n.
    #[must_use]
    pub const fn first_vector(self) -> u8 {
        22 - 3 * self.0
    }
}

impl fmt::Display for VfIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vf{}", self.0)
    }
}

/// A pool of the switch, 0..=7: a VF, or the PF among the VFs. Without pools the whole port is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct Pool(u8);

impl Pool {
    /// The first.
    pub const FIRST: Self = Self(0);

    /// All of them, in order.
    pub const EVERY: [Self; ids::MAX_VFS] =
        [Self(0), Self(1), Self(2), Self(3), Self(4), Self(5), Self(6), Self(7)];

    /// `n` as a pool, if the port has that many.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < ids::MAX_VFS { Some(Self(n)) } else { None }
    }

    /// The pool that the low three bits of a register's field name.
    #[must_use]
    pub const fn of_field(bits: u32) -> Self {
        Self(bits as u8 & 7)
    }

    /// The pools of a set, in order: bit n is pool n.
    pub fn of_set(set: u8) -> impl Iterator<Item = Self> {
        (0..ids::MAX_VFS as u8).filter(move |n| set & 1 << n != 0).map(Self)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The number as an index into as many as there are pools, which needs no check.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        (self.0 & 7) as usize
    }

    /// The pool's bit in sets of pools.
    #[must_use]
    #[inline]
    pub const fn bit(self) -> u8 {
        1 << (self.0 & 7)
    }

    /// The pool's first or second queue pair (`which` 0 or 1): queue n, and queue n + 8.
    #[must_use]
    #[inline]
    pub const fn queue(self, which: u8) -> Queue {
        Queue((self.0 & 7) + 8 * (which & 1))
    }

    /// Both of its queues, a bit each.
    #[must_use]
    pub const fn queues(self) -> u16 {
        0x101 << (self.0 & 7)
    }
}

/// A receive or transmit queue of the port, 0..=15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct Queue(u8);

impl Queue {
    /// `n` as a queue, if the port has that many.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < ids::QUEUES { Some(Self(n)) } else { None }
    }

    /// The queue that the low four bits of a register's field name.
    #[must_use]
    pub const fn of_field(bits: u32) -> Self {
        Self(bits as u8 & 0xf)
    }

    /// Every queue of a port, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ids::QUEUES as u8).map(Self)
    }

    /// The queues whose bits are set: those from `first` on, in order, then those before it.
    #[inline]
    pub fn in_turn(bits: u16, first: u8) -> impl Iterator<Item = Self> {
        let mut left = bits.rotate_right(first.into());
        core::iter::from_fn(move || {
            let next = (left != 0).then(|| Self::of_field(u32::from(first) + left.trailing_zeros()));
            left &= left.wrapping_sub(1);
            next
        })
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The number as an index into as many as there are queues, which needs no check.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        (self.0 & 0xf) as usize
    }

    /// The pool that owns the queue while the card is virtualised: queue q belongs to pool q mod 8.
    #[must_use]
    pub const fn pool(self) -> Pool {
        Pool(self.0 & 7)
    }

    /// 0 for a pool's first queue, 1 for its second.
    #[must_use]
    pub const fn in_pool(self) -> u8 {
        self.0 >> 3
    }
}

/// An internal interrupt vector of the port, 0..=24: a bit of EICR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct Vector(u8);

impl Vector {
    /// `n` as a vector, if the port has that many.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < ids::VECTORS { Some(Self(n)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The vector's bit in EICR and its companions.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Queue, VfIndex};
    use std::string::ToString;

    #[test]
    fn queues_come_in_turn_from_any_of_them_on() {
        let turn = |bits, first| Queue::in_turn(bits, first).map(Queue::get);
        assert!(turn(0b1000_0000_0000_0111, 1).eq([1, 2, 15, 0]));
        assert!(turn(u16::MAX, 15).eq([15].into_iter().chain(0..15)));
        assert!(turn(0, 3).eq([]));
    }

    #[test]
    fn a_vf_of_any_device_is_the_82576s_if_it_has_that_many() {
        let of_any = |n| pcie::VfIndex::new(n).unwrap();
        let last = VfIndex::new(7).unwrap();
        assert_eq!((VfIndex::try_from(of_any(7)), pcie::VfIndex::from(last)), (Ok(last), of_any(7)));
        let refused = VfIndex::try_from(of_any(8)).unwrap_err().to_string();
        assert_eq!(refused, "a port has no virtual function 8");
    }
}
