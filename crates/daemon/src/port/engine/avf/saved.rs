//! Creates, saves and restores an AVF port. A port is new, or resumed from the saved state of the whole port, or set
//! up from the driver state that outlives the card. In the last case the card is new: a guest's driver finds its
//! mailbox disabled, and sets its VF up again as after any reset.

#[cfg(test)]
mod tests;

use super::AvfCard;
use super::hal::{AvfPfHal, PfDmaMemory};
use super::parts::AvfCardPart;
use crate::config::PortConfig;
use crate::pf_config::PF_RID;
use crate::port::engine::bus::GuestBus;
use crate::port::engine::decided::{
    VfPolicyState, configured, decided, hidden_vfs, monitors_of_all, quarantine_changes, still_decided,
    still_policy, take_distrusted,
};
use crate::port::engine::error::{InheritedStateError, PortEngineStartError};
use crate::port::engine::family::{InheritedCard, PortCard as _, not_offered};
use crate::port::engine::revocation::{AddressRevocation, lost_again};
use crate::port::engine::switch_policy::{MOST_STORMS, SwitchPolicyState};
use crate::state::port::{ClientState, ConfiguredPolicies};
use crate::state::{self, AvfPortState, PausedAvfPortState, SavedStateError};
use avf::ids::MAX_VFS;
use avf_nic::Nic;
use driver::avf::pf::{AvfPf, LIMITS};
use driver::conduct::VfConductMonitor;
use i82576::Time;
use iovm::{VirtualFunction, VirtualFunctionState};
use pcie::sriov::VfRoutingIds;
use pcie::{VfIndex, VfSet};
use plane::pacing::TransmitPacing;
use plane::switch::{StormState, SwitchTables};
use plane::{ForwardingPlane, PortCounters};
use policy::{PortPolicy, RefusedVf, VfPolicy};

/// Routing ids of VFs relative to the PF's, as on an X710.
const PLACEMENT: VfRoutingIds = VfRoutingIds { first_offset: 16, stride: 1 };

/// Number of VFs of a new card: the maximum, however many VFs the port offers.
const VFS: u8 = MAX_VFS as u8;

/// Parts of an AVF port: card, PF driver and switch.
struct AvfCardParts {
    card: Nic,
    pf: AvfPf,
    pf_memory: PfDmaMemory,
    plane: Box<ForwardingPlane<MAX_VFS>>,
}

impl AvfCard {
    /// Creates an AVF port from card, PF driver and switch, with its PCI functions as after power-on.
    fn assemble(
        parts: AvfCardParts,
        link: bool,
        configured: ConfiguredPolicies<PortPolicy>,
        rules: SwitchPolicyState,
        decided: Vec<VfPolicyState>,
    ) -> Self {
        // A copy shares the layout of 16 KiB.
        let space = avf::config::space();
        let function = |vf: VfIndex| {
            let rid = PLACEMENT.rid(PF_RID, vf.get()).unwrap_or(PF_RID);
            VirtualFunction::of(vf, rid, space.clone())
        };
        let AvfCardParts { card, pf, pf_memory, plane } = parts;
        Self {
            card: AvfCardPart::new(card),
            pf,
            pf_memory,
            plane,
            functions: VfIndex::first(MAX_VFS).map(function).collect(),
            decided,
            rules,
            configured,
            asking: VfSet::NONE,
            unfinished: false,
            link,
            link_changed: false,
            workers: None,
        }
    }

    /// Creates an AVF card as after power-on, with its PF driver and the given policies of the VFs.
    fn bring_up(
        link: bool,
        configured: ConfiguredPolicies<PortPolicy>,
        policy: PortPolicy,
        decided: Vec<VfPolicyState>,
        (guests, now): (&mut GuestBus, Time),
    ) -> Result<Self, PortEngineStartError> {
        let (mut card, mut pf_memory) = (Nic::new(VFS), PfDmaMemory::new());
        let counters = [PortCounters::default(); MAX_VFS];
        let mut plane = Box::new(ForwardingPlane::new(
            SwitchTables::closed(0),
            TransmitPacing::new(None),
            StormState::default(),
            counters,
        ));
        let (memory, guards) = (&mut pf_memory, &mut *plane);
        let mut hal = AvfPfHal { card: &mut card, pf_memory: memory, guests, guards, now, charges: false };
        let pf =
            AvfPf::probe(&mut hal, VFS).map_err(|error| PortEngineStartError::Card(error.to_string()))?;
        let parts = AvfCardParts { card, pf, pf_memory, plane };
        let mut avf = Self::assemble(parts, link, configured, SwitchPolicyState::new(policy), decided);
        for vf in VfIndex::first(MAX_VFS) {
            avf.enforce(vf, guests, now).map_err(|error| PortEngineStartError::Card(error.to_string()))?;
        }
        avf.visit(guests, now);
        Ok(avf)
    }

    /// Creates a new AVF port from its configuration.
    pub(in crate::port) fn new(
        config: &PortConfig,
        link: bool,
        guests: &mut GuestBus,
        now: Time,
    ) -> Result<Self, PortEngineStartError> {
        let mut avf =
            Self::bring_up(link, configured(config), config.policy, decided(config), (guests, now))?;
        avf.apply_quarantines(config, guests, now);
        Ok(avf)
    }

    /// Creates an AVF port with a new card and the previous host process's driver state (`bytes`). `since` holds PCI
    /// configurations that guests changed after that state was saved. Settings that the configuration has changed are
    /// applied.
    pub(in crate::port) fn by_software(
        config: &PortConfig,
        link: bool,
        (bytes, since): (&[u8], Vec<(VfIndex, VirtualFunctionState)>),
        guests: &mut GuestBus,
        now: Time,
    ) -> Result<Self, InheritedStateError> {
        let AvfPortState { mut functions, policies, conduct, configured: before, policy, .. } =
            state::read(bytes)?;
        let decided = still_decided(config, &before, &policies);
        let policy = still_policy(config, &before, policy);
        let mut avf = Self::bring_up(link, configured(config), policy, decided, (guests, now))?;
        avf.with_pf(guests, now, |pf, hal| pf.resume_conduct(hal, monitors_of_all(conduct)))?;
        avf.apply_quarantines(config, guests, now);
        for (vf, configured) in since {
            if let Some(function) = functions.get_mut(vf.index()) {
                *function = configured;
            }
        }
        // A guest with an invalid configuration space sets it up again, as after power-on.
        avf.load(config, &functions);
        Ok(avf)
    }

    /// Restores an AVF port from the saved state of the whole port. No VF is reset, and no driver is notified.
    /// Settings that the configuration has changed are applied.
    pub(in crate::port) fn resume(
        config: &PortConfig,
        bytes: &[u8],
        guests: &mut GuestBus,
        now: Time,
    ) -> Result<InheritedCard<Self>, InheritedStateError> {
        let AvfPortState { functions, policies, conduct, configured: before, policy, rest } =
            state::read(bytes)?;
        let PausedAvfPortState { card, pf, hidden, asking, link, storms, watched, clients } =
            rest.ok_or(SavedStateError::Body)?;
        let (vfs, others) = (card.vfs(), [pf.vfs(), policies.len(), functions.len(), conduct.len()]);
        if clients.len() != config.vfs.len() || clients.len() > vfs || others != [vfs; 4] {
            return Err(InheritedStateError::Functions);
        }
        if storms.0 >= MOST_STORMS {
            return Err(SavedStateError::Body.into());
        }
        let (mut card, mut plane) = Nic::restore(card)?;
        let mut pf_memory = PfDmaMemory::new();
        let (memory, guards) = (&mut pf_memory, &mut *plane);
        let mut hal = AvfPfHal { card: &mut card, pf_memory: memory, guests, guards, now, charges: false };
        let mut pf = AvfPf::restore(&mut hal, pf)?;
        // Cards of earlier versions had eight VFs.
        hal.card.grow(VFS);
        pf.grow(VFS);
        pf.resume_conduct(&mut hal, monitors_of_all(conduct))?;
        let was = |vf: VfIndex| VfPolicyState {
            policy: policies.get(vf.index()).copied().unwrap_or_else(not_offered),
            hidden: hidden.has(vf),
            is_distrusted: false,
        };
        let were = VfIndex::first(MAX_VFS).map(was).collect();
        let rules = SwitchPolicyState::resume(still_policy(config, &before, policy), storms);
        let parts = AvfCardParts { card, pf, pf_memory, plane };
        let mut avf = Self::assemble(parts, link, configured(config), rules, were);
        avf.asking = asking;
        // The guests' memory is not mapped yet, and a message to it would stop its queue: a changed link's message waits until
        // its VF is a bus master again. The notice of a reset does not: the reset drops it, and drivers find the reset.
        VfIndex::first(vfs).for_each(|vf| avf.card.nic.set_bus_master(vf.get(), false));
        avf.decide(&still_decided(config, &before, &policies), guests, now)
            .map_err(|(vf, error)| PortEngineStartError::Card(format!("VF {vf}: {error}")))?;
        avf.apply_quarantines(config, guests, now);
        if !avf.load(config, &functions) {
            return Err(SavedStateError::Body.into());
        }
        Ok(InheritedCard { card: Box::new(avf), watched, functions: clients })
    }

    /// Quarantines and releases VFs as the configuration demands. A quarantine for an offence stays.
    fn apply_quarantines(&mut self, config: &PortConfig, guests: &mut GuestBus, now: Time) {
        let cause = |vf: VfIndex| self.pf.conduct(vf.get()).and_then(VfConductMonitor::quarantined);
        for (vf, on) in quarantine_changes(config, cause) {
            self.quarantine(vf, on, guests, now);
        }
    }

    /// Sets the policies of all VFs of the port. If any differs from the PF driver's, the driver applies all of them
    /// together, since addresses may be swapped.
    fn decide(
        &mut self,
        latest: &[VfPolicyState],
        guests: &mut GuestBus,
        now: Time,
    ) -> Result<(), RefusedVf> {
        for (decided, latest) in self.decided.iter_mut().zip(latest) {
            *decided = VfPolicyState { hidden: decided.hidden, ..*latest };
        }
        let in_force: Vec<_> = self.decided.iter().map(VfPolicyState::in_force).collect();
        let has = |(vf, policy): (u8, &VfPolicy)| {
            self.pf.policy(vf).is_some_and(|had| had.is_alike(policy, &LIMITS))
        };
        if (0..).zip(&in_force).all(has) {
            return Ok(());
        }
        self.with_pf(guests, now, |pf, hal| pf.set_policies(hal, &in_force))
    }

    /// Loads the PCI configurations of the port's VFs. Returns `false` if a configuration space is invalid.
    fn load(&mut self, config: &PortConfig, functions: &[VirtualFunctionState]) -> bool {
        let mut sound = true;
        let offered = VfIndex::first(config.vfs.len());
        for ((vf, function), state) in offered.zip(&mut self.functions).zip(functions) {
            if function.load(state) {
                self.card.nic.set_bus_master(vf.get(), function.endpoint().bus_master());
            } else {
                sound = false;
            }
        }
        sound
    }

    /// Encodes the port's driver state, which outlives the card.
    pub(in crate::port::engine) fn saved(&self) -> Result<Vec<u8>, SavedStateError> {
        state::write(&self.state(None))
    }

    /// Encodes the state of the whole AVF port for the successor process, while the port's loop is between two rounds.
    pub(in crate::port::engine) fn at_rest(
        &mut self,
        watched: Time,
        clients: Vec<ClientState>,
        guests: &mut GuestBus,
        now: Time,
    ) -> Result<Vec<u8>, SavedStateError> {
        let rest = PausedAvfPortState {
            card: self.card.nic.save(&self.plane),
            pf: self.with_pf(guests, now, |pf, hal| pf.save(hal)),
            hidden: hidden_vfs(&self.decided),
            asking: self.asking,
            link: self.link,
            storms: self.rules.seen(),
            watched,
            clients,
        };
        state::write(&self.state(Some(rest)))
    }

    fn state(&self, rest: Option<PausedAvfPortState>) -> AvfPortState {
        AvfPortState {
            functions: self.functions.iter().map(VirtualFunction::save).collect(),
            policies: self.decided.iter().map(|decided| decided.policy).collect(),
            conduct: self.pf.monitors(),
            configured: self.configured.clone(),
            policy: self.rules.policy,
            rest,
        }
    }
}

impl AddressRevocation for AvfCard {
    fn take_distrusted(&mut self) -> VfSet {
        take_distrusted(&mut self.decided)
    }

    fn revoke_addresses(&mut self, vfs: VfSet, bus: &mut GuestBus, now: Time) -> Result<(), RefusedVf> {
        for vf in vfs.iter() {
            for policy in lost_again(self.decided[vf.index()].in_force()) {
                let set = self.with_pf(bus, now, |pf, hal| pf.set_policy(hal, vf.get(), policy));
                set.map_err(|error| (vf, error))?;
            }
        }
        Ok(())
    }
}
