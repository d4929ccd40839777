//! What people read: answers on standard output, and errors told once. Nothing here panics when there is nobody who
//! takes it. Left out: the host's log.

use anyhow::Context;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// Whoever read standard output has seen enough, as in `softiov vf list | head -1`. The command ends, and says nothing.
#[derive(Debug)]
pub(crate) struct ReaderGone;

impl Display for ReaderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output has no reader any more")
    }
}

impl std::error::Error for ReaderGone {}

/// Writes to standard output, all of it.
///
/// # Errors
/// [`ReaderGone`], or why it could not be written.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match try_print(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(ReaderGone.into()),
        other => other.context("cannot write to standard output"),
    }
}

/// As [`print()`], with the kernel's own word for what went wrong.
pub(crate) fn try_print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Writes a line to standard error, if anything takes it.
pub(crate) fn tell(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// How long a last word may take that nobody may be reading.
const PATIENCE: Duration = Duration::from_secs(1);

/// As [`tell`], for the last word of a command: a standard error that takes nothing does not hold up the end.
pub(crate) fn tell_briefly(text: String) {
    let (told, done) = mpsc::channel();
    std::thread::spawn(move || {
        tell(text);
        let _ = told.send(());
    });
    let _ = done.recv_timeout(PATIENCE);
}

/// Text of somebody else's choice, such as a process's name, without what a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// Whether a file can be written that something long is to be run for. Leaves everything as it was.
pub(crate) fn may_write(file: &Path) -> anyhow::Result<()> {
    let is_new = !file.exists();
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened
        .and_then(|_| if is_new { fs::remove_file(file) } else { Ok(()) })
        .with_context(|| format!("cannot write {}", file.display()))
}

/// An error with its causes, less those that the error before has told already.
pub(crate) fn explain(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !told.contains(&cause) {
            told = if told.is_empty() { cause } else { format!("{told}: {cause}") };
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::{explain, plain};
    use anyhow::anyhow;

    #[test]
    fn a_terminal_is_given_no_orders() {
        assert_eq!(plain("qemu\u{1b}[2Jä\n"), "qemu\\u{1b}[2Jä\\n");
    }

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow!("no such file").context("cannot read x: no such file").context("starting");
        assert_eq!(explain(&error), "starting: cannot read x: no such file");
    }
}
