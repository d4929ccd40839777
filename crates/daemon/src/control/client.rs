//! Client that sends control requests to a running host, as HTTP over its control socket. `route` has the paths.

use super::problem::{ProblemDetails, ProblemKind};
pub use super::protocol::CaptureQuery;
use super::protocol::{ControlAnswer, ControlRequest};
use super::route::{self, HttpRequest, MAX_BODY};
use super::status::PortStatus;
use crate::events::HostEvent;
use host::socket::StreamSocket;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::future::Future;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

/// Reason why a request to a running host failed.
#[derive(Debug, Error)]
pub enum ControlClientError {
    /// No running host serves the control socket.
    #[error("no softiov host at {path} ({source}); start one with `softiov serve`")]
    Unreachable {
        /// Path of the control socket that no host serves.
        path: PathBuf,
        /// Error from the kernel when connecting to the control socket.
        source: io::Error,
    },
    /// The connection to the host broke, or the answer took too long.
    #[error("the softiov host does not answer: {0}")]
    Io(#[from] io::Error),
    /// The host's answer is not valid JSON of the expected type.
    #[error(
        "the softiov host sent an invalid answer: {0}; check that host and command have the same version"
    )]
    Garbled(#[from] serde_json::Error),
    /// The host's answer is of another type than the request asks for.
    #[error(
        "the softiov host sent an answer of an unexpected type; check that host and command have the same \
         version"
    )]
    OtherAnswer,
    /// The host refused the control request.
    #[error("{0}")]
    Refused(String),
}

/// Timeout of an answer to a control request. It is longer than the time that the host waits for a port's answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Timeout of a whole hand-over. It is longer than the time that the host waits for the new process.
const HAND_OVER: Duration = Duration::from_secs(30);
/// Pause before the next attempt to connect while the socket's queue of connections is full.
const TURN: Duration = Duration::from_millis(2);
/// Maximum number of attempts to send a request. A host that hands over to another process begins no request, so the
/// client tries again.
const ATTEMPTS: usize = 3;

/// Returns the id of the process that has created a control socket, as the kernel reports it. After a hand-over that
/// process may have ended.
#[must_use]
pub fn server(socket: &Path) -> Option<i32> {
    Some(StreamSocket::connect(socket).ok()?.peer().ok()?.pid)
}

/// Returns the host's ports with their VFs.
///
/// # Errors
/// [`ControlClientError`].
pub fn ports(socket: &Path) -> Result<Vec<PortStatus>, ControlClientError> {
    match ask(socket, ControlRequest::PortList)? {
        ControlAnswer::Ports(ports) => Ok(ports),
        _ => Err(ControlClientError::OtherAnswer),
    }
}

/// Returns the host's counters in the text format of Prometheus.
///
/// # Errors
/// [`ControlClientError`].
pub fn metrics(socket: &Path) -> Result<String, ControlClientError> {
    let (status, body) = exchange(socket, HttpRequest::get("/metrics".into()), PATIENCE)?;
    match status {
        StatusCode::OK => Ok(String::from_utf8_lossy(&body).into_owned()),
        _ => Err(ControlClientError::Refused(serde_json::from_slice::<ProblemDetails>(&body)?.detail)),
    }
}

/// Captures frames of a port. Passes pieces of the pcapng file to `take` until `take` returns a break, or the host
/// ends.
///
/// # Errors
/// [`ControlClientError`].
pub fn capture(
    socket: &Path,
    query: &CaptureQuery,
    take: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), ControlClientError> {
    pieces(socket, HttpRequest::get(route::capture_path(query)), take)
}

/// Item of the host's stream of events: an event, or a number of lost events.
#[derive(Debug)]
pub enum EventStreamItem {
    /// Event of the host, with the id after which a later stream can resume.
    Event {
        /// Id of this event in the stream.
        id: String,
        /// Received event of the host.
        event: HostEvent,
    },
    /// Number of events that were dropped before the client read them.
    Lost(u64),
}

/// Follows the host's stream of events. Passes those after the event with the id `last` to `take` as they happen, until
/// `take` breaks, or the host ends. Without `last`, or with an id of another process, the stream begins with all kept
/// events.
///
/// # Errors
/// [`ControlClientError`].
pub fn follow(
    socket: &Path,
    last: Option<&str>,
    take: &mut dyn FnMut(EventStreamItem) -> ControlFlow<()>,
) -> Result<(), ControlClientError> {
    let sent = HttpRequest { last_event: last.map(str::to_owned), ..HttpRequest::get(route::EVENTS.into()) };
    let mut text = Vec::new();
    let mut outcome = Ok(());
    pieces(socket, sent, &mut |piece| {
        text.extend_from_slice(piece);
        while let Some(end) = text.windows(2).position(|bytes| bytes == b"\n\n") {
            let block: Vec<u8> = text.drain(..end + 2).collect();
            match parse_event(&String::from_utf8_lossy(&block)) {
                Ok(Some(told)) => take(told)?,
                Ok(None) => {}
                Err(error) => {
                    outcome = Err(error.into());
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    outcome
}

/// Parses a server-sent event of the host's stream. Returns `None` for a comment, which only keeps the connection
/// alive.
fn parse_event(block: &str) -> serde_json::Result<Option<EventStreamItem>> {
    #[derive(Deserialize)]
    struct LostEventCount {
        lost: u64,
    }
    let field = |name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.strip_prefix(' ').unwrap_or(value))
    };
    let Some(data) = field("data") else { return Ok(None) };
    Ok(Some(match field("event") {
        Some("lost") => EventStreamItem::Lost(serde_json::from_str::<LostEventCount>(data)?.lost),
        _ => EventStreamItem::Event {
            id: field("id").unwrap_or_default().to_owned(),
            event: serde_json::from_str(data)?,
        },
    }))
}

/// Receives a streamed response of the host. Passes each piece to `take` until `take` returns a break, or the host
/// ends.
fn pieces(
    socket: &Path,
    sent: HttpRequest,
    take: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), ControlClientError> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let response = within(&runtime, PATIENCE, send(socket, sent))?;
    let (status, mut body) = (response.status(), response.into_body());
    if status != StatusCode::OK {
        let body = within(&runtime, PATIENCE, async { Ok(Limited::new(body, MAX_BODY).collect().await) })?;
        let body = body.map_err(io::Error::other)?.to_bytes();
        return Err(ControlClientError::Refused(serde_json::from_slice::<ProblemDetails>(&body)?.detail));
    }
    runtime.block_on(async {
        while let Some(frame) = body.frame().await {
            // A killed host breaks the connection, and that ends the stream like any other end.
            let Ok(frame) = frame else { return Ok(()) };
            if frame.data_ref().is_some_and(|piece| take(piece).is_break()) {
                return Ok(());
            }
        }
        Ok(())
    })
}

/// Sends a request to the host that serves a control socket, and returns the host's answer.
///
/// # Errors
/// [`ControlClientError`].
#[expect(clippy::needless_pass_by_value, reason = "callers have no further use for the request")]
pub fn ask(socket: &Path, request: ControlRequest) -> Result<ControlAnswer, ControlClientError> {
    let patience = if request == ControlRequest::Upgrade { HAND_OVER } else { PATIENCE };
    let mut attempt = 1;
    loop {
        let (status, body) = exchange(socket, request.sent()?, patience)?;
        if status == StatusCode::OK {
            return Ok(serde_json::from_slice(&body)?);
        }
        let problem: ProblemDetails = serde_json::from_slice(&body)?;
        if attempt == ATTEMPTS || !problem.is(ProblemKind::HandedOver) {
            return Err(ControlClientError::Refused(problem.detail));
        }
        attempt += 1;
    }
}

/// Sends a request to the host on a new connection, and returns status and body of the response.
fn exchange(
    socket: &Path,
    sent: HttpRequest,
    patience: Duration,
) -> Result<(StatusCode, Bytes), ControlClientError> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    within(&runtime, patience, async {
        let response = send(socket, sent).await?;
        let status = response.status();
        // The status of many VFs is longer than any request.
        let body = Limited::new(response.into_body(), 16 * MAX_BODY).collect().await;
        Ok((status, body.map_err(io::Error::other)?.to_bytes()))
    })
}

/// Runs an asynchronous operation, and fails if it exceeds a time limit.
fn within<T>(
    runtime: &Runtime,
    patience: Duration,
    work: impl Future<Output = Result<T, ControlClientError>>,
) -> Result<T, ControlClientError> {
    runtime.block_on(async {
        let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {patience:?}"));
        timeout(patience, work).await.unwrap_or_else(|_| Err(late().into()))
    })
}

/// Connects to the host's control socket, and sends an HTTP request.
async fn send(socket: &Path, sent: HttpRequest) -> Result<Response<Incoming>, ControlClientError> {
    let stream = connect(socket).await;
    let stream = stream.map_err(|source| ControlClientError::Unreachable { path: socket.into(), source })?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // The task ends with the response, or with the runtime.
    tokio::spawn(connection);
    let HttpRequest { method, path, body, last_event } = sent;
    let request = hyper::Request::builder().method(method).uri(path).header(HOST, "localhost");
    let request = match &body {
        Some(_) => request.header(CONTENT_TYPE, "application/json"),
        None => request,
    };
    let request = match last_event {
        Some(id) => request.header(route::LAST_EVENT_ID, id),
        None => request,
    };
    let request =
        request.header(ACCEPT, "application/json").body(Full::<Bytes>::new(body.unwrap_or_default().into()));
    let request = request.map_err(io::Error::other)?;
    Ok(sender.send_request(request).await.map_err(io::Error::other)?)
}

/// Connects to the host's control socket. While the socket's queue of connections is full, tries again.
async fn connect(socket: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(socket).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(TURN).await,
            connected => return connected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EventStreamItem, parse_event};

    #[test]
    fn server_sent_events_are_parsed_and_keep_alives_ignored() {
        let event = "id: 5-7\nevent: event\ndata: {\"number\":7,\"time\":\"t\",\"level\":\"info\",\"event\":\"x\"}\n\n";
        let Ok(Some(EventStreamItem::Event { id, event })) = parse_event(event) else { panic!("{event}") };
        assert_eq!((id.as_str(), event.number, event.event.as_str()), ("5-7", 7, "x"));
        assert!(matches!(
            parse_event("event: lost\ndata: {\"lost\":3}\n\n"),
            Ok(Some(EventStreamItem::Lost(3)))
        ));
        assert!(matches!(parse_event(":\n\n"), Ok(None)));
        assert!(parse_event("data: {\n\n").is_err());
    }
}
