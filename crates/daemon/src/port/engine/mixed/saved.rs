//! Creates, saves and restores a mixed port. Its state is the states of its cards. The AVF card's state has the traffic of
//! the port's switch.

use super::{MixedCard, trunk};
use crate::config::PortConfig;
use crate::config::file::CardFamily;
use crate::port::engine::avf::AvfCard;
use crate::port::engine::bus::GuestBus;
use crate::port::engine::error::{InheritedStateError, PortEngineStartError};
use crate::port::engine::family::{InheritedCard, not_offered};
use crate::port::engine::revocation::AddressRevocation;
use crate::port::engine::virtio::VirtioCard;
use crate::state::port::ClientState;
use crate::state::{self, MixedPortState, SavedStateError};
use i82576::Time;
use iovm::VirtualFunctionState;
use pcie::{VfIndex, VfSet};
use plane::PortSet;
use policy::RefusedVf;

/// Returns the port's configuration for its AVF card, where VFs of other families move no frame.
fn of_avf(config: &PortConfig) -> PortConfig {
    let mut config = config.clone();
    for vf in config.vfs.iter_mut().filter(|vf| vf.family != CardFamily::Avf) {
        (vf.policy, vf.quarantine) = (not_offered(), false);
    }
    config
}

impl MixedCard {
    /// Joins the cards of a port: the virtio card gets the switch of the port.
    fn join(config: &PortConfig, mut avf: AvfCard, mut virtio: VirtioCard) -> Self {
        let avf_vfs = PortSet::new(virtio.others.bits());
        let (sender, to_avf) = trunk::connect();
        virtio.card.leave_to_others(avf_vfs);
        virtio.card.set_trunk(Some(sender));
        let (sender, to_virtio) = trunk::connect();
        avf.card.nic.leave_to_others(!avf_vfs);
        avf.card.nic.set_trunk(Some(sender));
        std::mem::swap(&mut avf.plane, &mut virtio.plane);
        let mut card =
            Self { families: config.families(), family: config.family, avf, virtio, to_avf, to_virtio };
        card.follow_changes();
        card
    }

    /// Creates a new mixed port from its configuration.
    pub(in crate::port) fn new(
        config: &PortConfig,
        link: bool,
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<Self, PortEngineStartError> {
        let avf = AvfCard::new(&of_avf(config), link, bus, now)?;
        Ok(Self::join(config, avf, VirtioCard::new(config, link)))
    }

    /// Creates a mixed port with new cards and the previous host process's driver state (`bytes`). `since` holds PCI
    /// configurations that guests changed after that state was saved.
    pub(in crate::port) fn by_software(
        config: &PortConfig,
        link: bool,
        (bytes, since): (&[u8], Vec<(VfIndex, VirtualFunctionState)>),
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<Self, InheritedStateError> {
        let state = read(config, bytes)?;
        let virtio = VirtioCard::by_software(config, link, &state.virtio)?;
        let avf = AvfCard::by_software(&of_avf(config), link, (&state.avf, since), bus, now)?;
        Ok(Self::join(config, avf, virtio))
    }

    /// Restores a mixed port from the saved state of the whole port.
    pub(in crate::port) fn resume(
        config: &PortConfig,
        bytes: &[u8],
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<InheritedCard, InheritedStateError> {
        let state = read(config, bytes)?;
        let virtio = VirtioCard::resume(config, &state.virtio)?;
        let InheritedCard { card: avf, watched, functions } =
            AvfCard::resume(&of_avf(config), &state.avf, bus, now)?;
        let card = Box::new(Self::join(config, *avf, *virtio.card));
        Ok(InheritedCard { card, watched, functions })
    }

    /// Encodes the states of both cards' drivers and policies, which outlive the cards.
    pub(super) fn saved(&self) -> Result<Vec<u8>, SavedStateError> {
        self.encode(self.avf.saved()?, self.virtio.saved(None)?)
    }

    /// Encodes the state of the whole port for the successor process, while the port's loop is between two rounds.
    pub(super) fn at_rest(
        &mut self,
        watched: Time,
        clients: Vec<ClientState>,
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<Vec<u8>, SavedStateError> {
        let virtio = self.virtio.at_rest(watched, clients.clone())?;
        let avf = self.with_switch(|avf| avf.at_rest(watched, clients, bus, now))?;
        self.encode(avf, virtio)
    }

    fn encode(&self, avf: Vec<u8>, virtio: Vec<u8>) -> Result<Vec<u8>, SavedStateError> {
        state::write(&MixedPortState { families: self.families.to_vec(), avf, virtio })
    }
}

impl AddressRevocation for MixedCard {
    fn take_distrusted(&mut self) -> VfSet {
        self.avf.take_distrusted().or(self.virtio.take_distrusted())
    }

    fn revoke_addresses(&mut self, vfs: VfSet, bus: &mut GuestBus, now: Time) -> Result<(), RefusedVf> {
        let of_avf: VfSet = vfs.iter().filter(|vf| self.is_avf(*vf)).collect();
        // The PF driver asks the port's switch which addresses others use.
        self.with_switch(|avf| avf.revoke_addresses(of_avf, bus, now))?;
        self.virtio.revoke_addresses(vfs.without(of_avf), bus, now)
    }
}

/// Decodes the state of a mixed port whose VFs have the configured families.
fn read(config: &PortConfig, bytes: &[u8]) -> Result<MixedPortState, SavedStateError> {
    let state: MixedPortState = state::read(bytes)?;
    if state.families == config.families() { Ok(state) } else { Err(SavedStateError::Body) }
}
