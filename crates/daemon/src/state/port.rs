//! State of a port: its card with the PF's software, and the state of each function's client. The clients' sockets and
//! memory are journaled separately, as they come and go.

use super::card::CardState;
use crate::control::status::VmmInterventions;
use driver::pf::{PfState, SavedPortPolicy};
use i82576::Time;
use iovm::SrIovManagerState;
use pcie::msix::MsiXTableState;
use policy::VfPolicy;
use serde::{Deserialize, Serialize};

/// Saved state of an 82576 port between two rounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "PortState")]
pub struct I82576PortState {
    /// State of the card, with the software of its PF.
    pub card: CardState,
    /// MSI-X table of a PF that a guest drives.
    pub table: Option<MsiXTableState>,
    /// Configured policies of the PF driver.
    pub configured: Option<ConfiguredPolicies>,
    /// Time of the last check of the VFs' conduct.
    pub watched: Time,
    /// State of each function that a client can have: the PF, or the VFs by index.
    pub functions: Vec<ClientState>,
}

/// Counters and state of a function's client.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct ClientState {
    /// Messages and interrupts between card and VMM.
    pub interventions: VmmInterventions,
    /// Level of the function's interrupt pin: raised, and masked.
    pub pin: (bool, bool),
    /// Guest memory: checked, and found to be private.
    pub judged: (bool, bool),
    /// The log has a warning that the client shares no memory.
    pub warned: bool,
}

/// Software of a port: the policy, and the configuration by guests. It outlives the card: if the card's state is lost,
/// the card is set up again from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "SoftwareState")]
pub struct PortSoftwareState {
    /// PF driver and SR-IOV manager; `None` if a guest has the PF.
    pub hosted: Option<HostPfState>,
    /// Configuration by a guest that has the PF.
    pub guest: Option<GuestPfState>,
}

/// State of the PF driver and the SR-IOV manager, and their configuration.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "HostedState")]
pub struct HostPfState {
    /// State of the PF driver.
    pub pf: PfState,
    /// State of the SR-IOV manager.
    pub manager: SrIovManagerState,
    /// Policies of the port and its VFs by the configuration.
    pub configured: ConfiguredPolicies,
}

/// Policies of a port by its configuration. If a successor's configuration has the same, the effective policies stay;
/// if not, the administrator has changed the file since, and the successor's configuration applies. The port's own
/// policy has the form of its family's software.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Configured")]
pub struct ConfiguredPolicies<P = SavedPortPolicy> {
    /// Policy of the port by the configuration.
    pub port: P,
    /// Policies of the VFs by the configuration, by index.
    pub vfs: Vec<VfPolicy>,
}

/// State of the PF as its guest has configured it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "GuestState")]
pub struct GuestPfState {
    /// First 256 bytes of configuration space.
    pub config: Vec<u8>,
    /// State of the PF's MSI-X table.
    pub table: MsiXTableState,
}
