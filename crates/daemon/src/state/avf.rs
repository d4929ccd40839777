//! Saved state of a port of family AVF. PCI configurations and policies outlive the card. Between two rounds, the
//! state of the card itself, its PF driver and its switch is saved, too.
//!
//! Clients with their sockets and memory are journaled separately, as they come and go.

use super::port::{ClientState, ConfiguredPolicies};
use avf_nic::NicState;
use driver::avf::pf::AvfPfState;
use driver::conduct::VfConductMonitor;
use i82576::Time;
use iovm::VirtualFunctionState;
use pcie::VfSet;
use policy::{PortPolicy, VfPolicy};
use serde::{Deserialize, Serialize};

/// Saved state of an AVF port.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "AvfState")]
pub struct AvfPortState {
    /// Saved configuration space and MSI-X table of each VF.
    pub functions: Vec<VirtualFunctionState>,
    /// Policies of the VFs that are in force, by index.
    pub policies: Vec<VfPolicy>,
    /// Monitor of each VF's offences, with the cause of the VF's quarantine.
    pub conduct: Vec<VfConductMonitor>,
    /// Policies of the port and its VFs in the configuration.
    pub configured: ConfiguredPolicies<PortPolicy>,
    /// Policy of the port that is in force.
    pub policy: PortPolicy,
    /// State of the whole port, saved between two rounds of its loop. Without it a successor process resets the card.
    pub rest: Option<PausedAvfPortState>,
}

/// State of an AVF port between two rounds of its loop, with the card, its PF driver and its clients.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "AvfRest")]
pub struct PausedAvfPortState {
    /// State of the card with its switch.
    pub card: NicState,
    /// State of the PF driver.
    pub pf: AvfPfState,
    /// VFs that see no link because their client is being disconnected.
    pub hidden: VfSet,
    /// VFs with a mailbox message that the PF driver has not read yet.
    pub asking: VfSet,
    /// True if the port has a link.
    pub link: bool,
    /// Number of the port's storms, and true if a storm is active.
    pub storms: (u64, bool),
    /// Time when the VFs were last checked for offences.
    pub watched: Time,
    /// State of each function's client.
    pub clients: Vec<ClientState>,
}
