//! QEMU's monitor: commands and replies in JSON over a socket (QEMU Machine Protocol).

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Report of QEMU on a migration that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationSummary {
    /// Duration of the migration, without the start of the other QEMU.
    pub total: Duration,
    /// Time during which the guest ran nowhere.
    pub downtime: Duration,
    /// Number of rounds over the guest's memory, which find the pages that were written meanwhile.
    pub rounds: u64,
    /// Bytes of guest memory that were copied.
    pub copied: u64,
}

impl MigrationSummary {
    /// Parses the reply to `query-migrate`.
    pub(super) fn of(state: &Value) -> Self {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        Self {
            total: Duration::from_millis(number(&state["total-time"])),
            downtime: Duration::from_millis(number(&state["downtime"])),
            rounds: number(&state["ram"]["dirty-sync-count"]),
            copied: number(&state["ram"]["transferred"]),
        }
    }
}

/// Timeout of a reply. QEMU's main loop is busy while it copies the last pages of a guest.
const REPLY: Duration = Duration::from_secs(60);
/// Time between two attempts to connect to the monitor of a QEMU that has just started.
const ATTEMPT: Duration = Duration::from_millis(20);

/// Connection to QEMU's monitor.
#[derive(Debug)]
pub(super) struct QemuMonitor(BufReader<UnixStream>);

impl QemuMonitor {
    /// Connects to a monitor's socket, and ends its negotiation.
    pub(super) fn connect(path: &Path) -> io::Result<Self> {
        let stream = connect(path)?;
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

/// Connects to the socket of a QEMU that has just started. It may exist for a moment before QEMU listens on it.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let deadline = Instant::now() + REPLY;
    loop {
        match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && Instant::now() < deadline => {
                thread::sleep(ATTEMPT);
            }
            connected => return connected,
        }
    }
}
