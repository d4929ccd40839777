//! Owner of the physical function: the host, with the PF driver and the SR-IOV manager, or a guest, for which the
//! PF is a whole device. Both have configuration spaces and MSI-X tables, and this module routes accesses to them.

use super::hal::I82576PfHal;
use crate::config::PortConfig;
use crate::pf_config::{CardConfigSpace, PF_RID};
use crate::port::engine::decided::quarantine_changes;
use crate::port::engine::error::{CardChangeRefusal, PortEngineStartError};
use crate::state::port::ConfiguredPolicies;
use driver::conduct::QuarantineCause;
use driver::pf::{Pf, SavedPortPolicy};
use i82576::config::{MSIX_PBA, pf};
use i82576::ids::MAX_VFS;
use i82576::{Time, VfIndex};
use iovm::{BusRouting, SrIovManager, VfAssignmentError, VfOwner};
use nic::Nic;
use pcie::msix::MsiXTable;
use pcie::{ConfigAccess, Function, VfSet};

/// Owner of the PF: the host or a guest.
#[derive(Debug)]
pub(super) enum PfOwner {
    /// The host owns the PF and runs its driver. Guests have the VFs.
    Host(Box<HostedPf>),
    /// A guest owns the PF, with the MSI-X table as its VMM last wrote it. Eventfds deliver the interrupts.
    Guest(MsiXTable),
}

/// PF driver and SR-IOV manager that the host runs.
#[derive(Debug)]
pub(super) struct HostedPf {
    pub(super) pf: Pf,
    pub(super) manager: SrIovManager,
    /// Policies of the port and its VFs in the configuration, with the state file's changes since.
    pub(super) configured: ConfiguredPolicies,
    /// VFs that have lost the right to use addresses of others since the previous host process.
    pub(super) distrusted: VfSet,
}

/// Bits that the host's bus sets in the PF's command register.
pub(super) const COMMAND: u16 =
    pcie::config::offset::COMMAND_MEMORY | pcie::config::offset::COMMAND_BUS_MASTER;

impl PfOwner {
    /// Creates an 82576 card for the owner of its PF, with a link or without. For the host the VFs are created; for a
    /// guest the card is as after power-on.
    pub(super) fn bring_up(
        config: &PortConfig,
        link: bool,
        now: Time,
    ) -> Result<(Nic, Self), PortEngineStartError> {
        let hosted = config.pf_socket.is_none();
        let mut nic = Nic::new(nic::NicConfig { mac: config.mac, iov: hosted, loopback: None });
        // Without a link the PF driver has the PHY negotiate for two seconds, which delays a link that comes soon.
        nic.set_link(link || hosted);
        let pf_owner = if hosted {
            Self::Host(HostedPf::bring_up(config, &mut nic, now)?.into())
        } else {
            Self::of_guest()
        };
        nic.set_link(link);
        Ok((nic, pf_owner))
    }

    pub(super) fn of_guest() -> Self {
        Self::Guest(MsiXTable::new(pf::VECTORS))
    }

    /// Returns the host's PF driver and SR-IOV manager, or `None` if a guest has the PF.
    pub(super) fn hosted(&mut self) -> Option<&mut HostedPf> {
        match self {
            Self::Host(hosted) => Some(hosted),
            Self::Guest(_) => None,
        }
    }

    pub(super) fn config_read(&self, nic: &mut Nic, function: Function, offset: u64, data: &mut [u8]) {
        match (self, vf(function)) {
            (Self::Host(hosted), Some(vf)) => hosted.manager.config_read(vf, offset, data),
            _ => nic.config_read_bytes(function, offset, data),
        }
    }

    pub(super) fn config_write(&mut self, nic: &mut Nic, function: Function, offset: u64, data: &[u8]) {
        match (self, vf(function)) {
            (Self::Host(hosted), Some(vf)) => {
                hosted.manager.config_write(&mut CardConfigSpace(nic), vf, offset, data);
            }
            (Self::Guest(table), None) => {
                if nic.config_write_bytes(function, offset, data).function_reset {
                    table.reset();
                }
            }
            (Self::Host(_), None) | (Self::Guest(_), Some(_)) => {}
        }
    }

    pub(super) fn msix_read(&self, function: Function, offset: u64, data: &mut [u8]) {
        match (self, vf(function)) {
            (Self::Host(hosted), Some(vf)) => {
                if let Some(function) = hosted.manager.function(vf) {
                    function.msix_read(offset, data);
                }
            }
            // Bytes behind the table, pending bits included, read as zero: no interrupt is ever pending here.
            (Self::Guest(table), None) => table.read(offset, data),
            (Self::Host(_), None) | (Self::Guest(_), Some(_)) => {}
        }
    }

    pub(super) fn msix_write(&mut self, function: Function, offset: u64, data: &[u8]) {
        match (self, vf(function)) {
            (Self::Host(hosted), Some(vf)) => {
                if let Some(function) = hosted.manager.function_mut(vf) {
                    function.msix_write(offset, data);
                }
            }
            (Self::Guest(table), None) if offset < MSIX_PBA.into() => table.write(offset, data),
            _ => {}
        }
    }

    /// Resets a function of the card to its state after power-on. Returns `false` if the reset fails.
    pub(super) fn reset(&mut self, nic: &mut Nic, function: Function) -> bool {
        match (self, vf(function)) {
            (Self::Host(hosted), Some(vf)) => hosted.manager.reset(&mut CardConfigSpace(nic), vf).is_ok(),
            (Self::Guest(table), None) => {
                nic.conventional_reset();
                table.reset();
                true
            }
            (Self::Host(_), None) | (Self::Guest(_), Some(_)) => false,
        }
    }
}

impl HostedPf {
    /// Creates the PF driver and all VFs of the card, because SR-IOV cannot add a VF later without removing the others.
    /// Assigns each offered VF to its socket.
    fn bring_up(config: &PortConfig, nic: &mut Nic, now: Time) -> Result<Self, PortEngineStartError> {
        nic.config_write(Function::Pf, pcie::config::offset::COMMAND, 2, COMMAND.into());
        let mut pf = Pf::probe(&mut I82576PfHal::new(nic, now))?;
        let configured = configured(config);
        pf.set_port_policy(&mut I82576PfHal::new(nic, now), config.policy)?;
        let mut manager = SrIovManager::discover(&mut CardConfigSpace(nic), PF_RID)?;
        manager.enable(&mut CardConfigSpace(nic), MAX_VFS as u16, BusRouting::Ari)?;
        for (index, vf) in VfIndex::all().zip(&config.vfs) {
            pf.set_policy(&mut I82576PfHal::new(nic, now), index, vf.policy)?;
            manager.assign(&mut CardConfigSpace(nic), index, owner(index))?;
        }
        pf.enable_vfs(&mut I82576PfHal::new(nic, now), config.vfs.len() as u8)?;
        let mut hosted = Self { pf, manager, configured, distrusted: VfSet::NONE };
        hosted.apply_quarantines(config, nic, now);
        hosted.pf.visit(&mut I82576PfHal::new(nic, now));
        Ok(hosted)
    }

    /// Quarantines and releases VFs as the configuration demands. A quarantine for an offence stays.
    pub(super) fn apply_quarantines(&mut self, config: &PortConfig, nic: &mut Nic, now: Time) {
        let cause = |vf: pcie::VfIndex| self.pf.conduct(vf.try_into().ok()?).quarantined();
        for (vf, on) in quarantine_changes(config, cause) {
            let Ok(vf) = VfIndex::try_from(vf) else { continue };
            self.set_quarantine(&mut I82576PfHal::new(nic, now), vf, on);
            nic.set_vf_link(vf, self.pf.link_override(vf));
        }
    }

    /// Quarantines a VF for the administrator, or releases it. Afterwards pass [`Pf::link_override`] to the card.
    pub(super) fn set_quarantine(&mut self, hal: &mut I82576PfHal<'_>, vf: VfIndex, on: bool) {
        match on {
            true => self.pf.quarantine(hal, vf, QuarantineCause::Administrator),
            false => self.pf.release(hal, vf),
        }
    }

    /// Assigns a VF to its socket, so that the socket's client can use the VF.
    pub(super) fn offer(&mut self, nic: &mut Nic, vf: VfIndex) -> Result<(), VfAssignmentError> {
        self.manager.assign(&mut CardConfigSpace(nic), vf, owner(vf))
    }

    /// Takes a VF away from its socket, and resets the VF.
    pub(super) fn withdraw(&mut self, nic: &mut Nic, vf: VfIndex) -> Result<(), VfAssignmentError> {
        self.manager.unassign(&mut CardConfigSpace(nic), vf)
    }

    /// Has the PF driver of `port` serve `count` VFs from now on.
    pub(super) fn resize(
        &mut self,
        nic: &mut Nic,
        (port, count): (&str, u8),
        now: Time,
    ) -> Result<(), CardChangeRefusal> {
        let resized = self.pf.resize(&mut I82576PfHal::new(nic, now), count);
        resized.map_err(|error| CardChangeRefusal::Resize { name: port.to_owned(), error })
    }
}

pub(super) fn owner(vf: VfIndex) -> VfOwner {
    VfOwner(vf.get().into())
}

/// Returns the policies of the port and its VFs in the configuration.
pub(super) fn configured(config: &PortConfig) -> ConfiguredPolicies {
    let vfs = config.vfs.iter().map(|vf| vf.policy).collect();
    ConfiguredPolicies { port: SavedPortPolicy(config.policy), vfs }
}

/// Returns the index of a function's VF, or `None` for the PF.
pub(super) fn vf(function: Function) -> Option<VfIndex> {
    function.vf()?.try_into().ok()
}
