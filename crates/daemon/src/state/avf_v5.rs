//! Versions 1 to 5 of the saved state of an AVF port. They have no shared addresses and no record of VLANs that a
//! policy denies. Up to version 4 a port had eight VFs, sets of them were bytes, and its policy had the 82576's form.
//! Up to version 3 there were no thresholds for offences, and only the administrator could quarantine a VF. The rest is
//! as today.

use super::port::ClientState;
use super::v3::OldConfiguredPolicies;
use super::{AvfPortState, PausedAvfPortState};
use avf_nic::{NicBaseState, NicState};
use driver::avf::pf::earlier::EarlierAvfPfState;
use driver::conduct::{QuarantineCause, VfConductMonitor};
use driver::pf::SavedPortPolicy;
use driver::pf::earlier::EarlierVfPolicy;
use i82576::Time;
use iovm::VirtualFunctionState;
use pcie::VfSet;
use policy::PortPolicy;
use serde::Deserialize;

/// Version 1 of an AVF port's saved state: ports had no policy of their own.
#[derive(Deserialize)]
pub(super) struct AvfPortStateV1 {
    functions: Vec<VirtualFunctionState>,
    policies: Vec<EarlierVfPolicy>,
    quarantined: u8,
    configured: OldConfiguredPolicies,
}

/// Version 2 of an AVF port's saved state: the card was not saved.
#[derive(Deserialize)]
pub(super) struct AvfPortStateV2 {
    functions: Vec<VirtualFunctionState>,
    policies: Vec<EarlierVfPolicy>,
    quarantined: u8,
    configured: OldConfiguredPolicies,
    policy: SavedPortPolicy,
}

/// Version 3 of an AVF port's saved state: a bit for each quarantined VF, and a card that throttles no VF.
pub(super) type AvfPortStateV3 =
    OldAvfPortState<u8, SavedPortPolicy, OldPausedAvfPortState<NicBaseState, u8, u64>>;
/// Version 4 of an AVF port's saved state: eight VFs, and the 82576's form of the port policy.
pub(super) type AvfPortStateV4 =
    OldAvfPortState<Vec<VfConductMonitor>, SavedPortPolicy, OldPausedAvfPortState<NicState, u8, u64>>;
/// Version 5 of an AVF port's saved state: VFs without shared addresses.
pub(super) type AvfPortStateV5 =
    OldAvfPortState<Vec<VfConductMonitor>, PortPolicy, OldPausedAvfPortState<NicState, VfSet, VfSet>>;

/// Saved state of an AVF port up to version 5. The parameters are the version's types of the VFs' offences, of the port
/// policy, and of the state between two rounds of the port's loop.
#[derive(Deserialize)]
pub(super) struct OldAvfPortState<M, P, R> {
    functions: Vec<VirtualFunctionState>,
    policies: Vec<EarlierVfPolicy>,
    conduct: M,
    configured: OldConfiguredPolicies<P>,
    policy: P,
    rest: Option<R>,
}

/// Saved state of an AVF port between two rounds of its loop, up to version 5. The parameters are the version's types
/// of the card and of sets of VFs.
#[derive(Deserialize)]
#[serde(rename = "OldPausedAvfPort")]
pub(super) struct OldPausedAvfPortState<C, H, A> {
    card: C,
    pf: EarlierAvfPfState,
    hidden: H,
    asking: A,
    link: bool,
    storms: (u64, bool),
    watched: Time,
    clients: Vec<ClientState>,
}

impl From<AvfPortStateV1> for AvfPortState {
    fn from(state: AvfPortStateV1) -> Self {
        let AvfPortStateV1 { functions, policies, quarantined, configured } = state;
        let policy = configured.port;
        AvfPortStateV2 { functions, policies, quarantined, configured, policy }.into()
    }
}

impl From<AvfPortStateV2> for AvfPortState {
    fn from(state: AvfPortStateV2) -> Self {
        let AvfPortStateV2 { functions, policies, quarantined, configured, policy } = state;
        AvfPortStateV3 { functions, policies, conduct: quarantined, configured, policy, rest: None }.into()
    }
}

impl From<AvfPortStateV3> for AvfPortState {
    fn from(state: AvfPortStateV3) -> Self {
        let OldAvfPortState { functions, policies, conduct, configured, policy, rest } = state;
        let vfs = 0..policies.len() as u32;
        let quarantined = |vf: u32| conduct.checked_shr(vf).is_some_and(|bits| bits & 1 == 1);
        let monitor = |vf| match quarantined(vf) {
            true => VfConductMonitor::of_quarantined(QuarantineCause::Administrator),
            false => VfConductMonitor::default(),
        };
        let (conduct, rest) = (vfs.map(monitor).collect(), rest.map(OldPausedAvfPortState::with_restraints));
        AvfPortStateV4 { functions, policies, conduct, configured, policy, rest }.into()
    }
}

impl From<AvfPortStateV4> for AvfPortState {
    fn from(state: AvfPortStateV4) -> Self {
        let OldAvfPortState { functions, policies, conduct, configured, policy, rest } = state;
        let configured = OldConfiguredPolicies { port: configured.port.0, vfs: configured.vfs };
        let (policy, rest) = (policy.0, rest.map(OldPausedAvfPortState::with_sets));
        AvfPortStateV5 { functions, policies, conduct, configured, policy, rest }.into()
    }
}

impl From<AvfPortStateV5> for AvfPortState {
    fn from(state: AvfPortStateV5) -> Self {
        let OldAvfPortState { functions, policies, conduct, configured, policy, rest } = state;
        Self {
            functions,
            policies: policies.into_iter().map(Into::into).collect(),
            conduct,
            configured: configured.into(),
            policy,
            rest: rest.map(PausedAvfPortState::from),
        }
    }
}

impl OldPausedAvfPortState<NicBaseState, u8, u64> {
    fn with_restraints(self) -> OldPausedAvfPortState<NicState, u8, u64> {
        let Self { card, pf, hidden, asking, link, storms, watched, clients } = self;
        OldPausedAvfPortState { card: card.into(), pf, hidden, asking, link, storms, watched, clients }
    }
}

impl OldPausedAvfPortState<NicState, u8, u64> {
    fn with_sets(self) -> OldPausedAvfPortState<NicState, VfSet, VfSet> {
        let Self { card, pf, hidden, asking, link, storms, watched, clients } = self;
        let (hidden, asking) = (VfSet::new(hidden.into()), VfSet::new(asking));
        OldPausedAvfPortState { card, pf, hidden, asking, link, storms, watched, clients }
    }
}

impl From<OldPausedAvfPortState<NicState, VfSet, VfSet>> for PausedAvfPortState {
    fn from(rest: OldPausedAvfPortState<NicState, VfSet, VfSet>) -> Self {
        let OldPausedAvfPortState { card, pf, hidden, asking, link, storms, watched, clients } = rest;
        Self { card, pf: pf.into(), hidden, asking, link, storms, watched, clients }
    }
}
