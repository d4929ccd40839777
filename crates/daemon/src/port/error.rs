//! Why a port cannot be started, changed or reset.

use super::clients::journal::JournalError;
use super::clients::listening::SocketError;
use super::engine::error::{CardRefusal, EngineError};
use super::engine::uplink::UplinkError;
use crate::settings::SettingError;
use host::confine::ConfineError;
use host::cpus::ForeignCpu;
use thiserror::Error;

/// Why a port cannot be started.
#[derive(Debug, Error)]
pub enum PortError {
    /// The socket of a function.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The uplink.
    #[error(transparent)]
    Uplink(#[from] UplinkError),
    /// The processors of its thread.
    #[error("cpus: {0}")]
    Cpus(#[from] ForeignCpu),
    /// The notes for a successor.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// epoll, eventfd or a thread.
    #[error("cannot wait for events: {0}")]
    System(#[from] std::io::Error),
    /// A thread of its own.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// The card and its bus.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why a VF or a port was not changed, or a port not reset.
#[derive(Debug, Error)]
pub enum RefusedChange {
    /// The setting is invalid, or the card cannot have it, or not now.
    #[error("{name}.{error}")]
    Setting {
        /// The VF or port.
        name: String,
        /// The setting, and what is wrong.
        error: SettingError,
    },
    /// The card refuses.
    #[error(transparent)]
    Card(#[from] CardRefusal),
    /// There is no client to let go.
    #[error("no virtual machine is connected to it")]
    NoClient,
    /// The journal has no room for the VFs that the port is to offer.
    #[error("{name}.vfs: {error}")]
    Room {
        /// The port.
        name: String,
        /// The number of VFs it has room for.
        error: JournalError,
    },
    /// epoll.
    #[error("cannot wait for a new VF's clients: {0}")]
    System(#[from] std::io::Error),
    /// epoll, or the processors that the thread is to run on are not there any more.
    #[error("{name}.{key}: {source}")]
    Refit {
        /// The port.
        name: String,
        /// The setting.
        key: &'static str,
        /// The kernel's error.
        source: std::io::Error,
    },
}
