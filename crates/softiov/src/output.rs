//! Output of commands: answers on standard output, errors on standard error. Never panics if an output is closed.

use anyhow::Context;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// Error: standard output has lost its reader, as in `softiov vf list | head -1`. The command ends without a message.
#[derive(Debug)]
pub(crate) struct StdoutClosed;

impl Display for StdoutClosed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output has no reader")
    }
}

impl std::error::Error for StdoutClosed {}

/// Writes a text to standard output.
///
/// # Errors
/// [`StdoutClosed`], or the error of the write.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match try_print(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(StdoutClosed.into()),
        other => other.context("cannot write to standard output"),
    }
}

/// Writes a text to standard output, and returns the system's error.
pub(crate) fn try_print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Writes a line to standard error, and ignores errors.
pub(crate) fn print_error(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Timeout of a command's last message, since standard error may block.
const LAST_ERROR_TIMEOUT: Duration = Duration::from_secs(1);

/// Writes a command's last line to standard error, and gives up after a second if standard error blocks.
pub(crate) fn print_last_error(text: String) {
    let (written, done) = mpsc::channel();
    std::thread::spawn(move || {
        print_error(text);
        let _ = written.send(());
    });
    let _ = done.recv_timeout(LAST_ERROR_TIMEOUT);
}

/// Escapes control characters in another program's text, such as a process's name, so that a terminal obeys none.
pub(crate) fn escape_controls(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// Checks that a file can be written, before a long run. Leaves the file as it was.
pub(crate) fn check_writable(file: &Path) -> anyhow::Result<()> {
    let is_new = !file.exists();
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened
        .and_then(|_| if is_new { fs::remove_file(file) } else { Ok(()) })
        .with_context(|| format!("cannot write {}", file.display()))
}

/// Returns the message of an error with its causes, without causes that an earlier message quotes.
pub(crate) fn error_chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            text = if text.is_empty() { cause } else { format!("{text}: {cause}") };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{error_chain, escape_controls};
    use anyhow::anyhow;

    #[test]
    fn control_characters_in_printed_texts_are_escaped() {
        assert_eq!(escape_controls("qemu\u{1b}[2Jä\n"), "qemu\\u{1b}[2Jä\\n");
    }

    #[test]
    fn cause_of_an_error_is_printed_once() {
        let error = anyhow!("no such file").context("cannot read x: no such file").context("starting");
        assert_eq!(error_chain(&error), "starting: cannot read x: no such file");
    }
}
