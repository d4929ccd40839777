//! Creates, saves and restores a port with an 82576. A port is new, or resumed as it was at rest, or set up by the
//! state that outlives the card.

use super::I82576;
use super::hal::PfHal;
use super::pf_owner::{COMMAND, Hosted, PfOwner, configured, owner};
use crate::config::PortConfig;
use crate::pf_config::{ConfigSpace, PF_RID};
use crate::port::engine::error::{EngineError, InheritanceError};
use crate::port::engine::family::Inherited;
use crate::state::port::{GuestState, HostedState, PortState};
use crate::state::{self, SoftwareState};
use driver::pf::Pf;
use i82576::ids::MAX_VFS;
use i82576::{Time, VfIndex};
use iovm::{FunctionState, Hierarchy, Manager, State};
use nic::Nic;
use pcie::config::offset;
use pcie::msix::Control;
use pcie::{ConfigAccess, Function};

/// Bytes of configuration space that a guest's PF is set up by.
const CONFIG: usize = 256;

impl I82576 {
    /// Creates a port's card without any state of the previous process.
    pub(in crate::port) fn bring_up(config: &PortConfig, link: bool, now: Time) -> Result<Self, EngineError> {
        let (nic, pf_owner) = PfOwner::bring_up(config, link, now)?;
        Ok(Self::new(nic, pf_owner))
    }

    /// Restores the card from [`save_all`](crate::port::engine::family::Family::save_all) without a reset. Settings
    /// that the configuration has changed are applied.
    pub(in crate::port) fn resume(
        config: &PortConfig,
        bytes: &[u8],
        now: Time,
    ) -> Result<Inherited, InheritanceError> {
        let PortState { card, table, configured, watched, functions } = state::read(bytes)?;
        let restored = card.restore()?;
        let mut nic = restored.nic;
        let pf_owner = match (restored.pf, restored.manager, configured, table) {
            (Some(pf), Some(manager), Some(configured), None) if config.pf_socket.is_none() => {
                if functions.len() != config.vfs.len() {
                    return Err(InheritanceError::Functions);
                }
                PfOwner::Host(Box::new(Hosted { pf, manager, configured }))
            }
            (None, None, None, Some(state)) if config.pf_socket.is_some() => {
                let mut pf_owner = PfOwner::of_guest();
                if let PfOwner::Guest(table) = &mut pf_owner {
                    table.load(&state, Control::default());
                }
                pf_owner
            }
            _ => return Err(InheritanceError::Functions),
        };
        let pf_owner = pf_owner.configured(config, &mut nic, now)?;
        Ok(Inherited { card: Box::new(Self::new(nic, pf_owner)), watched, functions })
    }

    /// Creates a new card, set up by the drivers' state that was in force. `functions` hold configuration that
    /// guests have changed since.
    pub(in crate::port) fn by_software(
        config: &PortConfig,
        link: bool,
        bytes: &[u8],
        functions: Vec<(pcie::VfIndex, FunctionState)>,
        now: Time,
    ) -> Result<Self, InheritanceError> {
        let SoftwareState { mut hosted, guest } = state::read(bytes)?;
        let slots = hosted.as_mut().map_or(&mut [][..], |hosted| &mut hosted.manager.slots);
        for (vf, function) in functions {
            if let Some(slot) = slots.get_mut(vf.index()) {
                slot.function = function;
            }
        }
        let mut nic = Nic::new(nic::Config { mac: config.mac, iov: hosted.is_some(), loopback: None });
        // The PF driver accepts rates only with a link, as at a new card.
        nic.set_link(link || hosted.is_some());
        let pf_owner = match (hosted, guest) {
            (Some(hosted), None) if config.pf_socket.is_none() => {
                let hosted = Hosted::set_up(config, &mut nic, hosted, now)?;
                PfOwner::Host(Box::new(hosted)).configured(config, &mut nic, now)?
            }
            (None, Some(guest)) if config.pf_socket.is_some() => PfOwner::set_up_guest(&mut nic, &guest),
            _ => return Err(InheritanceError::Functions),
        };
        nic.set_link(link);
        Ok(Self::new(nic, pf_owner))
    }
}

impl Hosted {
    fn set_up(
        config: &PortConfig,
        nic: &mut Nic,
        state: HostedState,
        now: Time,
    ) -> Result<Self, InheritanceError> {
        let HostedState { pf, mut manager, configured } = state;
        nic.config_write(Function::Pf, offset::COMMAND, 2, COMMAND.into());
        let mut pf = Pf::restore(pf).map_err(crate::state::card::RestoreError::from)?;
        let mut fresh = Manager::discover(&mut ConfigSpace(nic), PF_RID).map_err(EngineError::from)?;
        fresh.enable(&mut ConfigSpace(nic), MAX_VFS as u16, Hierarchy::Ari).map_err(EngineError::from)?;
        for (slot, vf) in manager.slots.iter_mut().zip(VfIndex::all()) {
            let offered = vf.index() < config.vfs.len();
            slot.state = if offered { State::Assigned(owner(vf)) } else { State::Present };
        }
        let manager = Manager::restore(&mut ConfigSpace(nic), PF_RID, &manager)
            .map_err(crate::state::card::RestoreError::from)?;
        for vf in VfIndex::all().take(config.vfs.len()) {
            let master = manager.function(vf).is_some_and(|function| function.endpoint().bus_master());
            nic.set_bus_master(Function::Vf(vf.get()), master);
        }
        let mut hal = PfHal::new(nic, now);
        pf.reset(&mut hal).map_err(EngineError::from)?;
        pf.enable_vfs(&mut hal, config.vfs.len() as u8).map_err(EngineError::from)?;
        pf.notify_all(&mut hal);
        Ok(Self { pf, manager, configured })
    }
}

impl PfOwner {
    /// Applies settings that the configuration has changed since the previous process read it.
    fn configured(mut self, config: &PortConfig, nic: &mut Nic, now: Time) -> Result<Self, EngineError> {
        let wanted = configured(config);
        let Some(Hosted { pf, configured: before, .. }) = self.hosted() else { return Ok(self) };
        let mut hal = PfHal::new(nic, now);
        if before.port != wanted.port {
            pf.set_port_policy(&mut hal, config.policy)?;
        }
        let mut policies: Vec<_> = VfIndex::all().map(|vf| *pf.policy(vf)).take(config.vfs.len()).collect();
        let mut changed = false;
        for (at, (policy, vf)) in policies.iter_mut().zip(&config.vfs).enumerate() {
            if before.vfs.get(at) != Some(&vf.policy) {
                (*policy, changed) = (vf.policy, true);
            }
        }
        // Policies are set together, since addresses may be swapped.
        if changed {
            pf.set_policies(&mut hal, &policies).map_err(|(_, error)| error)?;
        }
        *before = wanted;
        Ok(self)
    }

    /// Restores a PF's configuration space and MSI-X table. The rest is as after power-on, and the guest's driver
    /// has to set it up again.
    fn set_up_guest(nic: &mut Nic, state: &GuestState) -> Self {
        let mut pf_owner = Self::of_guest();
        for (word, at) in state.config.chunks_exact(4).take(CONFIG / 4).zip((0_u64..).step_by(4)) {
            pf_owner.config_write(nic, Function::Pf, at, word);
        }
        if let Self::Guest(table) = &mut pf_owner {
            table.load(&state.table, Control::default());
        }
        pf_owner
    }

    /// Returns the state that outlives the card.
    pub(super) fn save_drivers(&self, nic: &mut Nic) -> SoftwareState {
        match self {
            Self::Host(hosted) => {
                let Hosted { pf, manager, configured } = &**hosted;
                let configured = configured.clone();
                let hosted = HostedState { pf: pf.save(), manager: manager.save(), configured };
                SoftwareState { hosted: Some(hosted), guest: None }
            }
            Self::Guest(table) => {
                let mut config = vec![0; CONFIG];
                nic.config_read_bytes(Function::Pf, 0, &mut config);
                SoftwareState { hosted: None, guest: Some(GuestState { config, table: table.save() }) }
            }
        }
    }
}
