//! How a tool says that it did nothing: its own words on standard error, and its exit code.

use crate::output;
use std::process::ExitCode;

/// What is said instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    /// The tool's words, and below them what softiov has to add.
    pub(super) text: String,
    pub(super) code: u8,
}

impl Said {
    pub(super) fn new(text: impl Into<String>, code: u8) -> Self {
        Self { text: text.into(), code }
    }

    /// The same with a line of ours below the tool's.
    pub(super) fn because(mut self, hint: &str) -> Self {
        self.text += "\nsoftiov: ";
        self.text += hint;
        self
    }

    /// Says it, and gives the exit code.
    pub(super) fn say(self) -> ExitCode {
        output::tell_briefly(self.text);
        ExitCode::from(self.code)
    }
}
