//! `softiov upgrade`: a new process takes over from a running host, with all its clients. Left out: how, which the host
//! decides.

use crate::ask::{Output, ask};
use daemon::control::protocol::Request;
use std::process::ExitCode;

/// Has the host hand over, and prints who has taken over.
pub(crate) fn run(output: &Output) -> anyhow::Result<ExitCode> {
    ask(Request::Upgrade, output)
}
