//! Which virtual function of a device, and sets of them, whatever the device. Left out: how many VFs one device has.

use crate::Function;
use core::fmt;
use serde::{Deserialize, Serialize};

/// The most VFs that a device can have here: as many as a [`VfSet`] has bits. SR-IOV would allow more.
pub const MAX_VFS: usize = 64;

/// A number that is no VF's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no device has a virtual function {0}: the last one possible is {last}", last = MAX_VFS - 1)]
pub struct NoSuchVf(u8);

/// A virtual function by its number, 0..=63. A device that has fewer says so where a number comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct VfIndex(u8);

impl VfIndex {
    /// `n` as a VF, if a device can have that many.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < MAX_VFS { Some(Self(n)) } else { None }
    }

    /// The VF that the low six bits of a number name.
    #[must_use]
    pub const fn of_field(bits: u32) -> Self {
        Self(bits as u8 & 63)
    }

    /// The first VFs, `count` of them, in order; all if there are no more.
    pub fn first(count: usize) -> impl ExactSizeIterator<Item = Self> {
        (0..count.min(MAX_VFS) as u8).map(Self)
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

    /// The VF as a function of the device.
    #[must_use]
    pub const fn function(self) -> Function {
        Function::Vf(self.0)
    }
}

impl fmt::Display for VfIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.function().fmt(f)
    }
}

impl From<VfIndex> for u8 {
    fn from(vf: VfIndex) -> u8 {
        vf.0
    }
}

impl TryFrom<u8> for VfIndex {
    type Error = NoSuchVf;

    fn try_from(number: u8) -> Result<Self, NoSuchVf> {
        Self::new(number).ok_or(NoSuchVf(number))
    }
}

/// A set of VFs: bit n is VF n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VfSet(u64);

impl VfSet {
    /// No VF.
    pub const NONE: Self = Self(0);

    /// The VFs whose bits are set.
    #[must_use]
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// A bit a VF.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// There is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether a VF is one of them.
    #[must_use]
    pub const fn has(self, vf: VfIndex) -> bool {
        self.0 >> vf.0 & 1 != 0
    }

    /// The VFs of either set.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The VFs of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The VFs that are not in the other set.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Each of them, in order.
    pub fn iter(self) -> impl Iterator<Item = VfIndex> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let next = (left != 0).then(|| VfIndex(left.trailing_zeros() as u8));
            left &= left.wrapping_sub(1);
            next
        })
    }
}

impl FromIterator<VfIndex> for VfSet {
    fn from_iter<I: IntoIterator<Item = VfIndex>>(vfs: I) -> Self {
        Self(vfs.into_iter().fold(0, |bits, vf| bits | 1 << vf.0))
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_VFS, VfIndex, VfSet};
    use crate::Function;
    use std::string::ToString;
    use std::vec::Vec;

    fn vf(n: u8) -> VfIndex {
        VfIndex::new(n).unwrap()
    }

    #[test]
    fn the_last_vf_is_63() {
        assert_eq!((VfIndex::new(63).map(VfIndex::index), VfIndex::new(64)), (Some(63), None));
        assert_eq!(VfIndex::first(200).map(VfIndex::get).collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
        assert_eq!((VfIndex::first(2).len(), VfIndex::of_field(64 + 9)), (2, vf(9)));
        assert_eq!((vf(63).function(), vf(63).to_string()), (Function::Vf(63), "vf63".to_string()));
        assert_eq!(Function::Vf(63).vf(), Some(vf(63)));
        assert_eq!((Function::Vf(64).vf(), Function::Pf.vf()), (None, None));
        let refused = VfIndex::try_from(64).unwrap_err().to_string();
        assert_eq!(refused, "no device has a virtual function 64: the last one possible is 63");
    }

    #[test]
    fn a_set_has_room_for_every_vf() {
        let ends = VfSet::from_iter([vf(63), vf(0), vf(9)]);
        assert_eq!(ends.bits(), 1 << 63 | 1 << 9 | 1);
        assert_eq!(ends.iter().map(VfIndex::get).collect::<Vec<_>>(), [0, 9, 63]);
        assert!(ends.has(vf(63)) && !ends.has(vf(62)));
        assert_eq!((ends.count(), VfSet::from_iter(VfIndex::first(MAX_VFS))), (3, VfSet::new(u64::MAX)));
        let last = VfSet::from_iter([vf(63)]);
        assert_eq!((ends.and(last), ends.without(last)), (last, VfSet::new(1 << 9 | 1)));
        assert_eq!(last.or(ends), ends);
        assert!(VfSet::NONE.is_empty() && !ends.is_empty());
    }
}
