//! Why a card does not come up, or refuses a change.

use super::uplink::UplinkError;
use avf_nic::RestoreError as AvfCardError;
use driver::avf::pf::RestoreError as AvfPfError;
use driver::pf::{PfError, ResizeError};
use host::confine::ConfineError;
use iovm::{AssignmentError, DiscoverError, EnableError};
use policy::PolicyError;
use thiserror::Error;

/// Why the card of a port, with its bus and its uplink, does not come up.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The uplink cannot be opened.
    #[error(transparent)]
    Uplink(#[from] UplinkError),
    /// A function gets no thread.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// The process's table of mappings is shared out.
    #[error("this process has too many functions to map the memory of their clients; run a second host")]
    NoMappings,
    /// The card and its drivers disagree: a defect of this program.
    #[error("the card does not come up: {0}")]
    Card(String),
}

macro_rules! card_errors {
    ($($error:ty),*) => { $(impl From<$error> for EngineError {
        fn from(error: $error) -> Self {
            Self::Card(error.to_string())
        }
    })* };
}
card_errors!(PfError, PolicyError, DiscoverError, EnableError, AssignmentError);

/// Why the card was not changed or reset.
#[derive(Debug, Error)]
pub enum CardRefusal {
    /// A guest drives the PF.
    #[error("a guest drives this port's PF: policy and resets are that guest's")]
    Guests,
    /// The PF cannot change its number of VFs now.
    #[error("{name}.vfs: {error}")]
    Resize {
        /// The port.
        name: String,
        /// Why.
        error: ResizeError,
    },
    /// The card and the drivers disagree: a defect of this program.
    #[error("the card does not follow: {0}")]
    Card(String),
}

impl From<PfError> for CardRefusal {
    fn from(error: PfError) -> Self {
        Self::Card(error.to_string())
    }
}

impl From<AssignmentError> for CardRefusal {
    fn from(error: AssignmentError) -> Self {
        Self::Card(error.to_string())
    }
}

/// Why a predecessor's state cannot be used.
#[derive(Debug, Error)]
pub(in crate::port) enum InheritanceError {
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] crate::state::StateError),
    /// No 82576 can be in this state.
    #[error(transparent)]
    Card(#[from] crate::state::card::RestoreError),
    /// No AVF card can be in this state.
    #[error(transparent)]
    Avf(#[from] AvfCardError),
    /// No PF driver of an AVF card can be in this state.
    #[error(transparent)]
    AvfPf(#[from] AvfPfError),
    /// The configuration has other functions now.
    #[error("the configuration has other functions than before")]
    Functions,
    /// The card does not come up.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
