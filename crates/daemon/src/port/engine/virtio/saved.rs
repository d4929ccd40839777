//! Creates, saves and restores a virtio port. Policies, conduct and storms outlive the process. The devices are new in
//! each process: their rings start when the clients connect again.

use super::VirtioCard;
use crate::config::PortConfig;
use crate::config::file::CardFamily;
use crate::port::engine::bus::GuestBus;
use crate::port::engine::decided::{
    VfPolicyState, configured, decided, monitors_of_all, quarantine_changes, still_decided, still_policy,
    take_distrusted,
};
use crate::port::engine::error::InheritedStateError;
use crate::port::engine::family::InheritedCard;
use crate::port::engine::owed_work::OwedWork;
use crate::port::engine::revocation::AddressRevocation;
use crate::port::engine::switch_policy::{MOST_STORMS, SwitchPolicyState};
use crate::state::port::ClientState;
use crate::state::{self, PausedVirtioPortState, SavedStateError, VirtioPortState};
use crate::virtio_limits::LIMITS;
use driver::conduct::VfConductMonitor;
use i82576::Time;
use pcie::{VfIndex, VfSet};
use plane::pacing::TransmitPacing;
use plane::switch::{StormState, SwitchTables};
use plane::{ForwardingPlane, PortCounters};
use policy::RefusedVf;
use virtio_nic::{MAX_VFS, Nic};

impl VirtioCard {
    /// Creates a virtio port whose devices have no rings.
    fn bring_up(
        config: &PortConfig,
        link: bool,
        rules: SwitchPolicyState,
        decided: Vec<VfPolicyState>,
        conduct: Vec<VfConductMonitor>,
    ) -> Self {
        let counters = [PortCounters::default(); MAX_VFS];
        let plane = ForwardingPlane::new(
            SwitchTables::closed(0),
            TransmitPacing::new(None),
            StormState::default(),
            counters,
        );
        let throttled = VfIndex::first(MAX_VFS).zip(&conduct).filter(|(_, monitor)| monitor.throttled());
        let throttled: VfSet = throttled.map(|(vf, _)| vf).collect();
        let mut port = Self {
            card: Nic::new(MAX_VFS as u8),
            plane: Box::new(plane),
            decided,
            conduct,
            throttled,
            resets: [0; MAX_VFS],
            rules,
            configured: configured(config),
            others: config
                .all_vfs()
                .filter(|vf| vf.family != CardFamily::Virtio)
                .map(|vf| vf.index)
                .collect(),
            changed: true,
            link,
            owed: OwedWork::default(),
            workers: None,
        };
        port.enforce_all();
        for (vf, on) in quarantine_changes(config, |vf| port.conduct[vf.index()].quarantined()) {
            port.set_quarantine(vf, on);
        }
        port
    }

    /// Creates a new virtio port from its configuration.
    pub(in crate::port) fn new(config: &PortConfig, link: bool) -> Self {
        let rules = SwitchPolicyState::new(config.policy);
        Self::bring_up(config, link, rules, decided(config), monitors_of_all(Vec::new()))
    }

    /// Creates a virtio port with the policies and the conduct in `bytes`, which the previous host process saved.
    /// Settings that the configuration has changed are applied.
    pub(in crate::port) fn by_software(
        config: &PortConfig,
        link: bool,
        bytes: &[u8],
    ) -> Result<Self, InheritedStateError> {
        let state: VirtioPortState = state::read(bytes)?;
        Self::inherit(config, link, state, (0, false))
    }

    /// Restores a virtio port from the saved state of the whole port. Settings that the configuration has changed are
    /// applied.
    pub(in crate::port) fn resume(
        config: &PortConfig,
        bytes: &[u8],
    ) -> Result<InheritedCard<Self>, InheritedStateError> {
        let mut state: VirtioPortState = state::read(bytes)?;
        let PausedVirtioPortState { link, storms, watched, clients } =
            state.rest.take().ok_or(SavedStateError::Body)?;
        if clients.len() != config.vfs.len() {
            return Err(InheritedStateError::Functions);
        }
        let card = Self::inherit(config, link, state, storms)?;
        Ok(InheritedCard { card: Box::new(card), watched, functions: clients })
    }

    /// Creates a virtio port from a checked state of the previous host process.
    fn inherit(
        config: &PortConfig,
        link: bool,
        state: VirtioPortState,
        storms: (u64, bool),
    ) -> Result<Self, InheritedStateError> {
        let VirtioPortState { policies, conduct, configured: before, policy, .. } = state;
        let sound = policies.iter().all(|policy| policy.check(&LIMITS).is_ok())
            && policy.check(&LIMITS).is_ok()
            && conduct.iter().all(VfConductMonitor::is_sound)
            && [policies.len(), conduct.len()].into_iter().all(|count| count <= MAX_VFS)
            && storms.0 < MOST_STORMS;
        if !sound {
            return Err(SavedStateError::Body.into());
        }
        let decided = still_decided(config, &before, &policies);
        let rules = SwitchPolicyState::resume(still_policy(config, &before, policy), storms);
        let mut port = Self::bring_up(config, link, rules, decided, monitors_of_all(conduct));
        // The clients of the previous process connect again, with rings that have run there.
        for vf in VfIndex::first(MAX_VFS) {
            port.card.expect_same_guest(vf.get());
        }
        Ok(port)
    }

    /// Encodes policies and conduct, which outlive the process.
    pub(in crate::port::engine) fn saved(
        &self,
        rest: Option<PausedVirtioPortState>,
    ) -> Result<Vec<u8>, SavedStateError> {
        state::write(&VirtioPortState {
            policies: self.decided.iter().map(|decided| decided.policy).collect(),
            conduct: self.conduct.clone(),
            configured: self.configured.clone(),
            policy: self.rules.policy,
            rest,
        })
    }

    /// Encodes the state of the whole port for the successor process, while the port's loop is between two rounds.
    pub(in crate::port::engine) fn at_rest(
        &self,
        watched: Time,
        clients: Vec<ClientState>,
    ) -> Result<Vec<u8>, SavedStateError> {
        let storms = self.rules.seen();
        self.saved(Some(PausedVirtioPortState { link: self.link, storms, watched, clients }))
    }
}

impl AddressRevocation for VirtioCard {
    fn take_distrusted(&mut self) -> VfSet {
        take_distrusted(&mut self.decided)
    }

    fn revoke_addresses(&mut self, vfs: VfSet, _: &mut GuestBus, _: Time) -> Result<(), RefusedVf> {
        vfs.iter().for_each(|vf| self.revoke_address(vf));
        Ok(())
    }
}

/// Restores a virtio port from bytes that claim to be its state. Returns the state that it saves again, or `None` if it
/// refuses the bytes. The fuzz target of saved states calls it.
#[must_use]
pub fn restored_virtio_state(config: &PortConfig, bytes: &[u8]) -> Option<Vec<u8>> {
    let resumed = VirtioCard::resume(config, bytes);
    let card = VirtioCard::by_software(config, true, bytes).ok()?;
    let saved = card.saved(None).ok()?;
    if let Ok(resumed) = resumed {
        assert_eq!(
            resumed.card.saved(None).ok().as_ref(),
            Some(&saved),
            "both ways restore the same policies"
        );
    }
    Some(saved)
}
