//! Policy of an AVF's VF, and its encoding in a saved state. The encoding has the longest frame in place of the MTU,
//! adds queue pairs, and omits settings that the family lacks.

use super::limits::{AROUND, LIMITS};
use ::avf::ids::{BASE_PAIRS, MAX_PAIRS};
use i82576::MacAddress;
use policy::{PortVlan, VfLinkPolicy, VfPolicy, VlanSet};
use serde::{Deserialize, Serialize};

/// Policy of one VF, and the numbers of its queue pairs, as the administrator set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "SavedAvfVfPolicy<bool>", from = "SavedAvfVfPolicy<bool>")]
pub(super) struct AvfVfPolicy {
    pub(super) policy: VfPolicy,
    /// Number of queue pairs that the VF gets if it requests no number.
    pub(super) pairs: u16,
    /// Maximum number of queue pairs that the VF may request.
    pub(super) most_pairs: u16,
}

impl AvfVfPolicy {
    /// Returns true if the VF's numbers of queue pairs are valid and consistent.
    pub(super) fn has_pairs(&self) -> bool {
        (1..=self.most_pairs).contains(&self.pairs) && usize::from(self.most_pairs) <= MAX_PAIRS
    }
}

impl Default for AvfVfPolicy {
    fn default() -> Self {
        Self { policy: VfPolicy::default(), pairs: BASE_PAIRS as u16, most_pairs: MAX_PAIRS as u16 }
    }
}

/// Encoding of an [`AvfVfPolicy`] in saved states. `S` encodes whether the VF may share addresses.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename = "AvfPolicy")]
pub(super) struct SavedAvfVfPolicy<S> {
    mac: Option<MacAddress>,
    admin_mac: bool,
    vlan: Option<PortVlan>,
    vlans: Option<VlanSet>,
    spoofchk: bool,
    trust: bool,
    allmulti: bool,
    enabled: bool,
    state: VfLinkPolicy,
    max_frame: u16,
    pairs: u16,
    most_pairs: u16,
    max_tx_rate: u32,
    share_mac: S,
}

impl<S: Into<bool>> From<SavedAvfVfPolicy<S>> for AvfVfPolicy {
    fn from(saved: SavedAvfVfPolicy<S>) -> Self {
        let max_mtu = saved.max_frame.saturating_sub(AROUND);
        let policy = VfPolicy {
            mac: saved.mac,
            admin_mac: saved.admin_mac,
            vlan: saved.vlan,
            vlans: saved.vlans,
            spoofchk: saved.spoofchk,
            trust: saved.trust,
            allmulti: saved.allmulti,
            enabled: saved.enabled,
            state: saved.state,
            max_mtu: (saved.max_frame != LIMITS.max_frame).then_some(max_mtu),
            max_tx_rate: saved.max_tx_rate,
            share_mac: saved.share_mac.into(),
            ..VfPolicy::default()
        };
        Self { policy, pairs: saved.pairs, most_pairs: saved.most_pairs }
    }
}

impl From<AvfVfPolicy> for SavedAvfVfPolicy<bool> {
    fn from(AvfVfPolicy { policy, pairs, most_pairs }: AvfVfPolicy) -> Self {
        Self {
            mac: policy.mac,
            admin_mac: policy.admin_mac,
            vlan: policy.vlan,
            vlans: policy.vlans,
            spoofchk: policy.spoofchk,
            trust: policy.trust,
            allmulti: policy.allmulti,
            enabled: policy.enabled,
            state: policy.state,
            max_frame: policy.longest_frame(&LIMITS),
            pairs,
            most_pairs,
            max_tx_rate: policy.max_tx_rate,
            share_mac: policy.share_mac,
        }
    }
}
