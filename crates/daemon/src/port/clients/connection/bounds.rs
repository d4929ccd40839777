//! Budget and outcomes of one client's turn, in which the port handles some of the client's messages.

use i82576::Time;
use std::fmt::Display;
use std::time::Duration;
use units::WorkAccount;

/// Maximum number of receives from a client's socket before the port serves the next client.
pub(in crate::port::clients) const RECEIVES: usize = 8;
/// Longest time for which the port handles one client's messages before it serves the next client. Clients of other VFs
/// wait meanwhile, several times for each frame and its reply (`tests/live/neighbours.rs` measures it). The account of
/// the client's function ends a turn by cost; this limit is for messages that cost more than the account says.
const TURN: Duration = Duration::from_micros(20);

/// Limit of a client's turn.
#[derive(Debug, Clone, Copy)]
pub(in crate::port::clients) struct ClientServiceBudget {
    began: Time,
}

impl ClientServiceBudget {
    /// Returns the budget of a client's turn, which begins now.
    pub(in crate::port::clients) fn begin(now: Time) -> Self {
        Self { began: now }
    }

    /// Returns true if the client's turn has used up its time, or the credit of its function's account.
    pub(in crate::port::clients) fn is_used_up(&self, account: &WorkAccount, now: Time) -> bool {
        !account.has_credit() || now.since(self.began) >= TURN
    }
}

/// Error after a receive that lost some of the file descriptors of a client's message. The host cannot know which are
/// lost, and a window without its memory would fail silently.
const LOST_FDS: &str = "file descriptors of a message were lost: the client sent too many, or the host \
                        reached its limit of open files; raise LimitNOFILE= of its unit, or ulimit -Hn";

/// Reason for the end of a client's connection.
#[derive(Debug)]
pub(in crate::port) enum DisconnectReason {
    /// The client has closed its connection to the function.
    Closed,
    /// The host disconnects the client, for example at its end.
    Ended,
    /// The client violates the protocol, or the socket fails.
    Failed(String),
}

impl DisconnectReason {
    /// Creates the reason for a connection that ends after an error of the protocol or the socket.
    pub(in crate::port::clients) fn failed(error: impl Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// Creates the reason for a connection that ends because file descriptors of a message were lost.
    pub(in crate::port::clients) fn lost_fds() -> Self {
        Self::Failed(LOST_FDS.to_owned())
    }

    /// Returns the text of the reason for the flight recorder.
    pub(in crate::port) fn words(&self) -> &'static str {
        match self {
            Self::Closed => "the client has closed the connection",
            Self::Ended => "the client was disconnected",
            Self::Failed(_) => "the client was disconnected after an error",
        }
    }
}

/// Outcome of a client's turn, in which the port handled the client's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) enum ClientServiceOutcome {
    /// The client's pending messages were all handled.
    Done,
    /// The client may have more pending messages. Serve the client again without waiting.
    More,
    /// A blocking call for the client is pending. Serve the client again when the call has ended.
    Waiting,
}

/// Outcome of a client's turn, or the reason to disconnect the client.
pub(in crate::port) type VisitResult = Result<ClientServiceOutcome, DisconnectReason>;
