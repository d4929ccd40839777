//! State of a port of family AVF: the configuration by guests and the policy, which outlive the card, and between two
//! rounds also the card itself with its PF driver and plane.
//!
//! Clients with their sockets and memory are journaled separately, as they come and go.

use super::port::{ClientState, ConfiguredPolicies};
use avf_nic::NicState;
use driver::avf::pf::AvfPfState;
use driver::conduct::ConductMonitor;
use i82576::Time;
use iovm::VirtualFunctionState;
use pcie::VfSet;
use policy::{PortPolicy, VfPolicy};
use serde::{Deserialize, Serialize};

/// Saved state of an AVF port.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "AvfState")]
pub struct AvfPortState {
    /// Configuration space and MSI-X table of each VF.
    pub functions: Vec<VirtualFunctionState>,
    /// Policies in force of the VFs.
    pub policies: Vec<VfPolicy>,
    /// Conduct of each VF, and the cause of the VF's quarantine.
    pub conduct: Vec<ConductMonitor>,
    /// Policies of the port and its VFs by the configuration.
    pub configured: ConfiguredPolicies<PortPolicy>,
    /// Policy in force of the port.
    pub policy: PortPolicy,
    /// State of the whole port, saved between two rounds. Without it a successor resets the card.
    pub rest: Option<PausedAvfPort>,
}

/// State that is valid only between two rounds of the port.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "AvfRest")]
pub struct PausedAvfPort {
    /// Card of the port with its plane (switch).
    pub card: NicState,
    /// State of the PF driver.
    pub pf: AvfPfState,
    /// VFs whose client was disconnected and that see no link.
    pub hidden: VfSet,
    /// VFs with a message that the PF driver has not read yet.
    pub asking: VfSet,
    /// True if the port has a link.
    pub link: bool,
    /// Number of the port's storms, and true if a storm is active.
    pub storms: (u64, bool),
    /// Time of the last check of the VFs' conduct.
    pub watched: Time,
    /// State of each function's client.
    pub clients: Vec<ClientState>,
}
