//! `softiov upgrade`: has a running host hand over to a new process, with all its clients.

use crate::ask::{OutputOptions, ask};
use daemon::control::protocol::ControlRequest;
use std::process::ExitCode;

/// Requests that the host hand over to a new process, and prints the pid of the new process.
pub(crate) fn run(output: &OutputOptions) -> anyhow::Result<ExitCode> {
    ask(ControlRequest::Upgrade, output)
}
