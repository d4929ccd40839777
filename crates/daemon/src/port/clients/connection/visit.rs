//! Bounds and outcomes of a visit to a connection. Left out: the visit.

use i82576::Time;
use std::fmt::Display;
use std::time::Duration;

/// Receives of a visit.
pub(super) const RECEIVES: usize = 8;
/// Messages of a visit.
const MESSAGES: usize = 32;
/// Duration of a visit: other VFs wait meanwhile, several times for each frame and its answer (`tests/live/neighbours.rs`
/// measures it). It counts when messages are expensive, such as one window among tens of thousands.
const TURN: Duration = Duration::from_micros(20);

/// The rest of a visit.
#[derive(Debug)]
pub(super) struct Turn {
    messages: usize,
    began: Time,
}

impl Turn {
    /// Begins a visit.
    pub(super) fn begin(now: Time) -> Self {
        Self { messages: MESSAGES, began: now }
    }

    /// Counts a message.
    pub(super) fn count(&mut self) {
        self.messages -= 1;
    }

    /// Returns true if other connections have their turn.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.messages == 0 || now.since(self.began) >= TURN
    }
}

/// Which descriptors are lost cannot be told, and a window without its memory would fail without a word.
const LOST_FDS: &str = "descriptors were lost: it sent too many at once, or this process may open no more; raise LimitNOFILE= of the host's \
     unit, or ulimit -Hn";

/// Reason for the end of a connection.
#[derive(Debug)]
pub(in crate::port) enum Over {
    /// The client has gone.
    Closed,
    /// The host lets it go.
    Ended,
    /// The client does not speak the protocol, or the socket broke.
    Failed(String),
}

impl Over {
    /// The protocol or the socket failed.
    pub(super) fn failed(error: impl Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// Descriptors of the client are lost.
    pub(super) fn lost_fds() -> Self {
        Self::Failed(LOST_FDS.to_owned())
    }

    /// Returns the words for a log line about the function.
    pub(in crate::port) fn words(&self) -> &'static str {
        match self {
            Self::Closed => "the client has gone",
            Self::Ended => "the client is let go",
            Self::Failed(_) => "the client is cut off",
        }
    }
}

/// Outcome of a visit to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) enum Visit {
    /// Everything that is there was handled.
    Done,
    /// There may be more: come back without waiting.
    More,
    /// An errand has to be done first: come back when it is.
    Waiting,
}
