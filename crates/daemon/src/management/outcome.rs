//! Outcome of a control request: the answer, or the failure that the client receives instead.

use crate::control::problem::ProblemKind;
use crate::control::protocol::ControlRequestFailure;

/// Answer to a control request, or the failure that the client receives instead.
pub(super) type ControlRequestResult<T> = Result<T, ControlRequestFailure>;

/// Returns the failure of a control request whose port does not answer.
pub(super) fn unavailable() -> ControlRequestFailure {
    ControlRequestFailure::new(ProblemKind::Unavailable, "the port does not answer; see the host's log")
}
