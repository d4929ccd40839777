//! Versions 1 to 4 of the state of a port of family AVF: a port had eight VFs, sets of them were bytes, and its policy was in
//! the terms of the 82576. Up to version 3 there were no limits of conduct, and only the administrator could quarantine a VF.
//! Left out: everything that is as today.

use super::port::{ClientState, Configured};
use super::{AvfRest, AvfState};
use avf_nic::{Basis, State};
use driver::avf::pf::PfState;
use driver::conduct::{Cause, Monitor};
use driver::pf::{PortPolicy, VfPolicy};
use i82576::Time;
use iovm::FunctionState;
use pcie::VfSet;
use serde::Deserialize;

/// As version 1 has it: ports had no policy of their own yet.
#[derive(Deserialize)]
pub(super) struct V1 {
    functions: Vec<FunctionState>,
    policies: Vec<VfPolicy>,
    quarantined: u8,
    configured: Configured,
}

/// As version 2 has it: the card was not set aside.
#[derive(Deserialize)]
pub(super) struct V2 {
    functions: Vec<FunctionState>,
    policies: Vec<VfPolicy>,
    quarantined: u8,
    configured: Configured,
    policy: PortPolicy,
}

/// As version 3 has it: a bit for each VF that is quarantined, and a card without restraints.
pub(super) type V3 = Body<u8, Basis>;
/// As version 4 has it.
pub(super) type V4 = Body<Vec<Monitor>, State>;

/// A port, with its VFs' conduct and its card in the terms of the version.
#[derive(Deserialize)]
pub(super) struct Body<M, C> {
    functions: Vec<FunctionState>,
    policies: Vec<VfPolicy>,
    conduct: M,
    configured: Configured,
    policy: PortPolicy,
    rest: Option<Rest<C>>,
}

/// What of a port counts only while nothing happens to it.
#[derive(Deserialize)]
struct Rest<C> {
    card: C,
    pf: PfState,
    hidden: u8,
    asking: u64,
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
        let vfs = 0..state.policies.len() as u32;
        let quarantined = |vf: u32| state.conduct.checked_shr(vf).is_some_and(|bits| bits & 1 == 1);
        let monitor = |vf| match quarantined(vf) {
            true => Monitor::of_quarantined(Cause::Administrator),
            false => Monitor::default(),
        };
        let conduct = vfs.map(monitor).collect();
        state.with_conduct(conduct)
    }
}

impl From<V4> for AvfState {
    fn from(mut state: V4) -> Self {
        let conduct = std::mem::take(&mut state.conduct);
        state.with_conduct(conduct)
    }
}

impl<M, C: Into<State>> Body<M, C> {
    /// The state in today's terms, with this conduct of each VF.
    fn with_conduct(self, conduct: Vec<Monitor>) -> AvfState {
        let Self { functions, policies, configured: Configured { port, vfs }, policy, rest, .. } = self;
        AvfState {
            functions,
            policies,
            conduct,
            configured: Configured { port: (&port).into(), vfs },
            policy: (&policy).into(),
            rest: rest.map(AvfRest::from),
        }
    }
}

impl<C: Into<State>> From<Rest<C>> for AvfRest {
    fn from(rest: Rest<C>) -> Self {
        let Rest { card, pf, hidden, asking, link, storms, watched, clients } = rest;
        let (hidden, asking) = (VfSet::new(hidden.into()), VfSet::new(asking));
        Self { card: card.into(), pf, hidden, asking, link, storms, watched, clients }
    }
}
