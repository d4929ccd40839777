//! Errors of bringing up, changing or restoring a port's card.

use avf_nic::RestoreError as AvfCardError;
use driver::avf::pf::AvfPfRestoreError as AvfPfError;
use driver::pf::{PfError, VfCountError};
use host::confine::SandboxError;
use iovm::{VfAssignmentError, VfDiscoveryError, VfEnableError};
use policy::PolicyError;
use thiserror::Error;

/// Reason why a port's card and bus cannot start.
#[derive(Debug, Error)]
pub enum PortEngineStartError {
    /// Starting or confining the thread of a function fails.
    #[error(transparent)]
    Confine(#[from] SandboxError),
    /// The table of guest memory mappings has no free part for another client.
    #[error("the host has too many functions to map the memory of further clients; start a second host")]
    NoMappings,
    /// The PF driver or the SR-IOV manager cannot set up the card, which is a defect of this program.
    #[error("cannot bring up the card: {0}")]
    Card(String),
}

macro_rules! card_errors {
    ($($error:ty),*) => { $(impl From<$error> for PortEngineStartError {
        fn from(error: $error) -> Self {
            Self::Card(error.to_string())
        }
    })* };
}
card_errors!(PfError, PolicyError, VfDiscoveryError, VfEnableError, VfAssignmentError);

/// Reason why a change or reset of the card was refused.
#[derive(Debug, Error)]
pub enum CardChangeRefusal {
    /// A guest drives the PF, so the host cannot change it.
    #[error("a guest drives this port's PF, and only the guest can set policy or reset the port")]
    Guests,
    /// The PF driver refuses the new number of VFs.
    #[error("cannot change {name}.vfs: {error}")]
    Resize {
        /// Name of the port with the refused number of VFs.
        name: String,
        /// Error of the PF driver about the new number of VFs.
        error: VfCountError,
    },
    /// The PF driver or the SR-IOV manager cannot make the change, which is a defect of this program.
    #[error("the card does not accept the change: {0}")]
    Card(String),
}

impl From<PfError> for CardChangeRefusal {
    fn from(error: PfError) -> Self {
        Self::Card(error.to_string())
    }
}

impl From<VfAssignmentError> for CardChangeRefusal {
    fn from(error: VfAssignmentError) -> Self {
        Self::Card(error.to_string())
    }
}

/// Reason why the previous host process's saved state cannot be used.
#[derive(Debug, Error)]
pub(in crate::port) enum InheritedStateError {
    /// The saved state of the port cannot be read.
    #[error(transparent)]
    State(#[from] crate::state::SavedStateError),
    /// The saved state is invalid for an 82576 card.
    #[error(transparent)]
    Card(#[from] crate::state::card::CardStateError),
    /// The saved state is invalid for an AVF card.
    #[error(transparent)]
    Avf(#[from] AvfCardError),
    /// The state is invalid for the PF driver of an AVF card.
    #[error(transparent)]
    AvfPf(#[from] AvfPfError),
    /// The saved state has other functions than the configuration offers.
    #[error("the configuration has other functions than the previous host process's saved state")]
    Functions,
    /// Bringing up the card fails.
    #[error(transparent)]
    Engine(#[from] PortEngineStartError),
}
