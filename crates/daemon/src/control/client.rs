//! Asking a running host: one connection, one request.

use super::protocol::{Answer, Call, MAX_LINE, Request, Response};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Nobody serves the socket.
    #[error("no softiov host at {path} ({source}); start one with `softiov serve`")]
    Unreachable {
        /// The control socket.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The connection broke, or took too long.
    #[error("the softiov host does not answer: {0}")]
    Io(#[from] std::io::Error),
    /// The answer is not understood.
    #[error("the softiov host's answer is not understood; are both of the same version? ({0})")]
    Garbled(#[from] serde_json::Error),
    /// The host refused.
    #[error("{0}")]
    Refused(String),
}

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the host behind a control socket.
///
/// # Errors
/// [`ClientError`].
pub fn ask(socket: &Path, request: Request) -> Result<Answer, ClientError> {
    let mut stream = UnixStream::connect(socket)
        .map_err(|source| ClientError::Unreachable { path: socket.into(), source })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(&Call { jsonrpc: "2.0".into(), id: 1, request })?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream.take(MAX_LINE)).read_line(&mut answer)?;
    let response: Response = serde_json::from_str(&answer)?;
    match (response.result, response.error) {
        (Some(answer), _) => Ok(answer),
        (None, Some(failure)) => Err(ClientError::Refused(failure.message)),
        (None, None) => Err(ClientError::Refused("an empty answer".into())),
    }
}
