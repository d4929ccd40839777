//! Client of a running host: HTTP over its control socket. `route` knows the paths.

use super::problem::{Kind, Problem};
pub use super::protocol::CaptureQuery;
use super::protocol::{Answer, Request};
use super::route::{self, MAX_BODY, Sent};
use super::status::PortStatus;
use crate::events::Event;
use host::socket::Stream;
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

/// Reason why a control request has no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No host serves the control socket.
    #[error("no softiov host at {path} ({source}); start one with `softiov serve`")]
    Unreachable {
        /// Path of the control socket.
        path: PathBuf,
        /// Error from the kernel when connecting.
        source: io::Error,
    },
    /// The connection broke, or the answer took too long.
    #[error("the softiov host does not answer: {0}")]
    Io(#[from] io::Error),
    /// The answer is not valid JSON of the expected type.
    #[error(
        "the softiov host sent an invalid answer: {0}; check that host and command have the same version"
    )]
    Garbled(#[from] serde_json::Error),
    /// The answer is of another type than the request asks for.
    #[error(
        "the softiov host sent an answer of an unexpected type; check that host and command have the same \
         version"
    )]
    OtherAnswer,
    /// The host refused the control request.
    #[error("{0}")]
    Refused(String),
}

/// Timeout of an answer to a control request. It exceeds the host's wait for a port.
const PATIENCE: Duration = Duration::from_secs(10);
/// Timeout of a whole hand-over. It exceeds the host's wait for the new process.
const HAND_OVER: Duration = Duration::from_secs(30);
/// Pause before the next try while the socket's queue of connections is full.
const TURN: Duration = Duration::from_millis(2);
/// Tries for a request that another process has to serve, because the host handed over before it began.
const ATTEMPTS: usize = 3;

/// Returns the process that has created a control socket, as the kernel reports it. After a hand-over that process may
/// have ended.
#[must_use]
pub fn server(socket: &Path) -> Option<i32> {
    Some(Stream::connect(socket).ok()?.peer().ok()?.pid)
}

/// Returns the host's ports with their VFs.
///
/// # Errors
/// [`ClientError`].
pub fn ports(socket: &Path) -> Result<Vec<PortStatus>, ClientError> {
    match ask(socket, Request::PortList)? {
        Answer::Ports(ports) => Ok(ports),
        _ => Err(ClientError::OtherAnswer),
    }
}

/// Returns the host's counters in the text format of Prometheus.
///
/// # Errors
/// [`ClientError`].
pub fn metrics(socket: &Path) -> Result<String, ClientError> {
    let (status, body) = exchange(socket, Sent::get("/metrics".into()), PATIENCE)?;
    match status {
        StatusCode::OK => Ok(String::from_utf8_lossy(&body).into_owned()),
        _ => Err(ClientError::Refused(serde_json::from_slice::<Problem>(&body)?.detail)),
    }
}

/// Captures frames of a port. Passes pieces of pcapng to `take` until it breaks, or the host ends.
///
/// # Errors
/// [`ClientError`].
pub fn capture(
    socket: &Path,
    query: &CaptureQuery,
    take: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), ClientError> {
    pieces(socket, Sent::get(route::capture_path(query)), take)
}

/// Item of the host's stream of events.
#[derive(Debug)]
pub enum Told {
    /// Event, with the id after which a later stream can resume.
    Event {
        /// Id of the event in the stream.
        id: String,
        /// Event of the host.
        event: Event,
    },
    /// Number of events that were dropped before the client read them.
    Lost(u64),
}

/// Follows the host's stream of events. Passes those after the event with the id `last` to `take` as they happen,
/// until it breaks, or the host ends. Without `last`, or with an id of another process, it begins with all kept
/// events.
///
/// # Errors
/// [`ClientError`].
pub fn follow(
    socket: &Path,
    last: Option<&str>,
    take: &mut dyn FnMut(Told) -> ControlFlow<()>,
) -> Result<(), ClientError> {
    let sent = Sent { last_event: last.map(str::to_owned), ..Sent::get(route::EVENTS.into()) };
    let mut text = Vec::new();
    let mut outcome = Ok(());
    pieces(socket, sent, &mut |piece| {
        text.extend_from_slice(piece);
        while let Some(end) = text.windows(2).position(|bytes| bytes == b"\n\n") {
            let block: Vec<u8> = text.drain(..end + 2).collect();
            match told(&String::from_utf8_lossy(&block)) {
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

/// Parses a server-sent event. Returns `None` for a comment, which only keeps the connection alive.
fn told(block: &str) -> serde_json::Result<Option<Told>> {
    #[derive(Deserialize)]
    struct Lost {
        lost: u64,
    }
    let field = |name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.strip_prefix(' ').unwrap_or(value))
    };
    let Some(data) = field("data") else { return Ok(None) };
    Ok(Some(match field("event") {
        Some("lost") => Told::Lost(serde_json::from_str::<Lost>(data)?.lost),
        _ => {
            Told::Event { id: field("id").unwrap_or_default().to_owned(), event: serde_json::from_str(data)? }
        }
    }))
}

/// Receives a response of the host in parts. Passes its pieces to `take` until it breaks, or the host ends.
fn pieces(
    socket: &Path,
    sent: Sent,
    take: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), ClientError> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let response = within(&runtime, PATIENCE, send(socket, sent))?;
    let (status, mut body) = (response.status(), response.into_body());
    if status != StatusCode::OK {
        let body = within(&runtime, PATIENCE, async { Ok(Limited::new(body, MAX_BODY).collect().await) })?;
        let body = body.map_err(io::Error::other)?.to_bytes();
        return Err(ClientError::Refused(serde_json::from_slice::<Problem>(&body)?.detail));
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

/// Sends a request to the host behind a control socket, and returns its answer.
///
/// # Errors
/// [`ClientError`].
#[expect(clippy::needless_pass_by_value, reason = "callers have no further use for the request")]
pub fn ask(socket: &Path, request: Request) -> Result<Answer, ClientError> {
    let patience = if request == Request::Upgrade { HAND_OVER } else { PATIENCE };
    let mut attempt = 1;
    loop {
        let (status, body) = exchange(socket, request.sent()?, patience)?;
        if status == StatusCode::OK {
            return Ok(serde_json::from_slice(&body)?);
        }
        let problem: Problem = serde_json::from_slice(&body)?;
        if attempt == ATTEMPTS || !problem.is(Kind::HandedOver) {
            return Err(ClientError::Refused(problem.detail));
        }
        attempt += 1;
    }
}

/// Sends a request on a connection of its own, and returns status and body of the response.
fn exchange(socket: &Path, sent: Sent, patience: Duration) -> Result<(StatusCode, Bytes), ClientError> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    within(&runtime, patience, async {
        let response = send(socket, sent).await?;
        let status = response.status();
        // The status of many VFs is longer than any request.
        let body = Limited::new(response.into_body(), 16 * MAX_BODY).collect().await;
        Ok((status, body.map_err(io::Error::other)?.to_bytes()))
    })
}

/// Runs `work` with a time limit.
fn within<T>(
    runtime: &Runtime,
    patience: Duration,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    runtime.block_on(async {
        let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {patience:?}"));
        timeout(patience, work).await.unwrap_or_else(|_| Err(late().into()))
    })
}

/// Connects to the host, and sends a request.
async fn send(socket: &Path, sent: Sent) -> Result<Response<Incoming>, ClientError> {
    let stream = connect(socket).await;
    let stream = stream.map_err(|source| ClientError::Unreachable { path: socket.into(), source })?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // The task ends with the response, or with the runtime.
    tokio::spawn(connection);
    let Sent { method, path, body, last_event } = sent;
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

/// Connects to the host's control socket. While the socket's queue is full, it tries again.
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
    use super::{Told, told};

    #[test]
    fn server_sent_events_are_parsed_and_keep_alives_ignored() {
        let event = "id: 5-7\nevent: event\ndata: {\"number\":7,\"time\":\"t\",\"level\":\"info\",\"event\":\"x\"}\n\n";
        let Ok(Some(Told::Event { id, event })) = told(event) else { panic!("{event}") };
        assert_eq!((id.as_str(), event.number, event.event.as_str()), ("5-7", 7, "x"));
        assert!(matches!(told("event: lost\ndata: {\"lost\":3}\n\n"), Ok(Some(Told::Lost(3)))));
        assert!(matches!(told(":\n\n"), Ok(None)));
        assert!(told("data: {\n\n").is_err());
    }
}
