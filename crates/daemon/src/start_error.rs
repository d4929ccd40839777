//! Errors of starting the host.

use crate::port::PortStartError;
use host::confine::SandboxError;
use host::folder::SocketFolderError;
use host::socket::SocketFileError;
use thiserror::Error;

/// Reason why the host cannot start. The failed start leaves nothing behind.
#[derive(Debug, Error)]
pub enum HostStartError {
    /// The folder for sockets cannot be created, or is not safe.
    #[error("cannot use the folder for sockets: {0}; set runtime_dir to a folder of your own")]
    RuntimeDir(#[from] SocketFolderError),
    /// The control socket cannot be created.
    #[error("cannot open the control socket: {0}")]
    Control(#[from] SocketFileError),
    /// A port of the host cannot start.
    #[error("cannot start port {name}: {source}")]
    Port {
        /// Name of the port that cannot start.
        name: String,
        /// Reason why the port cannot start.
        source: PortStartError,
    },
    /// The host's threads cannot be restricted.
    #[error(transparent)]
    Confine(#[from] SandboxError),
    /// An epoll instance, an eventfd or a thread of the host cannot be created.
    #[error("cannot start the host: {0}")]
    System(#[from] std::io::Error),
}

impl HostStartError {
    /// Returns the error of a port that cannot start.
    pub(crate) fn of_port(name: &str, source: PortStartError) -> Self {
        Self::Port { name: name.to_owned(), source }
    }
}
