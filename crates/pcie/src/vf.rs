//! Index of a VF, and sets of VFs, for any device.

use crate::Function;
use crate::low::low_byte;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Maximum number of VFs: the bits of a [`VfSet`]. SR-IOV would allow more.
pub const MAX_VFS: usize = 64;

/// Error: a number is not below the maximum number of VFs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("virtual function {0} is out of range (0-{last})", last = MAX_VFS - 1)]
pub struct NoSuchVf(u8);

/// Index of a virtual function, 0..=63. A device with fewer VFs checks it on arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct VfIndex(u8);

impl VfIndex {
    /// Returns VF `n`, or `None` if it is out of range.
    #[must_use]
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < MAX_VFS { Some(Self(n)) } else { None }
    }

    /// Returns the VF whose index is the low six bits of a register field.
    #[must_use]
    pub const fn of_field(bits: u32) -> Self {
        Self(low_byte(bits) & 63)
    }

    /// Returns the first `count` VFs in order, at most all.
    pub fn first(count: usize) -> impl ExactSizeIterator<Item = Self> {
        (0..u8::MAX).take(count.min(MAX_VFS)).map(Self)
    }

    /// Returns the index of the VF as a number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the VF's index for use in arrays.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the VF as a function of the device.
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

/// Set of VFs: bit n is VF n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VfSet(u64);

impl VfSet {
    /// Set that contains no VFs.
    pub const NONE: Self = Self(0);

    /// Creates the set of the VFs whose bits are set.
    #[must_use]
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the set of VFs as bits, one per VF.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns true if the set has no VFs.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of VFs in the set.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns true if a VF is in the set of VFs.
    #[must_use]
    pub const fn has(self, vf: VfIndex) -> bool {
        self.0 >> vf.0 & 1 != 0
    }

    /// Returns the set of VFs that are in either of two sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set of VFs that are in both of two sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the set of VFs that are in this set and not in another.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the VFs of the set in ascending order.
    pub fn iter(self) -> impl Iterator<Item = VfIndex> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let next = (left != 0).then(|| VfIndex(low_byte(left.trailing_zeros())));
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
    fn highest_vf_index_is_63() {
        assert_eq!((VfIndex::new(63).map(VfIndex::index), VfIndex::new(64)), (Some(63), None));
        assert_eq!(VfIndex::first(200).map(VfIndex::get).collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
        assert_eq!((VfIndex::first(2).len(), VfIndex::of_field(64 + 9)), (2, vf(9)));
        assert_eq!((vf(63).function(), vf(63).to_string()), (Function::Vf(63), "vf63".to_string()));
        assert_eq!(Function::Vf(63).vf(), Some(vf(63)));
        assert_eq!((Function::Vf(64).vf(), Function::Pf.vf()), (None, None));
        let refused = VfIndex::try_from(64).unwrap_err().to_string();
        assert_eq!(refused, "virtual function 64 is out of range (0-63)");
    }

    #[test]
    fn vf_set_stores_any_of_the_vf_indices_0_to_63() {
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
