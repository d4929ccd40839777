//! What outlives the card of a port of family AVF: what guests have configured, and what the administrator has decided.
//! The card itself is not set aside: a successor starts it anew, and drivers take that for a reset of their VFs.

use super::port::Configured;
use super::{Saved, StateError, decode};
use driver::pf::{PortPolicy, VfPolicy};
use iovm::FunctionState;
use serde::{Deserialize, Serialize};

/// The software of a port.
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
}

/// As version 1 has it: ports had no policy of their own yet.
#[derive(Deserialize)]
struct V1 {
    functions: Vec<FunctionState>,
    policies: Vec<VfPolicy>,
    quarantined: u8,
    configured: Configured,
}

impl From<V1> for AvfState {
    fn from(state: V1) -> Self {
        let V1 { functions, policies, quarantined, configured } = state;
        let policy = configured.port;
        Self { functions, policies, quarantined, configured, policy }
    }
}

impl Saved for AvfState {
    const KIND: [u8; 4] = *b"avfs";
    const VERSION: u32 = 2;

    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, StateError> {
        match version {
            1 => decode::<V1>(body).map(Self::from),
            found => Err(StateError::Version { found, newest: Self::VERSION }),
        }
    }
}
