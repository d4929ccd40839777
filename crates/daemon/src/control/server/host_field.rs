//! `Host` of RFC 9112, section 3.2: a request of HTTP/1.1 has one. Left out: which hosts a server is, since it is one only.

use super::refusal::refuse;
use crate::control::problem::Kind;
use crate::control::protocol::Failure;
use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Version};
use axum::middleware::Next;
use axum::response::Response;

/// Refuses a request whose `Host` is missing, doubled or malformed, before anything else is looked at.
pub(super) async fn check_host(request: Request, next: Next) -> Response {
    match fault(request.version(), request.headers()) {
        None => next.run(request).await,
        Some(fault) => {
            let message = format!("{fault}; send one, such as \"Host: localhost\" (RFC 9112, section 3.2)");
            refuse(Failure::new(Kind::Malformed, message), request.uri().path())
        }
    }
}

/// Returns what is wrong with the field.
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

/// Returns true for a host with or without a port, and for an empty field: a client sends that where its URI has no host.
fn is_valid(host: &HeaderValue) -> bool {
    let Ok(text) = host.to_str() else { return false };
    text.is_empty() || (!text.contains('@') && text.parse::<Authority>().is_ok())
}
