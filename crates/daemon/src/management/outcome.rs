//! The outcome of a request: an answer, or what the client is told instead.

use crate::control::problem::Kind;
use crate::control::protocol::Failure;

/// An answer, or what a client is told instead.
pub(super) type Outcome<T> = Result<T, Failure>;

/// Returns the failure of a port that gives no answer.
pub(super) fn unavailable() -> Failure {
    Failure::new(Kind::Unavailable, "the port does not answer; see the host's log")
}
