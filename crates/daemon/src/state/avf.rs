//! The state of a port of family AVF: what guests have configured and the administrator has decided, which outlives the
//! card, and at rest the card itself with its PF driver and plane.
//!
//! Left out: clients themselves, with their sockets and memory, which are noted elsewhere as they come and go.

use super::port::{ClientState, Configured};
use avf_nic::State;
use driver::avf::pf::PfState;
use driver::conduct::Monitor;
use i82576::Time;
use iovm::FunctionState;
use pcie::VfSet;
use policy::{PortPolicy, VfPolicy};
use serde::{Deserialize, Serialize};

/// A port.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AvfState {
    /// Configuration space and MSI-X table of each VF.
    pub functions: Vec<FunctionState>,
    /// The policies in force.
    pub policies: Vec<VfPolicy>,
    /// The conduct of each VF, and who has quarantined it.
    pub conduct: Vec<Monitor>,
    /// The policy by the configuration.
    pub configured: Configured<PortPolicy>,
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
    /// VFs whose client is let go and that see no link.
    pub hidden: VfSet,
    /// VFs whose message the PF driver has and has not looked at.
    pub asking: VfSet,
    /// The port has a link.
    pub link: bool,
    /// Storms that have begun, and whether one goes on.
    pub storms: (u64, bool),
    /// When the VFs were last judged.
    pub watched: Time,
    /// What the host knows of each function's client.
    pub clients: Vec<ClientState>,
}
