//! Outcome of a request: an answer, or the failure that the client receives instead.

use crate::control::problem::ProblemKind;
use crate::control::protocol::RequestFailure;

/// Answer to a request, or the failure that the client receives instead.
pub(super) type RequestResult<T> = Result<T, RequestFailure>;

/// Returns the failure for a port that does not answer.
pub(super) fn unavailable() -> RequestFailure {
    RequestFailure::new(ProblemKind::Unavailable, "the port does not answer; see the host's log")
}
