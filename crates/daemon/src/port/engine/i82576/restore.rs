//! Creates, saves and restores a port with an 82576. A port is new, or resumed from the saved state of the whole port,
//! or set up from the driver state that outlives the card.

use super::hal::I82576PfHal;
use super::pf_owner::{COMMAND, HostedPf, PfOwner, configured, owner};
use super::{I82576Card, card_vf};
use crate::config::PortConfig;
use crate::pf_config::{CardConfigSpace, PF_RID};
use crate::port::engine::bus::GuestBus;
use crate::port::engine::error::{InheritedStateError, PortEngineStartError};
use crate::port::engine::family::InheritedCard;
use crate::port::engine::revocation::{AddressRevocation, loses_right, lost_again};
use crate::state::port::{GuestPfState, HostPfState, I82576PortState};
use crate::state::{self, PortSoftwareState};
use driver::pf::Pf;
use i82576::ids::MAX_VFS;
use i82576::{Time, VfIndex};
use iovm::{BusRouting, SrIovManager, VfAssignmentState, VirtualFunctionState};
use nic::Nic;
use pcie::config::offset;
use pcie::msix::MsiXControl;
use pcie::{ConfigAccess, Function, VfSet};
use policy::RefusedVf;

/// Number of saved bytes of a PF's configuration space, if a guest drives the PF.
const CONFIG: usize = 256;

impl I82576Card {
    /// Creates a port's card without any state of the previous host process.
    pub(in crate::port) fn bring_up(
        config: &PortConfig,
        link: bool,
        now: Time,
    ) -> Result<Self, PortEngineStartError> {
        let (nic, pf_owner) = PfOwner::bring_up(config, link, now)?;
        Ok(Self::new(nic, pf_owner))
    }

    /// Restores the card from [`save_all`](crate::port::engine::family::PortCard::save_all) without a reset. Settings
    /// that the configuration has changed are applied.
    pub(in crate::port) fn resume(
        config: &PortConfig,
        bytes: &[u8],
        now: Time,
    ) -> Result<InheritedCard, InheritedStateError> {
        let I82576PortState { card, table, configured, watched, functions } = state::read(bytes)?;
        let restored = card.restore()?;
        let mut nic = restored.nic;
        let pf_owner = match (restored.pf, restored.manager, configured, table) {
            (Some(pf), Some(manager), Some(configured), None) if config.pf_socket.is_none() => {
                if functions.len() != config.vfs.len() {
                    return Err(InheritedStateError::Functions);
                }
                PfOwner::Host(Box::new(HostedPf { pf, manager, configured, distrusted: VfSet::NONE }))
            }
            (None, None, None, Some(state)) if config.pf_socket.is_some() => {
                let mut pf_owner = PfOwner::of_guest();
                if let PfOwner::Guest(table) = &mut pf_owner {
                    table.load(&state, MsiXControl::default());
                }
                pf_owner
            }
            _ => return Err(InheritedStateError::Functions),
        };
        let pf_owner = pf_owner.configured(config, &mut nic, now)?;
        Ok(InheritedCard { card: Box::new(Self::new(nic, pf_owner)), watched, functions })
    }

    /// Creates a new card, set up from the previous host process's driver state. `functions` holds the PCI
    /// configurations that guests have changed after that state was saved.
    pub(in crate::port) fn by_software(
        config: &PortConfig,
        link: bool,
        bytes: &[u8],
        functions: Vec<(pcie::VfIndex, VirtualFunctionState)>,
        now: Time,
    ) -> Result<Self, InheritedStateError> {
        let PortSoftwareState { mut hosted, guest } = state::read(bytes)?;
        let slots = hosted.as_mut().map_or(&mut [][..], |hosted| &mut hosted.manager.slots);
        for (vf, function) in functions {
            if let Some(slot) = slots.get_mut(vf.index()) {
                slot.function = function;
            }
        }
        let mut nic = Nic::new(nic::NicConfig { mac: config.mac, iov: hosted.is_some(), loopback: None });
        // As at a new card: without a link the PF driver has the PHY negotiate, which delays a link that comes soon.
        nic.set_link(link || hosted.is_some());
        let pf_owner = match (hosted, guest) {
            (Some(hosted), None) if config.pf_socket.is_none() => {
                let hosted = HostedPf::set_up(config, &mut nic, hosted, now)?;
                PfOwner::Host(Box::new(hosted)).configured(config, &mut nic, now)?
            }
            (None, Some(guest)) if config.pf_socket.is_some() => PfOwner::set_up_guest(&mut nic, &guest),
            _ => return Err(InheritedStateError::Functions),
        };
        nic.set_link(link);
        Ok(Self::new(nic, pf_owner))
    }
}

impl AddressRevocation for I82576Card {
    fn take_distrusted(&mut self) -> VfSet {
        self.pf_owner.hosted().map(|hosted| std::mem::take(&mut hosted.distrusted)).unwrap_or_default()
    }

    fn revoke_addresses(&mut self, vfs: VfSet, _: &mut GuestBus, now: Time) -> Result<(), RefusedVf> {
        let Some(HostedPf { pf, .. }) = self.pf_owner.hosted() else { return Ok(()) };
        let mut hal = I82576PfHal::new(&mut self.nic, now);
        for vf in vfs.iter().filter_map(card_vf) {
            for policy in lost_again(*pf.policy(vf)) {
                pf.set_policy(&mut hal, vf, policy).map_err(|error| (vf.into(), error))?;
            }
        }
        Ok(())
    }
}

impl HostedPf {
    fn set_up(
        config: &PortConfig,
        nic: &mut Nic,
        state: HostPfState,
        now: Time,
    ) -> Result<Self, InheritedStateError> {
        let HostPfState { pf, mut manager, configured } = state;
        nic.config_write(Function::Pf, offset::COMMAND, 2, COMMAND.into());
        let mut pf = Pf::restore(pf).map_err(crate::state::card::CardStateError::from)?;
        let mut fresh =
            SrIovManager::discover(&mut CardConfigSpace(nic), PF_RID).map_err(PortEngineStartError::from)?;
        fresh
            .enable(&mut CardConfigSpace(nic), MAX_VFS as u16, BusRouting::Ari)
            .map_err(PortEngineStartError::from)?;
        for (slot, vf) in manager.slots.iter_mut().zip(VfIndex::all()) {
            let offered = vf.index() < config.vfs.len();
            slot.state =
                if offered { VfAssignmentState::Assigned(owner(vf)) } else { VfAssignmentState::Present };
        }
        let manager = SrIovManager::restore(&mut CardConfigSpace(nic), PF_RID, &manager)
            .map_err(crate::state::card::CardStateError::from)?;
        for vf in VfIndex::all().take(config.vfs.len()) {
            let master = manager.function(vf).is_some_and(|function| function.endpoint().bus_master());
            nic.set_bus_master(Function::Vf(vf.get()), master);
        }
        let mut hal = I82576PfHal::new(nic, now);
        pf.reset(&mut hal).map_err(PortEngineStartError::from)?;
        pf.enable_vfs(&mut hal, config.vfs.len() as u8).map_err(PortEngineStartError::from)?;
        pf.notify_all(&mut hal);
        Ok(Self { pf, manager, configured, distrusted: VfSet::NONE })
    }
}

impl PfOwner {
    /// Applies to the restored card those settings that the configuration has changed since the previous host process
    /// read it.
    fn configured(
        mut self,
        config: &PortConfig,
        nic: &mut Nic,
        now: Time,
    ) -> Result<Self, PortEngineStartError> {
        let wanted = configured(config);
        let Some(hosted) = self.hosted() else { return Ok(self) };
        let HostedPf { pf, configured: before, distrusted, .. } = &mut *hosted;
        let mut hal = I82576PfHal::new(nic, now);
        if before.port != wanted.port {
            pf.set_port_policy(&mut hal, config.policy)?;
        }
        let mut policies: Vec<_> = VfIndex::all().map(|vf| *pf.policy(vf)).take(config.vfs.len()).collect();
        let mut changed = false;
        for (at, (policy, vf)) in policies.iter_mut().zip(&config.vfs).enumerate() {
            if before.vfs.get(at) != Some(&vf.policy) {
                if loses_right(policy, &vf.policy) {
                    *distrusted = distrusted.or([vf.index].into_iter().collect());
                }
                (*policy, changed) = (vf.policy, true);
            }
        }
        // Policies are set together, since addresses may be swapped.
        if changed {
            pf.set_policies(&mut hal, &policies).map_err(|(_, error)| error)?;
        }
        *before = wanted;
        hosted.apply_quarantines(config, nic, now);
        Ok(self)
    }

    /// Restores the configuration space and MSI-X table of a PF that a guest drives. The rest is as after power-on,
    /// and the guest's driver has to set it up again.
    fn set_up_guest(nic: &mut Nic, state: &GuestPfState) -> Self {
        let mut pf_owner = Self::of_guest();
        for (word, at) in state.config.chunks_exact(4).take(CONFIG / 4).zip((0_u64..).step_by(4)) {
            pf_owner.config_write(nic, Function::Pf, at, word);
        }
        if let Self::Guest(table) = &mut pf_owner {
            table.load(&state.table, MsiXControl::default());
        }
        pf_owner
    }

    /// Returns the state of drivers and policies, which outlives the card.
    pub(super) fn save_drivers(&self, nic: &mut Nic) -> PortSoftwareState {
        match self {
            Self::Host(hosted) => {
                let HostedPf { pf, manager, configured, .. } = &**hosted;
                let configured = configured.clone();
                let hosted = HostPfState { pf: pf.save(), manager: manager.save(), configured };
                PortSoftwareState { hosted: Some(hosted), guest: None }
            }
            Self::Guest(table) => {
                let mut config = vec![0; CONFIG];
                nic.config_read_bytes(Function::Pf, 0, &mut config);
                PortSoftwareState { hosted: None, guest: Some(GuestPfState { config, table: table.save() }) }
            }
        }
    }
}
