//! Answering on the control socket. Requests are served one after the other: they are rare and short, and a
//! client that dawdles is cut off.

use super::protocol::{Answer, Call, Failure, INVALID_REQUEST, MAX_LINE, Request, Response};
use host::socket::Stream;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a client may take to send its request, and to read the response.
const PATIENCE: Duration = Duration::from_millis(500);

/// Serves the one request of a new connection.
///
/// # Errors
/// The connection broke or was too slow; nothing is lost but the response.
pub fn serve(stream: Stream, handle: impl FnOnce(Request) -> Result<Answer, Failure>) -> std::io::Result<()> {
    let stream = UnixStream::from(OwnedFd::from(stream));
    stream.set_nonblocking(false)?;
    let mut line = String::new();
    BufReader::new(Patient::new(&stream).take(MAX_LINE)).read_line(&mut line)?;
    let response = match serde_json::from_str::<Call>(&line) {
        Ok(call) => Response::new(call.id, handle(call.request)),
        Err(error) => {
            let message = format!("not a request of this version: {error}");
            Response::new(0, Err(Failure { code: INVALID_REQUEST, message }))
        }
    };
    let mut bytes = serde_json::to_vec(&response)?;
    bytes.push(b'\n');
    Patient::new(&stream).write_all(&bytes)
}

/// A stream on which everything together may take [`PATIENCE`], however many steps it is made of.
struct Patient<'a> {
    stream: &'a UnixStream,
    deadline: Instant,
}

impl<'a> Patient<'a> {
    fn new(stream: &'a UnixStream) -> Self {
        Self { stream, deadline: Instant::now() + PATIENCE }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        (&mut self.stream).read(buffer)
    }
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        (&mut self.stream).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
