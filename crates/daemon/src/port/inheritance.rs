//! The card of a port that has a predecessor: as the other has left it, if the notes on a port at rest count; else set up
//! anew by the software that was in force, which guests take for a reset of the port.
//!
//! Left out: clients (`adopt`).

#[cfg(test)]
mod tests;

use super::bus::LiveBus;
use super::family::{self, Avf, I82576};
use super::hal::{Card, PfHal};
use super::journal::{FunctionJournal, Journal};
use super::side::{COMMAND, Hosted, Side, configured, owner};
use super::{PF_RID, Port, PortError};
use crate::config::PortConfig;
use crate::config::file::Family;
use crate::state::port::{ClientState, GuestState, HostedState, PortState};
use crate::state::{self, AvfState, SoftwareState, StateError};
use driver::pf::Pf;
use i82576::Time;
use i82576::VfIndex;
use i82576::ids::MAX_VFS;
use iovm::{FunctionState, Hierarchy, Manager, State};
use nic::Nic;
use pcie::config::offset;
use pcie::msix::Control;
use pcie::{ConfigAccess, Function};
use thiserror::Error;

/// Why what a predecessor has left cannot be used.
#[derive(Debug, Error)]
pub(super) enum InheritanceError {
    /// It cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// No card can be in this state.
    #[error(transparent)]
    Card(#[from] crate::state::card::RestoreError),
    /// No AVF card can be in this state.
    #[error(transparent)]
    Avf(#[from] avf_nic::RestoreError),
    /// Nor can its PF driver.
    #[error(transparent)]
    AvfPf(#[from] driver::avf::pf::RestoreError),
    /// The configuration has other functions now.
    #[error("the configuration has other functions than before")]
    Functions,
    /// The card does not come up.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// The bytes of configuration space that a guest's PF is set up by.
const CONFIG: usize = 256;

/// A card and its owner, and what was counted of each function.
pub(super) struct Inherited {
    pub(super) card: Box<dyn family::Family>,
    pub(super) watched: Time,
    pub(super) functions: Vec<ClientState>,
}

impl Inherited {
    /// A card that nothing was counted with.
    pub(super) fn new(card: impl family::Family + 'static) -> Self {
        Self { card: Box::new(card), watched: Time::ZERO, functions: Vec::new() }
    }
}

impl Inherited {
    /// A card with nothing from before.
    pub(super) fn anew(config: &PortConfig, link: bool, bus: &mut LiveBus) -> Result<Self, PortError> {
        Ok(match config.family {
            Family::Avf => Self::new(Avf::new(config, link, bus)?),
            Family::I82576 => {
                let (nic, side) = Side::bring_up(config, link)?;
                Self::new(I82576::new(nic, side))
            }
        })
    }
}

/// Whether a predecessor's notes, if there are some, are those of a card of the port's family.
pub(super) fn is_of_family(config: &PortConfig, software: &[u8]) -> bool {
    software.is_empty()
        || match config.family {
            Family::I82576 => state::is_kind::<SoftwareState>(software),
            Family::Avf => state::is_kind::<AvfState>(software),
        }
}

/// The card as it was at rest.
pub(super) fn at_rest(
    config: &PortConfig,
    bytes: &[u8],
    bus: &mut LiveBus,
) -> Result<Inherited, InheritanceError> {
    if config.family == Family::Avf {
        return Avf::resume(config, bytes, bus);
    }
    let PortState { card, table, configured, watched, functions } = state::read(bytes)?;
    let restored = card.restore()?;
    let mut nic = restored.nic;
    let side = match (restored.pf, restored.manager, configured, table) {
        (Some(pf), Some(manager), Some(configured), None) if config.pf_socket.is_none() => {
            if functions.len() != config.vfs.len() {
                return Err(InheritanceError::Functions);
            }
            Side::Host(Box::new(Hosted { pf, manager, configured }))
        }
        (None, None, None, Some(state)) if config.pf_socket.is_some() => {
            let mut side = Side::of_guest();
            if let Side::Guest(table) = &mut side {
                table.load(&state, Control::default());
            }
            side
        }
        _ => return Err(InheritanceError::Functions),
    };
    let side = side.configured(config, &mut nic)?;
    Ok(Inherited { card: Box::new(I82576::new(nic, side)), watched, functions })
}

/// A new card, set up by the software that was in force, with what guests have configured of `functions` since.
pub(super) fn by_software(
    config: &PortConfig,
    link: bool,
    bytes: &[u8],
    functions: Vec<(pcie::VfIndex, FunctionState)>,
    bus: &mut LiveBus,
) -> Result<Inherited, InheritanceError> {
    if config.family == Family::Avf {
        return Ok(Inherited::new(Avf::by_software(config, link, bytes, functions, bus)?));
    }
    let SoftwareState { mut hosted, guest } = state::read(bytes)?;
    let slots = hosted.as_mut().map_or(&mut [][..], |hosted| &mut hosted.manager.slots);
    for (vf, function) in functions {
        if let Some(slot) = slots.get_mut(vf.index()) {
            slot.function = function;
        }
    }
    let mut nic = Nic::new(nic::Config { mac: config.mac, iov: hosted.is_some(), loopback: None });
    // As for a new card, so that rates are taken.
    nic.set_link(link || hosted.is_some());
    let side = match (hosted, guest) {
        (Some(hosted), None) if config.pf_socket.is_none() => {
            Side::Host(Box::new(Hosted::set_up(config, &mut nic, hosted)?)).configured(config, &mut nic)?
        }
        (None, Some(guest)) if config.pf_socket.is_some() => Side::set_up_guest(&mut nic, &guest),
        _ => return Err(InheritanceError::Functions),
    };
    nic.set_link(link);
    Ok(Inherited::new(I82576::new(nic, side)))
}

impl Hosted {
    fn set_up(config: &PortConfig, nic: &mut Nic, state: HostedState) -> Result<Self, InheritanceError> {
        let HostedState { pf, mut manager, configured } = state;
        nic.config_write(Function::Pf, offset::COMMAND, 2, COMMAND.into());
        let mut pf = Pf::restore(pf).map_err(crate::state::card::RestoreError::from)?;
        let mut fresh = Manager::discover(&mut Card(nic), PF_RID).map_err(PortError::from)?;
        fresh.enable(&mut Card(nic), MAX_VFS as u16, Hierarchy::Ari).map_err(PortError::from)?;
        for (slot, vf) in manager.slots.iter_mut().zip(VfIndex::all()) {
            let offered = vf.index() < config.vfs.len();
            slot.state = if offered { State::Assigned(owner(vf)) } else { State::Present };
        }
        let manager = Manager::restore(&mut Card(nic), PF_RID, &manager)
            .map_err(crate::state::card::RestoreError::from)?;
        for vf in VfIndex::all().take(config.vfs.len()) {
            let master = manager.function(vf).is_some_and(|function| function.endpoint().bus_master());
            nic.set_bus_master(Function::Vf(vf.get()), master);
        }
        pf.reset(&mut PfHal(nic)).map_err(PortError::from)?;
        pf.enable_vfs(&mut PfHal(nic), config.vfs.len() as u8).map_err(PortError::from)?;
        pf.notify_all(&mut PfHal(nic));
        Ok(Self { pf, manager, configured })
    }
}

impl Side {
    /// Puts to work what the configuration says otherwise than when the predecessor read it.
    fn configured(mut self, config: &PortConfig, nic: &mut Nic) -> Result<Self, PortError> {
        let now = configured(config);
        let Some(Hosted { pf, configured: before, .. }) = self.hosted() else { return Ok(self) };
        if before.port != now.port {
            pf.set_port_policy(&mut PfHal(nic), config.policy)?;
        }
        let mut policies: Vec<_> = VfIndex::all().map(|vf| *pf.policy(vf)).take(config.vfs.len()).collect();
        let mut changed = false;
        for (at, (policy, vf)) in policies.iter_mut().zip(&config.vfs).enumerate() {
            if before.vfs.get(at) != Some(&vf.policy) {
                (*policy, changed) = (vf.policy, true);
            }
        }
        // Together, since addresses may be swapped.
        if changed {
            pf.set_policies(&mut PfHal(nic), &policies).map_err(|(_, error)| error)?;
        }
        *before = now;
        Ok(self)
    }

    /// A PF as its guest has configured it, and otherwise as after power-on: the guest's driver has to set it up.
    fn set_up_guest(nic: &mut Nic, state: &GuestState) -> Self {
        let mut side = Self::of_guest();
        for (word, at) in state.config.chunks_exact(4).take(CONFIG / 4).zip((0_u64..).step_by(4)) {
            side.config_write(nic, Function::Pf, at, word);
        }
        if let Self::Guest(table) = &mut side {
            table.load(&state.table, Control::default());
        }
        side
    }

    /// Returns what outlives the card.
    pub(super) fn software(&self, nic: &mut Nic) -> SoftwareState {
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

impl Port {
    /// Notes the software for a successor.
    pub(super) fn note_software(&mut self) {
        note_software(&self.journal, &mut *self.card);
    }

    /// Notes the whole port for a successor; nothing may happen to it afterwards before [`Rest::disturb`] is called.
    ///
    /// [`Rest::disturb`]: super::journal::Rest::disturb
    pub(super) fn note_rest(&mut self) -> bool {
        // An earlier version that takes over finds no configuration that was noted beside the software.
        self.note_software();
        let functions = self.slots.iter().map(|slot| slot.state(self.bus.reach(slot.function))).collect();
        match self.card.rest(self.watched, functions, &mut self.bus) {
            Ok(bytes) => self.rest.note(&bytes),
            Err(error) => {
                tracing::error!(port = self.name, %error, "the port cannot be set aside");
                false
            }
        }
    }
}

/// Notes the configuration of one function for a successor, or all of the port's software if that is the only note of it.
pub(super) fn note_function(
    journal: &Journal,
    notes: &FunctionJournal,
    function: Function,
    card: &mut dyn family::Family,
) {
    let bytes = card.configuration(function).and_then(|state| state::write(&state).ok());
    if !bytes.is_some_and(|bytes| notes.note_configuration(&bytes)) {
        note_software(journal, card);
    }
}

/// Reads the configuration of each function that was noted after the port's software. Of one that cannot be read, the
/// software's counts.
pub(super) fn configurations(config: &PortConfig, journal: &Journal) -> Vec<(pcie::VfIndex, FunctionState)> {
    let noted = |vf: pcie::VfIndex| {
        let bytes = journal.configuration(vf.function())?;
        let read = state::read(&bytes).map(|state| (vf, state));
        let older = |error: &StateError| {
            tracing::error!(port = config.name, %error, "the latest configuration of {vf} cannot be read; an older one is used");
        };
        read.inspect_err(older).ok()
    };
    pcie::VfIndex::first(config.vfs.len()).filter_map(noted).collect()
}

/// Notes a port's software for a successor.
pub(super) fn note_software(journal: &Journal, card: &mut dyn family::Family) {
    let noted = card.software().is_ok_and(|bytes| journal.note_software(&bytes));
    if !noted {
        tracing::error!("the policy cannot be noted for a successor");
    }
}
