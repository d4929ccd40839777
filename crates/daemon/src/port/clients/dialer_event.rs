//! Events that the thread of `dialer` reports, and the intervals of its attempts.

use host::socket::StreamSocket;
use std::io;
use std::time::Duration;

/// Shortest interval between two attempts to connect to a VMM's socket. It doubles with each failed attempt.
pub(super) const SHORTEST: Duration = Duration::from_millis(100);
/// Longest interval between two attempts to connect to a VMM's socket.
pub(super) const LONGEST: Duration = Duration::from_secs(1);

/// Event at a function's socket.
#[derive(Debug)]
pub(super) enum DialerEvent {
    /// The host is connected to the VMM.
    Connected(StreamSocket),
    /// The host is not connected yet, for a new reason. The thread keeps trying.
    Unconnected(String),
    /// These clients were in the queue of a listening socket whose door the thread shuts.
    Drained(Vec<StreamSocket>),
    /// The door of the listening socket is not shut yet, for a new reason. The thread keeps trying.
    Unshut(String),
    /// The door of the listening socket is open.
    Opened,
    /// The door of the listening socket cannot be opened.
    Unopened(io::Error),
}

impl DialerEvent {
    /// Returns the connections that come with the event.
    pub(super) fn into_streams(self) -> Vec<StreamSocket> {
        match self {
            Self::Connected(stream) => vec![stream],
            Self::Drained(streams) => streams,
            Self::Unconnected(_) | Self::Unshut(_) | Self::Opened | Self::Unopened(_) => Vec::new(),
        }
    }
}
