//! Errors of a front end's connection to its back end, and of the driver's rings.

use host::shared::SharedMemoryError;
use std::path::PathBuf;
use vhost_user::frontend::BackendViolation;
use vhost_user::message::RequestCode;
use virtio::driver::DriverRingError;
use virtio::layout::LayoutError;
use virtio::{MemoryFault, VirtioFeatures};

/// Error while attaching to a virtio function, or of its rings.
#[derive(Debug, thiserror::Error)]
pub enum VhostClientError {
    /// No back end listens on the vhost-user socket.
    #[error("cannot connect to {path}: {source}", path = path.display())]
    Connect {
        /// Path of the vhost-user socket.
        path: PathBuf,
        /// Error of the system call that connects to the socket.
        source: std::io::Error,
    },
    /// A system call on eventfds, epoll or the socket failed.
    #[error("a system call of the vhost-user connection failed: {0}")]
    System(#[from] std::io::Error),
    /// The system refuses shared memory for the guest.
    #[error(transparent)]
    Memory(#[from] SharedMemoryError),
    /// The guest's memory is too small for rings and buffers.
    #[error("the guest's memory has no room for {0} bytes of rings or buffers")]
    MemoryUsedUp(u64),
    /// The back end has violated the vhost-user protocol.
    #[error(transparent)]
    Protocol(#[from] BackendViolation),
    /// The back end does not offer features that the driver needs.
    #[error("the back end does not offer the virtio features {0:?}")]
    NotOffered(VirtioFeatures),
    /// The back end lacks the protocol feature for acknowledgements, which each request here needs.
    #[error("the back end does not offer REPLY_ACK")]
    NoAcknowledgements,
    /// The back end has refused a request.
    #[error("the back end refused the request {0:?}")]
    Refused(RequestCode),
    /// The back end's reply is none to the request.
    #[error("unexpected reply of the back end to the request {0:?}")]
    UnexpectedReply(RequestCode),
    /// The driver's ring cannot be set up.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The driver's ring cannot continue.
    #[error(transparent)]
    Ring(#[from] DriverRingError),
    /// The back end has closed the connection.
    #[error("the back end has closed the connection")]
    Gone,
    /// The back end did not reply, or did not read, within the timeout.
    #[error("the back end did not reply within the timeout")]
    Late,
}

impl From<MemoryFault> for VhostClientError {
    fn from(fault: MemoryFault) -> Self {
        Self::Ring(fault.into())
    }
}
