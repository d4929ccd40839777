//! Received part of an incomplete vfio-user message.
//!
//! A stream may be cut anywhere, and the kernel charges a client some 3 KB for each piece in the socket, however
//! short. A message in many pieces would fill the socket before it is whole, and the client could not send the
//! rest. So when no more bytes are there, the port holds the received part in the reply file and consumes it, in
//! one step. It keeps the descriptors of the part before. A successor finds the part in the file, and the rest in
//! the socket.
//!
//! The status shows a client that stops in the middle of a message. The client is disconnected after [`PATIENCE`].

use std::fmt;
use std::time::Duration;

/// Timeout of a client that pauses in the middle of a message. QEMU and Cloud Hypervisor send a message with one call.
/// So only a client that is stopped while its socket is full comes near this limit.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Time without bytes in the middle of a message after which the status shows the client's silence.
const SHOWN: Duration = Duration::from_secs(1);

/// Progress of a vfio-user message that a client has begun and not finished.
#[derive(Debug, Clone, Copy)]
pub(in crate::port) struct PartialMessage {
    pub(super) received: usize,
    /// Size of the incomplete message in bytes, if its header has come.
    pub(super) size: Option<u32>,
    pub(super) silent: Duration,
}

impl PartialMessage {
    /// Returns true if the client is silent in the middle of a message long enough for the status to show it.
    pub(in crate::port) fn is_shown(&self) -> bool {
        self.silent >= SHOWN
    }

    /// Returns true if the client has exceeded the timeout of an incomplete message.
    pub(in crate::port) fn is_overdue(&self) -> bool {
        self.silent >= PATIENCE
    }
}

impl fmt::Display for PartialMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { received, size, silent } = self;
        let (seconds, most) = (silent.as_secs(), PATIENCE.as_secs());
        write!(f, "received {received} ")?;
        if let Some(size) = size {
            write!(f, "of {size} ")?;
        }
        write!(f, "bytes of a message, and nothing more for {seconds} s (the timeout is {most} s)")
    }
}
