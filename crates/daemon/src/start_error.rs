//! Why a host cannot start.

use crate::port::PortError;
use host::confine::ConfineError;
use host::folder::FolderError;
use host::socket::BindError;
use thiserror::Error;

/// Why the host cannot start. Nothing is left behind.
#[derive(Debug, Error)]
pub enum StartError {
    /// The folder for sockets cannot be made, or is not safe.
    #[error("{0}; set runtime_dir to a folder of your own")]
    RuntimeDir(#[from] FolderError),
    /// The control socket cannot be made.
    #[error("control socket: {0}")]
    Control(#[from] BindError),
    /// A port cannot be started.
    #[error("{name}: {source}")]
    Port {
        /// The port.
        name: String,
        /// Why.
        source: PortError,
    },
    /// What is to be given up is not.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// epoll, eventfd or a thread.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}
