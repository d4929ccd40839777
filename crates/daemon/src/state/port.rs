//! Saved state of an 82576 port: its card with the PF's software, and the state of each function's client. The
//! clients' sockets and memory are journaled separately, as they come and go.

use super::card::CardState;
use crate::control::status::VmmInterventions;
use driver::pf::{PfState, SavedPortPolicy};
use i82576::Time;
use iovm::SrIovManagerState;
use pcie::msix::MsiXTableState;
use policy::VfPolicy;
use serde::{Deserialize, Serialize};

/// Saved state of an 82576 port between two rounds of its loop.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "PortState")]
pub struct I82576PortState {
    /// State of the card, with its PF driver and SR-IOV manager.
    pub card: CardState,
    /// MSI-X table of a PF that a guest drives; `None` if the host drives the PF.
    pub table: Option<MsiXTableState>,
    /// Policies of the port and its VFs in the configuration, if the host runs the PF driver.
    pub configured: Option<ConfiguredPolicies>,
    /// Time when the VFs were last checked for offences.
    pub watched: Time,
    /// State of each function that a client can have: the PF, or the VFs by index.
    pub functions: Vec<ClientState>,
}

/// State of a function's client that the journal does not hold.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct ClientState {
    /// Numbers of messages and interrupts between card and VMM.
    pub interventions: VmmInterventions,
    /// Flags of the function's interrupt pin: true if it is raised, and true if the client has masked it.
    pub pin: (bool, bool),
    /// Flags of the guest's memory: true if it was checked for private copies, and true if the check found them.
    pub judged: (bool, bool),
    /// True if the log has a warning that the client shares no memory.
    pub warned: bool,
}

/// Driver state of an 82576 port: policies, and the PCI configurations that guests have set. It outlives the card: a
/// new card can be set up from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "SoftwareState")]
pub struct PortSoftwareState {
    /// State of PF driver and SR-IOV manager; `None` if a guest has the PF.
    pub hosted: Option<HostPfState>,
    /// State of the PF by its guest's driver; `None` if the host has the PF.
    pub guest: Option<GuestPfState>,
}

/// State of the PF driver and the SR-IOV manager, and the configured policies.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "HostedState")]
pub struct HostPfState {
    /// State of the PF driver.
    pub pf: PfState,
    /// State of the SR-IOV manager.
    pub manager: SrIovManagerState,
    /// Policies of the port and its VFs in the configuration.
    pub configured: ConfiguredPolicies,
}

/// Policies of a port and its VFs in the configuration. A successor process whose configuration has equal policies
/// keeps the policies in force; otherwise the administrator has changed the file, and the new configuration applies.
/// The type of the port's own policy depends on the card family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Configured")]
pub struct ConfiguredPolicies<P = SavedPortPolicy> {
    /// Policy of the port in the configuration.
    pub port: P,
    /// Policies of the VFs in the configuration, by index.
    pub vfs: Vec<VfPolicy>,
}

/// State of a PF that a guest drives, as its guest has configured it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "GuestState")]
pub struct GuestPfState {
    /// First 256 bytes of the PF's configuration space.
    pub config: Vec<u8>,
    /// State of the PF's MSI-X table.
    pub table: MsiXTableState,
}
