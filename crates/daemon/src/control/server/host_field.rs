//! Check of the `Host` field, which a request of HTTP/1.1 must have (RFC 9112, section 3.2). Its value does not matter,
//! because the server is one host only.

use super::refusal::refuse;
use crate::control::problem::ProblemKind;
use crate::control::protocol::ControlRequestFailure;
use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Version};
use axum::middleware::Next;
use axum::response::Response;

/// Refuses a request whose `Host` is missing, repeated or malformed, before any other check.
pub(super) async fn check_host(request: Request, next: Next) -> Response {
    match fault(request.version(), request.headers()) {
        None => next.run(request).await,
        Some(fault) => {
            let message =
                format!("{fault}; send exactly one, such as \"Host: localhost\" (RFC 9112, section 3.2)");
            refuse(ControlRequestFailure::new(ProblemKind::Malformed, message), request.uri().path())
        }
    }
}

/// Returns the fault of a request's `Host` header, or `None` if the header is valid.
fn fault(version: Version, headers: &HeaderMap) -> Option<&'static str> {
    let mut lines = headers.get_all(HOST).iter();
    match (lines.next(), lines.next()) {
        // HTTP/1.0 does not know the field.
        (None, _) if version < Version::HTTP_11 => None,
        (None, _) => Some("the request has no Host header"),
        (Some(_), Some(_)) => Some("the request has several Host headers"),
        (Some(host), None) if is_valid(host) => None,
        (Some(_), None) => Some("the request's Host header is malformed"),
    }
}

/// Returns true if a `Host` header is a host with or without a port, or empty. Clients send an empty one if their URI
/// has no host.
fn is_valid(host: &HeaderValue) -> bool {
    let Ok(text) = host.to_str() else { return false };
    text.is_empty() || (!text.contains('@') && text.parse::<Authority>().is_ok())
}
