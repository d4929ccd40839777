//! Errors of starting, changing or resetting a port of the host.

use super::clients::journal::JournalError;
use super::clients::listening::FunctionSocketError;
use super::engine::error::{CardChangeRefusal, PortEngineStartError};
use super::engine::uplink::UplinkError;
use crate::settings::SettingError;
use crate::state::SavedStateError;
use host::confine::SandboxError;
use host::cpus::DisallowedCpu;
use thiserror::Error;

/// Reason why a port cannot start.
#[derive(Debug, Error)]
pub enum PortStartError {
    /// Opening the listening socket of a function fails.
    #[error(transparent)]
    Socket(#[from] FunctionSocketError),
    /// Opening the port's uplink fails.
    #[error(transparent)]
    Uplink(#[from] UplinkError),
    /// The key `cpus` names a processor that the host may not run on.
    #[error("invalid setting cpus: {0}")]
    Cpus(#[from] DisallowedCpu),
    /// The saved state that the previous host process left in the journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The saved state of the previous host process, which still runs, cannot be read.
    #[error(transparent)]
    SavedState(#[from] SavedStateError),
    /// Creating an epoll instance, an eventfd or a thread for the port fails.
    #[error("cannot set up the port's poller or thread: {0}; check the limits of open files and threads")]
    System(#[from] std::io::Error),
    /// Confining a thread of the port fails.
    #[error(transparent)]
    Confine(#[from] SandboxError),
    /// Bringing up the card or its bus fails.
    #[error(transparent)]
    Engine(#[from] PortEngineStartError),
}

/// Reason why a change to a VF or a port, or a reset of a port, was refused.
#[derive(Debug, Error)]
pub enum PortChangeRefusal {
    /// A setting of the policy is invalid, or the card does not support it in its present state.
    #[error("invalid setting {name}.{}: {}", .error.key, .error.problem)]
    Setting {
        /// Name of the VF or port with the refused setting.
        name: String,
        /// Name of the refused setting and the problem with its value.
        error: SettingError,
    },
    /// The card refuses the changed policy.
    #[error(transparent)]
    Card(#[from] CardChangeRefusal),
    /// The VF has no client to disconnect.
    #[error("no client is attached to the VF")]
    NoClient,
    /// The journal has no room for the wanted number of VFs.
    #[error("cannot change {name}.vfs: {error}")]
    Room {
        /// Name of the port with the refused change.
        name: String,
        /// Error of the journal, with the number of VFs that the journal has room for.
        error: JournalError,
    },
    /// The poller does not accept a new VF's socket.
    #[error("cannot poll the socket of a new VF: {0}")]
    System(#[from] std::io::Error),
    /// The poller does not accept the new uplink, or the thread cannot be pinned to the processors.
    #[error("cannot change {name}.{key}: {source}")]
    Refit {
        /// Name of the port whose uplink or processors stay unchanged.
        name: String,
        /// Name of the setting that was to be changed.
        key: &'static str,
        /// Error from the kernel for the setting.
        source: std::io::Error,
    },
}
