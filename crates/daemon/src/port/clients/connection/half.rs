//! The first part of a message that has not come whole.
//!
//! A stream may be cut anywhere, and the kernel charges a client some 3 KB for each piece that lies in the socket, however
//! short: a message in many pieces would fill the socket before it is whole, and the client could not send the rest. So when
//! nothing more is there, the part that has come is held in the file of replies and consumed, in one step. Its descriptors
//! are kept before. A successor finds the part there, and the rest in the socket.
//!
//! A client that stops in the middle of a message is shown, and cut off after [`PATIENCE`].

use std::fmt;
use std::time::Duration;

/// The longest silence in the middle of a message. QEMU and Cloud Hypervisor send a message with one call, so only one that is
/// stopped while its socket is full comes near it.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// The silence in the middle of a message from which on it is shown.
const SHOWN: Duration = Duration::from_secs(1);

/// A message that a client has begun and not ended.
#[derive(Debug, Clone, Copy)]
pub(in crate::port) struct Half {
    pub(super) received: usize,
    /// The size of the message, if its header has come.
    pub(super) size: Option<u32>,
    pub(super) silent: Duration,
}

impl Half {
    /// Returns whether the client has been silent long enough for the status to tell of it.
    pub(in crate::port) fn is_shown(&self) -> bool {
        self.silent >= SHOWN
    }

    /// Returns whether the client is to be cut off.
    pub(in crate::port) fn is_overdue(&self) -> bool {
        self.silent >= PATIENCE
    }
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { received, size, silent } = self;
        let (seconds, most) = (silent.as_secs(), PATIENCE.as_secs());
        write!(f, "it has sent {received} ")?;
        if let Some(size) = size {
            write!(f, "of {size} ")?;
        }
        write!(f, "bytes of a message and nothing more for {seconds} s (at most {most} s are waited for)")
    }
}
