//! Index types of VFs, pools, queues and vectors. The compiler rejects a queue's index in place of a pool's.

use crate::ids;
use core::fmt;
use pcie::low::low_byte;
use serde::{Deserialize, Serialize};

/// Error for an index that is too large for its type: a VF, pool, queue or vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} {number} does not exist: its number is out of the port's range")]
pub struct IndexRangeError {
    what: &'static str,
    number: u8,
}

/// Implements the conversions of an index type to its number, and back with a range check.
macro_rules! as_number {
    ($type:ty, $what:literal) => {
        impl From<$type> for u8 {
            fn from(index: $type) -> u8 {
                index.get()
            }
        }

        impl TryFrom<u8> for $type {
            type Error = IndexRangeError;

            fn try_from(number: u8) -> Result<Self, IndexRangeError> {
                Self::new(number).ok_or(IndexRangeError { what: $what, number })
            }
        }
    };
}

as_number!(VfIndex, "virtual function");
as_number!(PoolIndex, "pool");
as_number!(QueueIndex, "queue");
as_number!(VectorIndex, "vector");

impl From<VfIndex> for pcie::VfIndex {
    fn from(vf: VfIndex) -> Self {
        Self::of_field(vf.0.into())
    }
}

impl TryFrom<pcie::VfIndex> for VfIndex {
    type Error = IndexRangeError;

    fn try_from(vf: pcie::VfIndex) -> Result<Self, IndexRangeError> {
        Self::try_from(vf.get())
    }
}

/// Virtual function of the port, 0..=7. VF `n` owns pool `n` of the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct VfIndex(u8);

impl VfIndex {
    /// Returns the VF with index `n`, or `None` if `n` is out of range.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < ids::MAX_VFS { Some(Self(n)) } else { None }
    }

    /// Returns every VF of a port, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).map_while(Self::new)
    }

    /// Returns the VF's index as a number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the VF's index for use in arrays.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the VF's bit in per-VF and per-pool masks.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self.0
    }

    /// Returns the VF's first or second queue pair (`which` 0 or 1): queue n, and queue n + 8.
    #[must_use]
    pub const fn queue(self, which: u8) -> QueueIndex {
        QueueIndex(self.0 + 8 * (which & 1))
    }

    /// Returns the pool of the switch that belongs to the VF.
    #[must_use]
    pub const fn pool(self) -> PoolIndex {
        PoolIndex(self.0)
    }

    /// Returns the port's internal vector of this VF's vector 0: 22 - 3n.
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

/// Pool of the switch, 0..=7: of a VF, or of the PF. Without virtualization the whole port is the first pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
#[serde(rename = "Pool")]
pub struct PoolIndex(u8);

impl PoolIndex {
    /// First pool of the switch, which is VF 0's.
    pub const FIRST: Self = Self(0);

    /// All pools of the switch, in order.
    pub const EVERY: [Self; ids::MAX_VFS] =
        [Self(0), Self(1), Self(2), Self(3), Self(4), Self(5), Self(6), Self(7)];

    /// Returns the pool with index `n`, or `None` if `n` is out of range.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < ids::MAX_VFS { Some(Self(n)) } else { None }
    }

    /// Returns the pool of a register field's low three bits.
    #[must_use]
    pub const fn of_field(bits: u32) -> Self {
        Self(low_byte(bits) & 7)
    }

    /// Returns the pools whose bits are set, in order.
    pub fn of_set(set: u8) -> impl Iterator<Item = Self> {
        (0..).map_while(Self::new).filter(move |pool| set & 1 << pool.0 != 0)
    }

    /// Returns the pool's index as a number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the pool's index for arrays of all pools, without a bounds check.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        (self.0 & 7) as usize
    }

    /// Returns the pool's bit in sets of pools.
    #[must_use]
    #[inline]
    pub const fn bit(self) -> u8 {
        1 << (self.0 & 7)
    }

    /// Returns the pool's first or second queue pair (`which` 0 or 1): queue n, and queue n + 8.
    #[must_use]
    #[inline]
    pub const fn queue(self, which: u8) -> QueueIndex {
        QueueIndex((self.0 & 7) + 8 * (which & 1))
    }

    /// Returns both queues of the pool, a bit each.
    #[must_use]
    pub const fn queues(self) -> u16 {
        0x101 << (self.0 & 7)
    }
}

/// Receive or transmit queue of the port, 0..=15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct QueueIndex(u8);

impl QueueIndex {
    /// Returns the queue with index `n`, or `None` if `n` is out of range.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < ids::QUEUES { Some(Self(n)) } else { None }
    }

    /// Returns the queue of a register field's low four bits.
    #[must_use]
    pub const fn of_field(bits: u32) -> Self {
        Self(low_byte(bits) & 0xf)
    }

    /// Returns every queue of a port, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).map_while(Self::new)
    }

    /// Returns the queues whose bits are set: first those from `first` on, in order, and then those before
    /// `first`.
    #[inline]
    pub fn in_turn(bits: u16, first: u8) -> impl Iterator<Item = Self> {
        let mut left = bits.rotate_right(first.into());
        core::iter::from_fn(move || {
            let next = (left != 0).then(|| Self::of_field(u32::from(first) + left.trailing_zeros()));
            left &= left.wrapping_sub(1);
            next
        })
    }

    /// Returns the queue's index as a number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the queue's index for arrays of all queues, without a bounds check.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        (self.0 & 0xf) as usize
    }

    /// Returns the pool that owns the queue while the card is virtualized: queue q belongs to pool q mod 8.
    #[must_use]
    pub const fn pool(self) -> PoolIndex {
        PoolIndex(self.0 & 7)
    }

    /// Returns 0 for a pool's first queue, 1 for its second.
    #[must_use]
    pub const fn in_pool(self) -> u8 {
        self.0 >> 3
    }
}

/// Internal interrupt vector of the port, 0..=24: a bit of EICR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
#[serde(rename = "Vector")]
pub struct VectorIndex(u8);

impl VectorIndex {
    /// Returns the interrupt vector with index `n`, or `None` if `n` is out of range.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < ids::VECTORS { Some(Self(n)) } else { None }
    }

    /// Returns the interrupt vector's index as a number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the interrupt vector's index for use in arrays.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the interrupt vector's bit in EICR and related registers.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{QueueIndex, VfIndex};
    use std::string::ToString;

    #[test]
    fn queue_iteration_from_any_first_queue_visits_all_queues() {
        let turn = |bits, first| QueueIndex::in_turn(bits, first).map(QueueIndex::get);
        assert!(turn(0b1000_0000_0000_0111, 1).eq([1, 2, 15, 0]));
        assert!(turn(u16::MAX, 15).eq([15].into_iter().chain(0..15)));
        assert!(turn(0, 3).eq([]));
    }

    #[test]
    fn vf_index_above_7_is_refused_as_an_82576_vf_index() {
        let of_any = |n| pcie::VfIndex::new(n).unwrap();
        let last = VfIndex::new(7).unwrap();
        assert_eq!((VfIndex::try_from(of_any(7)), pcie::VfIndex::from(last)), (Ok(last), of_any(7)));
        let refused = VfIndex::try_from(of_any(8)).unwrap_err().to_string();
        assert_eq!(refused, "virtual function 8 does not exist: its number is out of the port's range");
    }
}
