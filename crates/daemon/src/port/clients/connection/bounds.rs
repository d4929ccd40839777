//! Bounds and outcomes of one visit to a client's connection.

use i82576::Time;
use std::fmt::Display;
use std::time::Duration;

/// Maximum number of receives per visit to a client.
pub(super) const RECEIVES: usize = 8;
/// Maximum number of messages per visit to a client.
const MESSAGES: usize = 32;
/// Longest duration of a visit to a client's connection. Other VFs wait meanwhile, several times for each frame and
/// its reply (`tests/live/neighbours.rs` measures it). This limit counts for expensive messages, such as one window
/// among tens of thousands.
const TURN: Duration = Duration::from_micros(20);

/// Remaining messages and time of a visit to a client.
#[derive(Debug)]
pub(super) struct VisitBudget {
    messages: usize,
    began: Time,
}

impl VisitBudget {
    /// Begins a visit to a client.
    pub(super) fn begin(now: Time) -> Self {
        Self { messages: MESSAGES, began: now }
    }

    /// Counts a message of the visit.
    pub(super) fn count(&mut self) {
        self.messages -= 1;
    }

    /// Returns true if the visit's budget is used up.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.messages == 0 || now.since(self.began) >= TURN
    }
}

/// Error after a receive with truncated descriptors. The host cannot know which are lost, and a window without its
/// memory would fail silently.
const LOST_FDS: &str = "file descriptors of a message were lost: the client sent too many, or the host \
                        reached its limit of open files; raise LimitNOFILE= of its unit, or ulimit -Hn";

/// Reason for the end of a client's connection.
#[derive(Debug)]
pub(in crate::port) enum DisconnectReason {
    /// The client has closed the connection.
    Closed,
    /// The host disconnects the client.
    Ended,
    /// The client violates the protocol, or the socket fails.
    Failed(String),
}

impl DisconnectReason {
    /// Creates the end after an error of the protocol or the socket.
    pub(super) fn failed(error: impl Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// Creates the reason for a connection that ends by lost descriptors.
    pub(super) fn lost_fds() -> Self {
        Self::Failed(LOST_FDS.to_owned())
    }

    /// Returns the reason's text for the flight recorder.
    pub(in crate::port) fn words(&self) -> &'static str {
        match self {
            Self::Closed => "the client has closed the connection",
            Self::Ended => "the client was disconnected",
            Self::Failed(_) => "the client was disconnected after an error",
        }
    }
}

/// Outcome of a visit to a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) enum VisitOutcome {
    /// The client's pending messages were all handled.
    Done,
    /// The client may have more pending messages. Visit again without waiting.
    More,
    /// A blocking call for the client is pending. Visit the client again when the errand is done.
    Waiting,
}

/// Result of a visit to a client.
pub(super) type VisitResult = Result<VisitOutcome, DisconnectReason>;
