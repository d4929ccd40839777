//! The state of a port of family AVF: what guests have configured and the administrator has decided, which outlives the
//! card, and at rest the card itself with its PF driver and plane.
//!
//! Left out: clients themselves, with their sockets and memory, which are noted elsewhere as they come and go.

use super::port::{ClientState, Configured};
use super::{Saved, StateError, decode};
use avf_nic::State;
use driver::avf::pf::PfState;
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
    /// VFs that the administrator has shut in, a bit each.
    pub quarantined: u8,
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

impl From<V2> for AvfState {
    fn from(state: V2) -> Self {
        let V2 { functions, policies, quarantined, configured, policy } = state;
        Self { functions, policies, quarantined, configured, policy, rest: None }
    }
}

impl Saved for AvfState {
    const KIND: [u8; 4] = *b"avfs";
    const VERSION: u32 = 3;

    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, StateError> {
        match version {
            1 => decode::<V1>(body).map(|state| V2::from(state).into()),
            2 => decode::<V2>(body).map(Self::from),
            found => Err(StateError::Version { found, newest: Self::VERSION }),
        }
    }
}
