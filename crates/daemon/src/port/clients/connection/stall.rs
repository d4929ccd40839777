//! Stall of a client: it has stopped in the middle of a message, or it reads no replies.
//!
//! The status shows such a client. The client is disconnected after [`PATIENCE`]. What it makes the port hold is
//! bounded before that: one incomplete message with its descriptors, and some replies.

use std::fmt;
use std::time::Duration;

/// Timeout of a client that stalls. QEMU and Cloud Hypervisor send a message with one call, and wait for each reply. So
/// only a client whose process is stopped while its socket is full comes near this limit.
pub(in crate::port::clients) const PATIENCE: Duration = Duration::from_secs(30);
/// Duration of a stall after which the status shows it.
const SHOWN: Duration = Duration::from_secs(1);

/// Cause of a client's stall: an incomplete message, or unread replies.
#[derive(Debug, Clone, Copy)]
pub(in crate::port::clients) enum ClientStallCause {
    /// The client has begun a message and not finished it.
    Message {
        /// Received bytes of the incomplete message.
        received: usize,
        /// Size of the incomplete message in bytes, if the header has arrived.
        size: Option<u32>,
    },
    /// The client has not read this number of replies.
    Replies(usize),
}

/// Stall of a client, and its duration.
#[derive(Debug, Clone, Copy)]
pub(in crate::port) struct ClientStall {
    pub(in crate::port::clients) missing: ClientStallCause,
    pub(in crate::port::clients) silent: Duration,
}

impl ClientStall {
    /// Returns true if the client stalls long enough for the status to show it.
    pub(in crate::port) fn is_shown(&self) -> bool {
        self.silent >= SHOWN
    }

    /// Returns true if the client has exceeded the timeout of a stall.
    pub(in crate::port) fn is_overdue(&self) -> bool {
        self.silent >= PATIENCE
    }
}

impl fmt::Display for ClientStall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, most) = (self.silent.as_secs(), PATIENCE.as_secs());
        match self.missing {
            ClientStallCause::Message { received, size } => {
                write!(f, "the client has stopped in the middle of a message: received {received} ")?;
                if let Some(size) = size {
                    write!(f, "of {size} ")?;
                }
                write!(f, "bytes of a message, and nothing more for {seconds} s (the timeout is {most} s)")
            }
            ClientStallCause::Replies(unsent) => {
                write!(
                    f,
                    "the client does not read {unsent} replies for {seconds} s (the timeout is {most} s)"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientStall, ClientStallCause, PATIENCE};

    #[test]
    fn client_stall_error_counts_received_bytes_or_unread_replies() {
        let text = |missing| ClientStall { missing, silent: PATIENCE }.to_string();
        assert_eq!(
            text(ClientStallCause::Message { received: 20, size: Some(48) }),
            "the client has stopped in the middle of a message: received 20 of 48 bytes of a message, and nothing \
             more for 30 s (the timeout is 30 s)"
        );
        let replies = text(ClientStallCause::Replies(16));
        assert_eq!(replies, "the client does not read 16 replies for 30 s (the timeout is 30 s)");
    }
}
