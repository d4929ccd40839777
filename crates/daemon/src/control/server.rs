//! Answering on the control socket. Requests are served one after the other: they are rare and short, and a
//! client that dawdles is cut off.

use super::protocol::{Answer, Call, Failure, INVALID_REQUEST, MAX_LINE, Request, Response};
use host::socket::Stream;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long a client may take to send its request or read the response.
const PATIENCE: Duration = Duration::from_millis(500);

/// Serves the one request of a new connection.
///
/// # Errors
/// The connection broke or was too slow; nothing is lost but the response.
pub fn serve(stream: Stream, handle: impl FnOnce(Request) -> Result<Answer, Failure>) -> std::io::Result<()> {
    let mut stream = UnixStream::from(OwnedFd::from(stream));
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(MAX_LINE)).read_line(&mut line)?;
    let response = match serde_json::from_str::<Call>(&line) {
        Ok(call) => Response::new(call.id, handle(call.request)),
        Err(error) => {
            let message = format!("not a request of this version: {error}");
            Response::new(0, Err(Failure { code: INVALID_REQUEST, message }))
        }
    };
    let mut bytes = serde_json::to_vec(&response)?;
    bytes.push(b'\n');
    stream.write_all(&bytes)
}
