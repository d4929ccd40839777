//! The state of a port of family AVF: what guests have configured and the administrator has decided, which outlives the
//! card, and at rest the card itself with its PF driver and plane.
//!
//! Left out: clients themselves, with their sockets and memory, which are noted elsewhere as they come and go.

use super::port::{ClientState, Configured};
use super::{Saved, StateError, decode};
use avf_nic::{Basis, State};
use driver::avf::pf::PfState;
use driver::conduct::{Cause, Monitor};
use driver::pf::{PortPolicy, VfPolicy};
use i82576::Time;
use iovm::FunctionState;
use serde::{Deserialize, Serialize};

/// A port.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AvfState {
    /// Configuration space and MSI-X table of each VF.
    pub functions: Vec<FunctionState>,
    /// The policies in force.
    pub policies: Vec<VfPolicy>,
    /// The conduct of each VF, and who has shut it in.
    pub conduct: Vec<Monitor>,
    /// The policy by the configuration.
    pub configured: Configured,
    /// The policy of the port in force.
    pub policy: PortPolicy,
    /// The port at rest; without it a successor starts the card anew.
    pub rest: Option<AvfRest>,
}

/// What of a port counts only while nothing happens to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AvfRest {
    /// The card and its plane.
    pub card: State,
    /// The PF driver.
    pub pf: PfState,
    /// VFs whose client is let go and that see no link, a bit each.
    pub hidden: u8,
    /// VFs whose message the PF driver has and has not looked at, a bit each.
    pub asking: u64,
    /// The port has a link.
    pub link: bool,
    /// Storms that have begun, and whether one goes on.
    pub storms: (u64, bool),
    /// When the VFs were last judged.
    pub watched: Time,
    /// What the host knows of each function's client.
    pub clients: Vec<ClientState>,
}

/// As version 1 has it: ports had no policy of their own yet.
#[derive(Deserialize)]
struct V1 {
    functions: Vec<FunctionState>,
    policies: Vec<VfPolicy>,
    quarantined: u8,
    configured: Configured,
}

/// As version 2 has it: the card was not set aside.
#[derive(Deserialize)]
struct V2 {
    functions: Vec<FunctionState>,
    policies: Vec<VfPolicy>,
    quarantined: u8,
    configured: Configured,
    policy: PortPolicy,
}

impl From<V1> for V2 {
    fn from(state: V1) -> Self {
        let V1 { functions, policies, quarantined, configured } = state;
        let policy = configured.port;
        Self { functions, policies, quarantined, configured, policy }
    }
}

impl From<V2> for V3 {
    fn from(state: V2) -> Self {
        let V2 { functions, policies, quarantined, configured, policy } = state;
        Self { functions, policies, quarantined, configured, policy, rest: None }
    }
}

/// Version 3: no conduct limits yet; only the administrator could quarantine a VF.
#[derive(Deserialize)]
struct V3 {
    functions: Vec<FunctionState>,
    policies: Vec<VfPolicy>,
    quarantined: u8,
    configured: Configured,
    policy: PortPolicy,
    rest: Option<RestV3>,
}

/// Version 3: the card had no restraints yet.
#[derive(Deserialize)]
struct RestV3 {
    card: Basis,
    pf: PfState,
    hidden: u8,
    asking: u64,
    link: bool,
    storms: (u64, bool),
    watched: Time,
    clients: Vec<ClientState>,
}

impl From<RestV3> for AvfRest {
    fn from(rest: RestV3) -> Self {
        let RestV3 { card, pf, hidden, asking, link, storms, watched, clients } = rest;
        Self { card: card.into(), pf, hidden, asking, link, storms, watched, clients }
    }
}

impl From<V3> for AvfState {
    fn from(state: V3) -> Self {
        let V3 { functions, policies, quarantined, configured, policy, rest } = state;
        let quarantined =
            |vf: usize| u32::from(quarantined).checked_shr(vf as u32).is_some_and(|bits| bits & 1 == 1);
        let monitor = |vf| match quarantined(vf) {
            true => Monitor::of_quarantined(Cause::Administrator),
            false => Monitor::default(),
        };
        let conduct = (0..policies.len()).map(monitor).collect();
        Self { functions, policies, conduct, configured, policy, rest: rest.map(AvfRest::from) }
    }
}

impl Saved for AvfState {
    const KIND: [u8; 4] = *b"avfs";
    const VERSION: u32 = 4;

    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, StateError> {
        match version {
            1 => decode::<V1>(body).map(|state| V3::from(V2::from(state)).into()),
            2 => decode::<V2>(body).map(|state| V3::from(state).into()),
            3 => decode::<V3>(body).map(Self::from),
            found => Err(StateError::Version { found, newest: Self::VERSION }),
        }
    }
}
