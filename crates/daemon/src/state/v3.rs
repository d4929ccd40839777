//! Versions 1 to 3 of the saved state of an 82576 card and its port, and version 1 of the port's driver state. The first two
//! versions have no shared addresses and no record of VLANs that a policy denies. In version 1 no frames waited for ring
//! descriptors. None records a negotiation of the PHY. The rest is as today.

use super::port::{ClientState, ConfiguredPolicies, GuestPfState, HostPfState};
use super::{CardState, I82576PortState, PortSoftwareState};
use driver::pf::earlier::{EarlierPfState, EarlierVfPolicy};
use driver::pf::{PfState, SavedPortPolicy};
use i82576::Time;
use iovm::SrIovManagerState;
use pcie::msix::MsiXTableState;
use serde::Deserialize;

pub(super) type CardStateV1 = OldCardState<nic::NicBaseState, EarlierPfState>;
pub(super) type CardStateV2 = OldCardState<nic::NicStateV2, EarlierPfState>;
pub(super) type CardStateV3 = OldCardState<nic::NicStateV2, PfState>;
pub(super) type PortStateV1 = OldPortState<CardStateV1, OldConfiguredPolicies>;
pub(super) type PortStateV2 = OldPortState<CardStateV2, OldConfiguredPolicies>;
pub(super) type PortStateV3 = OldPortState<CardStateV3, ConfiguredPolicies>;

/// Saved state of an 82576 card with its software up to version 3. `N` and `P` are that version's types of the states of card and
/// PF driver.
#[derive(Deserialize)]
pub(super) struct OldCardState<N, P> {
    nic: N,
    pf: Option<P>,
    manager: Option<SrIovManagerState>,
}

impl<N: Into<nic::NicState>, P: Into<PfState>> From<OldCardState<N, P>> for CardState {
    fn from(card: OldCardState<N, P>) -> Self {
        let OldCardState { nic, pf, manager } = card;
        Self { nic: nic.into(), pf: pf.map(Into::into), manager }
    }
}

/// Policies of a port in the configuration, up to version 2.
#[derive(Deserialize)]
pub(super) struct OldConfiguredPolicies<P = SavedPortPolicy> {
    pub(super) port: P,
    pub(super) vfs: Vec<EarlierVfPolicy>,
}

impl<P, Q: From<P>> From<OldConfiguredPolicies<P>> for ConfiguredPolicies<Q> {
    fn from(configured: OldConfiguredPolicies<P>) -> Self {
        let OldConfiguredPolicies { port, vfs } = configured;
        Self { port: port.into(), vfs: vfs.into_iter().map(Into::into).collect() }
    }
}

/// Saved state of an 82576 port up to version 3. `C` and `P` are that version's types of the card's state and of the configured
/// policies.
#[derive(Deserialize)]
pub(super) struct OldPortState<C, P> {
    card: C,
    table: Option<MsiXTableState>,
    configured: Option<P>,
    watched: Time,
    functions: Vec<ClientState>,
}

impl<C: Into<CardState>, P: Into<ConfiguredPolicies>> From<OldPortState<C, P>> for I82576PortState {
    fn from(port: OldPortState<C, P>) -> Self {
        let OldPortState { card, table, configured, watched, functions } = port;
        Self { card: card.into(), table, configured: configured.map(Into::into), watched, functions }
    }
}

/// State of drivers and policies of an 82576 port, as earlier versions saved it.
#[derive(Deserialize)]
pub(super) struct OldPortSoftwareState {
    hosted: Option<OldHostPfState>,
    guest: Option<GuestPfState>,
}

/// State of PF driver and SR-IOV manager of a PF that the host owns, as earlier versions saved it.
#[derive(Deserialize)]
struct OldHostPfState {
    pf: EarlierPfState,
    manager: SrIovManagerState,
    configured: OldConfiguredPolicies,
}

impl From<OldPortSoftwareState> for PortSoftwareState {
    fn from(software: OldPortSoftwareState) -> Self {
        let OldPortSoftwareState { hosted, guest } = software;
        Self { hosted: hosted.map(HostPfState::from), guest }
    }
}

impl From<OldHostPfState> for HostPfState {
    fn from(hosted: OldHostPfState) -> Self {
        let OldHostPfState { pf, manager, configured } = hosted;
        Self { pf: pf.into(), manager, configured: configured.into() }
    }
}
