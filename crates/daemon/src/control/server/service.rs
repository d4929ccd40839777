//! Handlers of control requests by path.

use super::caller::CallerIdentity;
use super::capture;
use super::context::{ControlHandlerContext, PATIENCE, PermittedRequestFlag};
use super::host_field::check_host;
use super::refusal::refuse;
use super::{accept, page, stream};
use crate::control::problem::ProblemKind;
use crate::control::protocol::{ControlAnswer, ControlRequest as AskFor, ControlRequestFailure};
use crate::control::route::{self, ControlRoute, ControlRouteInput, MAX_BODY, ROUTES};
use crate::control::{metrics, openapi};
use crate::events::EventPosition;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, VARY, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use axum::{Extension, RequestPartsExt, Router};
use serde::Deserialize;
use tokio::time::timeout;

/// Query of a control request: the number after which a list of events begins.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventListQuery {
    #[serde(default)]
    after: u64,
}

/// Creates the router of all control paths.
pub(super) fn router(context: ControlHandlerContext) -> Router {
    let mut router = Router::new();
    for route in &ROUTES {
        let Ok(method) = MethodFilter::try_from(route.method.clone()) else { continue };
        router = router.route(
            route.path,
            on(method, move |State(context): State<ControlHandlerContext>, request: Request| async move {
                answer(route, &context, request).await
            }),
        );
    }
    router
        .route(route::EVENTS, get(events))
        .route(route::CAPTURE, get(capture_frames))
        .route("/v1/openapi.json", get(|| async { json(openapi::text()) }))
        .route("/metrics", get(metrics_text))
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(context.clone(), authorize))
        .merge(page::routes())
        .layer(from_fn(check_host))
        .with_state(context)
}

/// Refuses requests of TCP clients without the token. Marks the client of any other request as one that has sent a
/// permitted request.
async fn authorize(
    State(context): State<ControlHandlerContext>,
    Extension(has_asked): Extension<PermittedRequestFlag>,
    request: Request,
    next: Next,
) -> Response {
    let sent =
        request.headers().get(AUTHORIZATION).and_then(|sent| sent.to_str().ok()?.strip_prefix("Bearer "));
    if context.token.is_none_or(|token| sent.is_some_and(|sent| token.is(sent))) {
        has_asked.note();
        return next.run(request).await;
    }
    let message = "a request over TCP needs the header \"Authorization: Bearer TOKEN\"";
    let mut response =
        refuse(ControlRequestFailure::new(ProblemKind::Unauthorized, message), request.uri().path());
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Handles a control request by its route, and returns the response.
async fn answer(route: &ControlRoute, context: &ControlHandlerContext, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let caller = request.extensions().get::<CallerIdentity>().copied().unwrap_or(CallerIdentity::Unknown);
    let outcome = async {
        if route.local_only && context.token.is_some() {
            let message = format!(
                "{path} is not available over TCP; use the control socket, as the softiov command does"
            );
            return Err(ControlRequestFailure::new(ProblemKind::LocalOnly, message));
        }
        let input = input(route, request).await?;
        let answer = context.sender.ask((route.request)(&input)?).await?;
        if route.method != Method::GET {
            tracing::info!(by = %caller, method = %route.method, path, "carried out a control request");
        }
        encode(&answer)
    };
    outcome.await.unwrap_or_else(|failure| refuse(failure, &path))
}

fn encode(answer: &ControlAnswer) -> Result<Response, ControlRequestFailure> {
    let text = serde_json::to_string(answer).map_err(|error| unavailable(&error.to_string()))?;
    Ok(json(text))
}

fn json(text: String) -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, HeaderValue::from_static("no-store"))], text).into_response()
}

/// Reads name, query and body of a control request.
async fn input(route: &ControlRoute, request: Request) -> Result<ControlRouteInput, ControlRequestFailure> {
    let (mut parts, body) = request.into_parts();
    let name = match route.path.contains('{') {
        true => parts.extract::<Path<String>>().await.map_err(|error| malformed(&error.body_text()))?.0,
        false => String::new(),
    };
    let after = query(&mut parts).await?.after;
    let body = match route.body {
        Some(_) => read(&parts.headers, body).await?.to_vec(),
        None => Vec::new(),
    };
    Ok(ControlRouteInput { name, after, body })
}

async fn query(parts: &mut Parts) -> Result<EventListQuery, ControlRequestFailure> {
    let query = parts.extract::<Query<EventListQuery>>().await;
    query.map(|Query(query)| query).map_err(|error| malformed(&error.body_text()))
}

/// Reads a request's body with limits of size and time.
async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, ControlRequestFailure> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        let message = format!(
            "the Content-Type of the request's body is {kind:?}; send the body with \"Content-Type: \
             application/json\""
        );
        return Err(ControlRequestFailure::new(ProblemKind::NotJson, message));
    }
    match timeout(PATIENCE, to_bytes(body, MAX_BODY)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(ControlRequestFailure::new(
            ProblemKind::TooLong,
            format!("the body of the request is incomplete, or longer than {MAX_BODY} bytes"),
        )),
        Err(_) => Err(ControlRequestFailure::new(
            ProblemKind::TooSlow,
            format!("the body of the request did not arrive within {PATIENCE:?}"),
        )),
    }
}

fn malformed(why: &str) -> ControlRequestFailure {
    ControlRequestFailure::new(ProblemKind::Malformed, why)
}

/// Handles the request for the stream of events. The id in the header Last-Event-ID wins over the query: a browser
/// that reconnects sends both, and only the header is up to date.
async fn events(State(context): State<ControlHandlerContext>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let last = parts
        .headers
        .get(route::LAST_EVENT_ID)
        .and_then(|id| id.to_str().ok()?.parse::<EventPosition>().ok());
    let last = last.map(EventPosition::number);
    let opened = query(&mut parts)
        .await
        .and_then(|behind| stream::open(last.unwrap_or(behind.after), context.stop, context.stream_permits));
    match opened {
        Ok(response) => response,
        Err(failure) => refuse(failure, &path),
    }
}

/// Handles the request for a capture of frames.
async fn capture_frames(State(context): State<ControlHandlerContext>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let begun = async {
        let port = parts.extract::<Path<String>>().await.map_err(|error| malformed(&error.body_text()))?.0;
        let query = parts.extract::<Query<capture::CaptureParameters>>().await;
        let query = query.map_err(|error| malformed(&error.body_text()))?.0;
        context.captures.capture(port, query, &context.sender, context.stop).await
    };
    begun.await.unwrap_or_else(|failure| refuse(failure, &path))
}

/// Returns the metrics in the text format that the client prefers.
async fn metrics_text(State(context): State<ControlHandlerContext>, request: Request) -> Response {
    let open = accept::prefers_openmetrics(request.headers());
    let outcome = context.sender.ask(AskFor::PortList).await.and_then(|answer| match answer {
        ControlAnswer::Ports(ports) => metrics::text(&ports).map_err(|error| unavailable(&error.to_string())),
        _ => Err(unavailable("the ports did not return their status; see the host's log")),
    });
    // Caches must not give one client's form to another.
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static(accept::content_type(open))),
        (VARY, HeaderValue::from_static("accept")),
    ];
    match outcome {
        Ok(text) if open => (head, metrics::openmetrics(&text)).into_response(),
        Ok(text) => (head, text).into_response(),
        Err(failure) => refuse(failure, "/metrics"),
    }
}

fn unavailable(why: &str) -> ControlRequestFailure {
    ControlRequestFailure::new(ProblemKind::Unavailable, why)
}

async fn no_such_path(request: Request) -> Response {
    let path = request.uri().path();
    let message = format!("the path {path:?} does not exist; GET /v1/openapi.json has all paths");
    refuse(ControlRequestFailure::new(ProblemKind::NoSuchPath, message), path)
}

/// Refuses a request whose path does not support its method. The router adds the header `Allow`.
async fn wrong_method(request: Request) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    refuse(
        ControlRequestFailure::new(ProblemKind::WrongMethod, format!("{path:?} does not support {method}")),
        path,
    )
}
