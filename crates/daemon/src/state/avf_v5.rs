//! Versions 1 to 5 of the state of a port of family AVF. In these, VFs could not share addresses, and no VLANs were
//! withheld. Up to version 4 a port had eight VFs, sets of them were bytes, and its policy had the 82576's form. Up to
//! version 3 there were no limits of conduct, and only the administrator could quarantine a VF. The rest is as today.

use super::port::ClientState;
use super::v2::OldConfigured;
use super::{AvfRest, AvfState};
use avf_nic::{Basis, State};
use driver::avf::pf::earlier::PfState;
use driver::conduct::{Cause, Monitor};
use driver::pf::SavedPortPolicy;
use driver::pf::earlier::VfPolicy;
use i82576::Time;
use iovm::FunctionState;
use pcie::VfSet;
use policy::PortPolicy;
use serde::Deserialize;

/// Version 1 of an AVF port's state: ports had no policy of their own.
#[derive(Deserialize)]
pub(super) struct V1 {
    functions: Vec<FunctionState>,
    policies: Vec<VfPolicy>,
    quarantined: u8,
    configured: OldConfigured,
}

/// Version 2: the card was not saved.
#[derive(Deserialize)]
pub(super) struct V2 {
    functions: Vec<FunctionState>,
    policies: Vec<VfPolicy>,
    quarantined: u8,
    configured: OldConfigured,
    policy: SavedPortPolicy,
}

/// Version 3: a bit for each quarantined VF, and a card without restraints.
pub(super) type V3 = Body<u8, SavedPortPolicy, Rest<Basis, u8, u64>>;
/// Version 4: eight VFs, and the 82576's form of the port policy.
pub(super) type V4 = Body<Vec<Monitor>, SavedPortPolicy, Rest<State, u8, u64>>;
/// Version 5: VFs without shared addresses.
pub(super) type V5 = Body<Vec<Monitor>, PortPolicy, Rest<State, VfSet, VfSet>>;

/// Saved state of an AVF port up to version 5. The parameters are the version's types of conduct, policy and resting
/// card.
#[derive(Deserialize)]
pub(super) struct Body<M, P, R> {
    functions: Vec<FunctionState>,
    policies: Vec<VfPolicy>,
    conduct: M,
    configured: OldConfigured<P>,
    policy: P,
    rest: Option<R>,
}

/// Saved state of the whole port between two rounds. The parameters are the version's types of the card and of sets
/// of VFs.
#[derive(Deserialize)]
pub(super) struct Rest<C, H, A> {
    card: C,
    pf: PfState,
    hidden: H,
    asking: A,
    link: bool,
    storms: (u64, bool),
    watched: Time,
    clients: Vec<ClientState>,
}

impl From<V1> for AvfState {
    fn from(state: V1) -> Self {
        let V1 { functions, policies, quarantined, configured } = state;
        let policy = configured.port;
        V2 { functions, policies, quarantined, configured, policy }.into()
    }
}

impl From<V2> for AvfState {
    fn from(state: V2) -> Self {
        let V2 { functions, policies, quarantined, configured, policy } = state;
        V3 { functions, policies, conduct: quarantined, configured, policy, rest: None }.into()
    }
}

impl From<V3> for AvfState {
    fn from(state: V3) -> Self {
        let Body { functions, policies, conduct, configured, policy, rest } = state;
        let vfs = 0..policies.len() as u32;
        let quarantined = |vf: u32| conduct.checked_shr(vf).is_some_and(|bits| bits & 1 == 1);
        let monitor = |vf| match quarantined(vf) {
            true => Monitor::of_quarantined(Cause::Administrator),
            false => Monitor::default(),
        };
        let (conduct, rest) = (vfs.map(monitor).collect(), rest.map(Rest::with_restraints));
        V4 { functions, policies, conduct, configured, policy, rest }.into()
    }
}

impl From<V4> for AvfState {
    fn from(state: V4) -> Self {
        let Body { functions, policies, conduct, configured, policy, rest } = state;
        let configured = OldConfigured { port: configured.port.0, vfs: configured.vfs };
        let (policy, rest) = (policy.0, rest.map(Rest::with_sets));
        V5 { functions, policies, conduct, configured, policy, rest }.into()
    }
}

impl From<V5> for AvfState {
    fn from(state: V5) -> Self {
        let Body { functions, policies, conduct, configured, policy, rest } = state;
        Self {
            functions,
            policies: policies.into_iter().map(Into::into).collect(),
            conduct,
            configured: configured.into(),
            policy,
            rest: rest.map(AvfRest::from),
        }
    }
}

impl Rest<Basis, u8, u64> {
    fn with_restraints(self) -> Rest<State, u8, u64> {
        let Self { card, pf, hidden, asking, link, storms, watched, clients } = self;
        Rest { card: card.into(), pf, hidden, asking, link, storms, watched, clients }
    }
}

impl Rest<State, u8, u64> {
    fn with_sets(self) -> Rest<State, VfSet, VfSet> {
        let Self { card, pf, hidden, asking, link, storms, watched, clients } = self;
        let (hidden, asking) = (VfSet::new(hidden.into()), VfSet::new(asking));
        Rest { card, pf, hidden, asking, link, storms, watched, clients }
    }
}

impl From<Rest<State, VfSet, VfSet>> for AvfRest {
    fn from(rest: Rest<State, VfSet, VfSet>) -> Self {
        let Rest { card, pf, hidden, asking, link, storms, watched, clients } = rest;
        Self { card, pf: pf.into(), hidden, asking, link, storms, watched, clients }
    }
}
