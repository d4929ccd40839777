//! Reports the progress of the preparation on standard error, without estimates of time.

use std::fmt;
use std::io::{IsTerminal, Write, stderr};

/// Reporter of the progress in preparing the guest's files: one line per step; a terminal redraws the running
/// step's line.
#[derive(Debug)]
pub(super) struct ProgressReporter {
    terminal: bool,
    drawn: bool,
}

impl ProgressReporter {
    pub(super) fn new() -> Self {
        Self { terminal: stderr().is_terminal(), drawn: false }
    }

    /// Reports the start of a step in the preparation of the guest's files.
    pub(super) fn step(&mut self, text: &str) {
        self.finish();
        tell(format_args!("softiov: {text}\n"));
    }

    /// Reports that a download is at `done` of `total` packages.
    pub(super) fn packages(&mut self, what: &str, done: usize, total: usize) {
        if self.terminal {
            tell(format_args!("\rsoftiov: fetching {what}: {done} of {total} packages "));
            self.drawn = true;
        } else if done == total || (done > 0 && done.is_multiple_of(25)) {
            tell(format_args!("softiov: fetching {what}: {done} of {total} packages\n"));
        }
    }

    /// Ends the line of the running step on a terminal.
    pub(super) fn finish(&mut self) {
        if self.drawn {
            tell(format_args!("\n"));
            self.drawn = false;
        }
    }
}

/// Writes a text to standard error. If standard error is closed, the text is lost.
fn tell(text: fmt::Arguments<'_>) {
    let _ = stderr().write_fmt(text);
}
