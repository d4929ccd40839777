//! Outcome of a request: an answer, or the failure that the client receives instead.

use crate::control::problem::Kind;
use crate::control::protocol::Failure;

/// Answer to a request, or the failure that the client receives instead.
pub(super) type Outcome<T> = Result<T, Failure>;

/// Returns the failure for a port that does not answer.
pub(super) fn unavailable() -> Failure {
    Failure::new(Kind::Unavailable, "the port does not answer; see the host's log")
}
