//! The state of a port: its card with the PF's software, and what is known of each function's client. Left out: clients
//! themselves, with their sockets and memory, which are noted elsewhere as they come and go.

use super::card::CardState;
use crate::control::status::Interventions;
use driver::pf::{PfState, SavedPortPolicy};
use i82576::Time;
use iovm::ManagerState;
use pcie::msix::TableState;
use policy::VfPolicy;
use serde::{Deserialize, Serialize};

/// A port set aside between two rounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PortState {
    /// The card, with the software of its PF.
    pub card: CardState,
    /// The MSI-X table of a PF that a guest has.
    pub table: Option<TableState>,
    /// What the PF driver was configured with.
    pub configured: Option<Configured>,
    /// When the VFs were last judged.
    pub watched: Time,
    /// The functions that clients can have: the PF, or the VFs by index.
    pub functions: Vec<ClientState>,
}

/// What the host counts and knows of a function and its clients.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct ClientState {
    /// What passed between card and VMM.
    pub interventions: Interventions,
    /// The interrupt pin is raised, and held back.
    pub pin: (bool, bool),
    /// The guest's memory was looked at, and it is private.
    pub judged: (bool, bool),
    /// The client was told that it shares no memory.
    pub warned: bool,
}

/// The software of a port: what the administrator has decided and what guests have configured. It outlives the card: when
/// the card's state is lost, the card is set up anew by it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SoftwareState {
    /// The PF driver and the SR-IOV manager; there are none where a guest has the PF.
    pub hosted: Option<HostedState>,
    /// What a guest that has the PF has configured.
    pub guest: Option<GuestState>,
}

/// The PF driver, the SR-IOV manager, and what they were configured with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostedState {
    /// The PF driver.
    pub pf: PfState,
    /// The SR-IOV manager.
    pub manager: ManagerState,
    /// The policy that the configuration had.
    pub configured: Configured,
}

/// A port's policy by its configuration: what of it was changed since is the administrator's latest word. The port's own is
/// in the terms of its family's software.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Configured<P = SavedPortPolicy> {
    /// The port's.
    pub port: P,
    /// The VFs', by index.
    pub vfs: Vec<VfPolicy>,
}

/// A PF as its guest has configured it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GuestState {
    /// The first 256 bytes of configuration space.
    pub config: Vec<u8>,
    /// The MSI-X table.
    pub table: TableState,
}
