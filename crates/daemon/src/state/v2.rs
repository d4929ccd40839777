//! Versions 1 and 2 of a card's and a port's state, and version 1 of its software's. In these, VFs could not share
//! addresses, and no VLANs were withheld. In version 1 no frames waited for descriptors. The rest is as today.

use super::port::{ClientState, Configured, GuestState, HostedState};
use super::{CardState, PortState, SoftwareState};
use driver::pf::SavedPortPolicy;
use driver::pf::earlier::{PfState, VfPolicy};
use i82576::Time;
use iovm::ManagerState;
use pcie::msix::TableState;
use serde::Deserialize;

/// Card, with the version's type of the chip's state.
#[derive(Deserialize)]
pub(super) struct Card<N> {
    nic: N,
    pf: Option<PfState>,
    manager: Option<ManagerState>,
}

impl<N: Into<nic::State>> From<Card<N>> for CardState {
    fn from(card: Card<N>) -> Self {
        let Card { nic, pf, manager } = card;
        Self { nic: nic.into(), pf: pf.map(Into::into), manager }
    }
}

/// Policies of a port by its configuration.
#[derive(Deserialize)]
pub(super) struct OldConfigured<P = SavedPortPolicy> {
    pub(super) port: P,
    pub(super) vfs: Vec<VfPolicy>,
}

impl<P, Q: From<P>> From<OldConfigured<P>> for Configured<Q> {
    fn from(configured: OldConfigured<P>) -> Self {
        let OldConfigured { port, vfs } = configured;
        Self { port: port.into(), vfs: vfs.into_iter().map(Into::into).collect() }
    }
}

/// Port, with the version's type of the chip's state.
#[derive(Deserialize)]
pub(super) struct Port<N> {
    card: Card<N>,
    table: Option<TableState>,
    configured: Option<OldConfigured>,
    watched: Time,
    functions: Vec<ClientState>,
}

impl<N: Into<nic::State>> From<Port<N>> for PortState {
    fn from(port: Port<N>) -> Self {
        let Port { card, table, configured, watched, functions } = port;
        Self { card: card.into(), table, configured: configured.map(Into::into), watched, functions }
    }
}

/// Software of a port in the saved state up to version 2.
#[derive(Deserialize)]
pub(super) struct Software {
    hosted: Option<Hosted>,
    guest: Option<GuestState>,
}

/// PF driver and SR-IOV manager of a PF that the host owns.
#[derive(Deserialize)]
struct Hosted {
    pf: PfState,
    manager: ManagerState,
    configured: OldConfigured,
}

impl From<Software> for SoftwareState {
    fn from(software: Software) -> Self {
        let Software { hosted, guest } = software;
        Self { hosted: hosted.map(HostedState::from), guest }
    }
}

impl From<Hosted> for HostedState {
    fn from(hosted: Hosted) -> Self {
        let Hosted { pf, manager, configured } = hosted;
        Self { pf: pf.into(), manager, configured: configured.into() }
    }
}
