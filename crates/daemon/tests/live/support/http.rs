//! HTTP requests as bytes on a socket, so that a test can send invalid ones.

use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// HTTP response of the host's control interface.
#[derive(Debug)]
pub(crate) struct HttpReply {
    /// HTTP status; 0 if there was no response.
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl HttpReply {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Sends a valid HTTP request to the control socket, and returns the response.
pub(crate) fn ask(socket: &Path, method: &str, path: &str, body: &str) -> HttpReply {
    let kind = if body.is_empty() && method == "GET" { "" } else { "content-type: application/json\r\n" };
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{kind}content-length: {length}\r\n\r\n"
    );
    send(socket, format!("{head}{body}").as_bytes())
}

/// Sends bytes to the control socket, and returns the response up to the end of the connection.
pub(crate) fn send(socket: &Path, bytes: &[u8]) -> HttpReply {
    let mut stream = UnixStream::connect(socket).unwrap();
    // The host may answer and close before it has read all of an invalid request.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    HttpReply::read(&String::from_utf8_lossy(&answer))
}
