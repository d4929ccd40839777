//! Errors of a driver's connection to a vfio-user server.

use host::memory::FileMapError;
use host::shared::SharedMemoryError;
use std::path::PathBuf;
use vfio_user::client::ServerViolation;
use vfio_user::wire::Errno;

/// Error while attaching to a VF, or of the connection to its server.
#[derive(Debug, thiserror::Error)]
pub enum VfioUserHalError {
    /// No server listens on the vfio-user socket.
    #[error("cannot connect to {path}: {source}", path = path.display())]
    Connect {
        /// Path of the vfio-user socket.
        path: PathBuf,
        /// Error of the system call that connects to the socket.
        source: std::io::Error,
    },
    /// A system call on eventfds, epoll or the socket failed.
    #[error("a system call of the vfio-user connection failed: {0}")]
    System(#[from] std::io::Error),
    /// The system refuses shared memory for the driver.
    #[error(transparent)]
    Memory(#[from] SharedMemoryError),
    /// Registers that the server offers as memory cannot be mapped.
    #[error("cannot map the registers of the vfio-user server: {0}")]
    Registers(#[from] FileMapError),
    /// The vfio-user server has violated the protocol.
    #[error("the vfio-user server violated the protocol: {0}")]
    Protocol(#[from] ServerViolation),
    /// The vfio-user server has refused a request.
    #[error("the vfio-user server refused {request}: errno {}", errno.0)]
    Refused {
        /// Name of the refused request.
        request: &'static str,
        /// Error number in the server's reply.
        errno: Errno,
    },
    /// The device behind the socket is of a family without a driver here, or lacks a part that every VF has.
    #[error("the vfio-user device is not a usable VF: {0}")]
    NotAVf(&'static str),
    /// The vfio-user server has closed the connection.
    #[error("the vfio-user server has closed the connection")]
    Gone,
    /// The vfio-user server did not reply, or did not read, within the timeout.
    #[error("the vfio-user server did not reply within the timeout")]
    Late,
}
