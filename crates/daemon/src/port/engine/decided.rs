//! Policies in force for the VFs of an AVF or virtio port. A restored port keeps the previous host process's policies,
//! except those that the configuration has changed.

use super::family::not_offered;
use super::revocation::loses_right;
use crate::config::{PortConfig, VfConfig};
use crate::state::port::ConfiguredPolicies;
use driver::conduct::{QuarantineCause, VfConductMonitor};
use pcie::{MAX_VFS, VfIndex, VfSet};
use policy::{PortPolicy, VfLinkPolicy, VfPolicy};

/// Policy of a VF, and a flag that hides the link from the VF.
#[derive(Debug, Clone, Copy)]
pub(super) struct VfPolicyState {
    pub(super) policy: VfPolicy,
    /// True while the VF's client is being disconnected, and the VF sees no link.
    pub(super) hidden: bool,
    /// True if the VF has lost the right to use addresses of others since the previous host process.
    pub(super) is_distrusted: bool,
}

impl VfPolicyState {
    /// Returns the VF's policy in force: the configured one, but with the link down while the VF's client is being
    /// disconnected.
    pub(super) fn in_force(&self) -> VfPolicy {
        let state = if self.hidden { VfLinkPolicy::Disable } else { self.policy.state };
        VfPolicy { state, ..self.policy }
    }
}

/// Returns the policies of the port and its VFs in the configuration.
pub(super) fn configured(config: &PortConfig) -> ConfiguredPolicies<PortPolicy> {
    ConfiguredPolicies { port: config.policy, vfs: config.vfs.iter().map(|vf| vf.policy).collect() }
}

/// Returns the configured policy of every VF of the card. VFs that are not offered move no frame.
pub(super) fn decided(config: &PortConfig) -> Vec<VfPolicyState> {
    let decide = |vf: VfIndex| {
        let config = config.vfs.get(vf.index());
        let policy = config.map_or_else(not_offered, |config| config.policy);
        VfPolicyState { policy, hidden: false, is_distrusted: false }
    };
    VfIndex::first(MAX_VFS).map(decide).collect()
}

/// Returns the policy of each VF of the restored port: the previous host process's, unless the configured policy has
/// changed since.
pub(super) fn still_decided(
    config: &PortConfig,
    before: &ConfiguredPolicies<PortPolicy>,
    policies: &[VfPolicy],
) -> Vec<VfPolicyState> {
    let mut decided = decided(config);
    for (vf, now) in config.vfs.iter().zip(&mut decided) {
        let Some(policy) = policies.get(vf.index.index()) else { continue };
        if before.vfs.get(vf.index.index()) == Some(&now.policy) {
            now.policy = *policy;
        } else {
            now.is_distrusted = loses_right(policy, &now.policy);
        }
    }
    decided
}

/// Returns the policy of the restored port: the previous host process's, unless the configured policy has changed
/// since.
pub(super) fn still_policy(
    config: &PortConfig,
    before: &ConfiguredPolicies<PortPolicy>,
    policy: PortPolicy,
) -> PortPolicy {
    if before.port == config.policy { policy } else { config.policy }
}

/// Returns the VFs that have lost the right to use addresses of others since the previous host process. A later call returns none.
pub(super) fn take_distrusted(decided: &mut [VfPolicyState]) -> VfSet {
    let take = |state: &mut VfPolicyState| std::mem::take(&mut state.is_distrusted);
    let vfs = VfIndex::first(MAX_VFS).zip(decided).filter_map(|(vf, state)| take(state).then_some(vf));
    vfs.collect()
}

/// Returns the VFs that see no link because their client is being disconnected.
pub(super) fn hidden_vfs(decided: &[VfPolicyState]) -> VfSet {
    let vfs = VfIndex::first(MAX_VFS).zip(decided).filter(|(_, decided)| decided.hidden);
    vfs.map(|(vf, _)| vf).collect()
}

/// Returns a monitor of offences for every VF of the card, with an empty one for each VF that the previous host process
/// lacked.
pub(super) fn monitors_of_all(mut conduct: Vec<VfConductMonitor>) -> Vec<VfConductMonitor> {
    conduct.resize_with(MAX_VFS.max(conduct.len()), VfConductMonitor::default);
    conduct
}

/// Returns the changes by which the administrator's quarantines follow the configuration: each VF to quarantine (`true`) or to
/// release (`false`). `cause` returns the cause of a VF's quarantine. A quarantine for an offence stays, unless the
/// settings have quarantined the VF too: then it ends with theirs. Any quarantine of a VF that the configuration lacks ends: a VF
/// that is added later has another guest.
pub(super) fn quarantine_changes(
    config: &PortConfig,
    cause: impl Fn(VfIndex) -> Option<QuarantineCause>,
) -> Vec<(VfIndex, bool)> {
    let change = |vf: &VfConfig| match cause(vf.index) {
        // The process before ended between the change of the settings and that of the port.
        Some(QuarantineCause::Administrator) if !vf.quarantine => Some((vf.index, false)),
        _ => vf.quarantine.then_some((vf.index, true)),
    };
    let lacking = VfIndex::first(MAX_VFS).skip(config.vfs.len()).filter(|vf| cause(*vf).is_some());
    config.vfs.iter().filter_map(change).chain(lacking.map(|vf| (vf, false))).collect()
}
