//! VLANs in policies: VLAN ids, the port VLAN of a VF, and sets of VLANs. PF drivers keep the membership of VFs in
//! VLANs.

use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use serde::{Deserialize, Serialize};
use units::{LAST_VLAN, VlanIds};

/// VLAN ids that may be set, listed or joined, for every family.
pub const VLANS: RangeInclusive<u16> = 1..=LAST_VLAN;
/// Valid priorities of a VLAN tag (IEEE 802.1Q).
pub const PRIORITIES: RangeInclusive<u8> = 0..=7;

/// Port VLAN, on which the administrator puts a VF: the guest sees untagged frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortVlan {
    /// VLAN id of the port VLAN, one of [`VLANS`]. With id 0 and a priority, the VF uses untagged frames, and the card
    /// inserts tags that have only the priority.
    pub id: u16,
    /// Priority of the tags that the card inserts, of [`PRIORITIES`].
    pub qos: u8,
}

impl PortVlan {
    /// Returns the tag control information of the port VLAN: priority and VLAN id.
    #[must_use]
    pub const fn tag(self) -> u16 {
        (self.qos as u16) << 13 | self.id
    }
}

/// VLANs that a policy allows, 0 to [`LAST_VLAN`]. Untagged frames, for which 0 stands, are always among them.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<u16>", from = "Vec<u16>")]
pub struct VlanSet(VlanIds);

impl VlanSet {
    /// Returns the set of untagged frames alone, which every VF may send and receive.
    #[must_use]
    pub const fn untagged() -> Self {
        Self(VlanIds::untagged())
    }

    /// Adds a VLAN id; ignores an id beyond [`LAST_VLAN`].
    pub fn insert(&mut self, vlan: u16) {
        self.0.insert(vlan);
    }

    /// Returns true if a VLAN id is in the set.
    #[must_use]
    pub fn contains(&self, vlan: u16) -> bool {
        self.0.contains(vlan)
    }

    /// Returns the VLAN ids of the set, with 0 for untagged frames.
    #[must_use]
    pub const fn ids(&self) -> &VlanIds {
        &self.0
    }

    /// Returns the VLAN ids of the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter()
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
    fn vlan_set_holds_inserted_ids_and_untagged_frames() {
        let set: VlanSet = [5, 4095, 4096, 63, 64].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 63, 64, 4095]);
        assert!(!set.contains(4096) && !set.contains(6));
    }
}
