//! What people read: answers on standard output, and errors told once.

use anyhow::Context;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Writes to standard output, all of it.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")
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
    use super::explain;
    use anyhow::anyhow;

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow!("no such file").context("cannot read x: no such file").context("starting");
        assert_eq!(explain(&error), "starting: cannot read x: no such file");
    }
}
