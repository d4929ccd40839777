//! A set of VLAN ids: what a VF may join. Left out: who is a member of what (`switch`).

use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

const WORDS: usize = 64;

/// The last VLAN id that may be set, listed or joined, in every place and both families. IEEE 802.1Q reserves 4095; Linux's
/// drivers take it all the same (`igb_ndo_set_vf_vlan`, `I40E_MAX_VLANID`), and so does iproute2.
pub const LAST_VLAN: u16 = 4095;

/// VLAN ids, 0 to [`LAST_VLAN`]; 0 stands for untagged.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<u16>", from = "Vec<u16>")]
pub struct VlanSet([u64; WORDS]);

impl VlanSet {
    /// No VLAN but untagged, which is everybody's.
    #[must_use]
    pub const fn untagged() -> Self {
        let mut words = [0; WORDS];
        words[0] = 1;
        Self(words)
    }

    /// Adds an id; one beyond 4095 is not an id and changes nothing.
    pub fn insert(&mut self, vlan: u16) {
        if let Some(word) = self.0.get_mut(usize::from(vlan / 64)) {
            *word |= 1 << (vlan % 64);
        }
    }

    /// Whether an id is in the set.
    #[must_use]
    pub fn contains(&self, vlan: u16) -> bool {
        self.0.get(usize::from(vlan / 64)).is_some_and(|word| word & 1 << (vlan % 64) != 0)
    }

    /// The ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0..=LAST_VLAN).filter(|vlan| self.contains(*vlan))
    }
}

impl From<VlanSet> for Vec<u16> {
    fn from(set: VlanSet) -> Self {
        set.iter().collect()
    }
}

impl From<Vec<u16>> for VlanSet {
    fn from(ids: Vec<u16>) -> Self {
        ids.into_iter().collect()
    }
}

impl FromIterator<u16> for VlanSet {
    fn from_iter<I: IntoIterator<Item = u16>>(ids: I) -> Self {
        let mut set = Self::untagged();
        ids.into_iter().for_each(|vlan| set.insert(vlan));
        set
    }
}

impl fmt::Debug for VlanSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::VlanSet;
    use alloc::vec::Vec;

    #[test]
    fn a_set_holds_what_was_put_in_and_untagged() {
        let set: VlanSet = [5, 4095, 4096, 63, 64].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 63, 64, 4095]);
        assert!(!set.contains(4096) && !set.contains(6));
    }
}
