//! Applies a port's mirror rules and storm control to the switch of an AVF or virtio card, which has no registers for
//! them. The 82576 has such registers. The software of the PF applies the policies of VFs.

use i82576::Time;
use plane::switch::{PortMirrorRule, PortMirrorRules, StormLimit, StormLimits};
use plane::{ForwardingPlane, PortIndex, PortSet};
use policy::{PortPolicy, VfMirrorRule, VlanSet};
use units::VlanIds;

/// Length of a millisecond in nanoseconds.
const MILLISECOND: u64 = 1_000_000;

/// Highest number of storms that a saved state may have. No port detects more, and a counter below this limit cannot
/// overflow.
pub(super) const MOST_STORMS: u64 = 1 << 62;

/// Policy of a port, and the state of its storm control.
#[derive(Debug)]
pub(super) struct SwitchPolicyState {
    pub(super) policy: PortPolicy,
    /// Number of storms that storm control has detected.
    pub(super) storms: u64,
    stormy: bool,
}

impl SwitchPolicyState {
    pub(super) fn new(policy: PortPolicy) -> Self {
        Self::resume(policy, (0, false))
    }

    /// Creates the port's policy with the previous host process's number of storms. `stormy` is true if a storm is
    /// active.
    pub(super) fn resume(policy: PortPolicy, (storms, stormy): (u64, bool)) -> Self {
        Self { policy, storms, stormy }
    }

    /// Returns the number of storms so far, and true if a storm is active.
    pub(super) fn seen(&self) -> (u64, bool) {
        (self.storms, self.stormy)
    }

    pub(super) fn mirrors(&self) -> PortMirrorRules {
        let mut mirrors = PortMirrorRules::default();
        self.policy.mirrors.iter().flatten().for_each(|mirror| mirrors.add(rule(mirror)));
        mirrors
    }

    /// Returns true if storm control limits frames.
    pub(super) fn limits_storms(&self) -> bool {
        let storm = &self.policy.storm;
        storm.broadcast != 0 || storm.multicast != 0
    }

    /// Advances the time windows of the switch's storm control, after applying changed limits.
    pub(super) fn pass_windows<const N: usize>(&self, plane: &mut ForwardingPlane<N>) {
        let limits = self.limits();
        if plane.storm.limits != limits {
            plane.storm.limits = limits;
            plane.storm.restart(plane.now);
        }
        plane.storm.advance(plane.now);
    }

    /// Counts a broadcast or multicast storm that has begun. While a storm is on, returns the time of the next check
    /// for its end.
    pub(super) fn watch<const N: usize>(&mut self, plane: &ForwardingPlane<N>) -> Option<Time> {
        let stormy = plane.storm.is_on();
        self.storms += u64::from(stormy && !self.stormy);
        self.stormy = stormy;
        stormy.then(|| plane.storm.ends())
    }

    /// Returns the limits of storm control for the switch. Frames beyond a threshold are dropped until the window ends.
    fn limits(&self) -> StormLimits {
        let storm = &self.policy.storm;
        let limit = |kbps| StormLimit { threshold: storm.blocks(kbps), drops: true, drops_next: false };
        let window = u64::from(storm.window_ms) * MILLISECOND;
        StormLimits { kinds: [limit(storm.broadcast), limit(storm.multicast)], window, counts_unknown: false }
    }
}

fn rule(mirror: &VfMirrorRule) -> PortMirrorRule {
    let VfMirrorRule { to, vfs, ingress, egress, vlans } = mirror;
    PortMirrorRule {
        to: PortIndex::of_field(to.get().into()).only(),
        ports: PortSet::new(vfs.bits()),
        from_uplink: *ingress,
        to_uplink: *egress,
        vlans: vlans.as_ref().map_or(VlanIds::new(), ids),
    }
}

/// Returns the VLAN ids of a set without 0, which stands for untagged frames.
fn ids(set: &VlanSet) -> VlanIds {
    let mut ids = *set.ids();
    ids.remove(0);
    ids
}
