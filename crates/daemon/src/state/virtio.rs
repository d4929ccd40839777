//! Saved state of a port of family virtio: policies and conduct. The rings of its devices are not saved, because clients
//! connect again and start them.

use super::port::{ClientState, ConfiguredPolicies};
use driver::conduct::VfConductMonitor;
use i82576::Time;
use policy::{PortPolicy, VfPolicy};
use serde::{Deserialize, Serialize};

/// Saved state of a virtio port.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "VirtioState")]
pub struct VirtioPortState {
    /// Policies of the VFs that are in force, by index.
    pub policies: Vec<VfPolicy>,
    /// Monitor of each VF's offences, with the cause of the VF's quarantine.
    pub conduct: Vec<VfConductMonitor>,
    /// Policies of the port and its VFs in the configuration.
    pub configured: ConfiguredPolicies<PortPolicy>,
    /// Policy of the port that is in force.
    pub policy: PortPolicy,
    /// State of the whole port, saved between two rounds of its loop.
    pub rest: Option<PausedVirtioPortState>,
}

/// State of a virtio port between two rounds of its loop, without its devices.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "VirtioRest")]
pub struct PausedVirtioPortState {
    /// True if the port has a link.
    pub link: bool,
    /// Number of the port's storms, and true if a storm is active.
    pub storms: (u64, bool),
    /// Time when the VFs were last checked for offences.
    pub watched: Time,
    /// State of each function's client.
    pub clients: Vec<ClientState>,
}
