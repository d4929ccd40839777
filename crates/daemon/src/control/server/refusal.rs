//! Response to a control request that was not served. `problem` has the kinds of problems.

use crate::control::problem::ProblemDetails;
use crate::control::protocol::ControlRequestFailure;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// Returns the response that reports a failed control request.
pub(super) fn refuse(failure: ControlRequestFailure, path: &str) -> Response {
    let status = failure.kind.status();
    let text = serde_json::to_string(&ProblemDetails::new(failure, path)).unwrap_or_default();
    let kind = HeaderValue::from_static("application/problem+json");
    (status, [(CONTENT_TYPE, kind)], text).into_response()
}
