//! Engine of bytes on the host's control socket.

use anyhow::{Context, Result, bail, ensure};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Timeout of the host's answer, and of its end of a connection. Slow clients are cut off after some seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest answer that is read, in bytes.
const MAX_ANSWER: usize = 4 << 20;

/// Step of an attack on the control socket.
#[derive(Debug, Clone, Copy)]
pub enum ControlStep {
    /// Sends text.
    Text(&'static str),
    /// Sends text a number of times.
    Texts(&'static str, usize),
    /// Reads the answer, and compares the status of HTTP with the lowest and the highest expected.
    Status(u16, u16),
    /// Reads until the host ends the connection. Any answer is accepted.
    End,
    /// Ends the sending direction.
    EndSending,
    /// Closes the connection, and connects again.
    Reconnect,
    /// Keeps the connection open, and connects once more. Later steps use the new connection.
    ConnectAgain,
    /// Repeats steps.
    Repeat(u32, &'static [ControlStep]),
}

/// Carries out an attack on the control socket at a path. Returns its connections, which stay open.
///
/// # Errors
/// An expected answer does not come.
pub fn attack(socket: &Path, steps: &[ControlStep]) -> Result<Vec<UnixStream>> {
    let mut attack = ControlAttack { socket, stream: connect(socket)?, others: Vec::new() };
    attack.run(steps)?;
    attack.others.push(attack.stream);
    Ok(attack.others)
}

/// Checks that the host answers a well-behaved client of the control socket at a path.
///
/// # Errors
/// The answer does not come.
pub fn check(socket: &Path) -> Result<()> {
    const PORTS: &[ControlStep] = &[
        ControlStep::Text("GET /v1/ports HTTP/1.1\r\nhost: softiov\r\n\r\n"),
        ControlStep::Status(200, 200),
    ];
    attack(socket, PORTS).map(drop)
}

/// Changes the policy of a VF that no client uses, which the host stores.
///
/// # Errors
/// The host refuses the change.
pub fn store_policy(socket: &Path) -> Result<()> {
    attack(socket, STORE_POLICY).map(drop)
}

/// Request of a well-behaved client that changes a VF's policy, and its answer.
pub const STORE_POLICY: &[ControlStep] = &[
    ControlStep::Text(
        "PATCH /v1/vfs/pf0vf3 HTTP/1.1\r\nhost: softiov\r\ncontent-type: application/json\r\ncontent-length: 23\r\n\r\n{\"set\":{\"trust\":false}}",
    ),
    ControlStep::Status(200, 299),
];

struct ControlAttack<'a> {
    socket: &'a Path,
    stream: UnixStream,
    /// Connections that the attack keeps open beside its last one.
    others: Vec<UnixStream>,
}

impl ControlAttack<'_> {
    fn run(&mut self, steps: &[ControlStep]) -> Result<()> {
        for (number, step) in (1..).zip(steps) {
            self.step(step).with_context(|| format!("step {number}"))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &ControlStep) -> Result<()> {
        let stream = &mut self.stream;
        match *step {
            ControlStep::Text(text) => send(stream, text),
            ControlStep::Texts(text, times) => send(stream, &text.repeat(times)),
            ControlStep::Status(lowest, highest) => {
                let status = status(stream)?;
                let expected = (lowest..=highest).contains(&status);
                ensure!(expected, "status {status}, expected {lowest} to {highest}");
                Ok(())
            }
            ControlStep::End => wait_for_end(stream),
            ControlStep::EndSending => Ok(stream.shutdown(Shutdown::Write)?),
            ControlStep::Reconnect => {
                *stream = connect(self.socket)?;
                Ok(())
            }
            ControlStep::ConnectAgain => {
                self.others.push(std::mem::replace(stream, connect(self.socket)?));
                Ok(())
            }
            ControlStep::Repeat(times, steps) => (0..times).try_for_each(|_| self.run(steps)),
        }
    }
}

fn connect(socket: &Path) -> Result<UnixStream> {
    let stream = UnixStream::connect(socket).context("cannot connect to the control socket")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends text. The host may have ended the connection already: a later step notices that.
fn send(stream: &mut UnixStream, text: &str) -> Result<()> {
    match stream.write_all(text.as_bytes()) {
        Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(()),
        sent => sent.context("the host does not read"),
    }
}

/// Reads one answer, and returns its status.
fn status(stream: &mut UnixStream) -> Result<u16> {
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(status) = whole(&answer) {
            return Ok(status);
        }
        ensure!(answer.len() < MAX_ANSWER, "an endless answer");
        match stream.read(&mut buffer).context("no answer")? {
            0 => bail!("the host ended the connection without a whole answer"),
            count => answer.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Returns the status of an answer whose head is complete, and whose body is if its length is stated.
fn whole(answer: &[u8]) -> Option<u16> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    let status = head.split(' ').nth(1)?.parse().ok()?;
    (body.len() >= length).then_some(status)
}

fn wait_for_end(stream: &mut UnixStream) -> Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error).context("the host does not end the connection"),
        }
    }
}
