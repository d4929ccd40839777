//! Telling a waiting person how far the preparation is, on standard error. No timing, no estimates.

use std::fmt;
use std::io::{IsTerminal, Write, stderr};

/// One line per step; the running step's line is redrawn on a terminal and left alone elsewhere.
#[derive(Debug)]
pub(super) struct Progress {
    terminal: bool,
    drawn: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { terminal: stderr().is_terminal(), drawn: false }
    }

    /// A step begins.
    pub(super) fn step(&mut self, text: &str) {
        self.finish();
        tell(format_args!("softiov: {text}\n"));
    }

    /// A download stands at `done` of `total` packages.
    pub(super) fn packages(&mut self, what: &str, done: usize, total: usize) {
        if self.terminal {
            tell(format_args!("\rsoftiov: fetching {what}: {done} of {total} packages "));
            self.drawn = true;
        } else if done == total || (done > 0 && done.is_multiple_of(25)) {
            tell(format_args!("softiov: fetching {what}: {done} of {total} packages\n"));
        }
    }

    /// Ends a line that was being redrawn.
    pub(super) fn finish(&mut self) {
        if self.drawn {
            tell(format_args!("\n"));
            self.drawn = false;
        }
    }
}

/// Standard error may be closed; then nobody is watching.
fn tell(text: fmt::Arguments<'_>) {
    let _ = stderr().write_fmt(text);
}
