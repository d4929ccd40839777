//! Ends a tool's command that fails or only prints help, with a message and an exit code.

use crate::output;
use std::process::ExitCode;

/// Message of a failed tool on standard error, and its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolExit {
    /// Message as the real tool prints it, and below it lines of softiov's own.
    pub(super) text: String,
    pub(super) code: u8,
}

impl ToolExit {
    pub(super) fn new(text: impl Into<String>, code: u8) -> Self {
        Self { text: text.into(), code }
    }

    /// Adds a line of softiov's own below the tool's message.
    pub(super) fn with_hint(mut self, hint: &str) -> Self {
        self.text += "\nsoftiov: ";
        self.text += hint;
        self
    }

    /// Prints the tool's message to standard error and returns its exit code.
    pub(super) fn report(self) -> ExitCode {
        output::print_last_error(self.text);
        ExitCode::from(self.code)
    }
}
