//! Errors of the connection to a vfio-user server.

use host::memory::MapError;
use host::shared::SharedMemoryError;
use std::path::PathBuf;
use vfio_user::client::ClientError;
use vfio_user::wire::Errno;

/// Attaching to a VF has failed, or the connection is lost.
#[derive(Debug, thiserror::Error)]
pub enum HalError {
    /// No server listens on the socket.
    #[error("cannot connect to {path}: {source}", path = path.display())]
    Connect {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system call.
        source: std::io::Error,
    },
    /// A system call on eventfds, epoll or the socket fails.
    #[error("vfio-user connection: {0}")]
    System(#[from] std::io::Error),
    /// No memory can be shared.
    #[error(transparent)]
    Memory(#[from] SharedMemoryError),
    /// Registers that the server offers as memory cannot be mapped.
    #[error("registers that the server offers cannot be mapped: {0}")]
    Registers(#[from] MapError),
    /// The server violates the protocol.
    #[error("vfio-user server: {0}")]
    Protocol(#[from] ClientError),
    /// The server refused a request.
    #[error("the vfio-user server refused {request}: errno {}", errno.0)]
    Refused {
        /// The request.
        request: &'static str,
        /// The server's reply.
        errno: Errno,
    },
    /// No driver knows the device, or it lacks what a VF has.
    #[error("not a VF: {0}")]
    NotAVf(&'static str),
    /// The server has closed the connection.
    #[error("the vfio-user server is gone")]
    Gone,
    /// The server neither replies nor reads within the timeout.
    #[error("the vfio-user server does not answer")]
    Late,
}
