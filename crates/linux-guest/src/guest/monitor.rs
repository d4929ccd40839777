//! QEMU's monitor: commands and replies in JSON over a socket (QEMU Machine Protocol).

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

/// Timeout of a reply. QEMU's main loop is busy while it copies the last pages of a guest.
const REPLY: Duration = Duration::from_secs(60);

/// Connection to QEMU's monitor.
#[derive(Debug)]
pub(super) struct QemuMonitor(BufReader<UnixStream>);

impl QemuMonitor {
    /// Connects to a monitor's socket, and ends its negotiation.
    pub(super) fn connect(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(REPLY))?;
        let mut monitor = Self(BufReader::new(stream));
        monitor.message()?;
        monitor.execute("qmp_capabilities", &json!({}))?;
        Ok(monitor)
    }

    /// Executes a command, and returns its result.
    pub(super) fn execute(&mut self, command: &str, arguments: &Value) -> io::Result<Value> {
        let request = json!({ "execute": command, "arguments": arguments });
        self.0.get_mut().write_all(format!("{request}\n").as_bytes())?;
        loop {
            let mut message = self.message()?;
            if !message["return"].is_null() {
                return Ok(message["return"].take());
            }
            if !message["error"].is_null() {
                return Err(io::Error::other(format!("{command}: {}", message["error"]["desc"])));
            }
            // Everything else is an event.
        }
    }

    fn message(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}
