//! `softiov vf`: VFs of a running host, shown and changed.

pub(crate) mod print;
mod set;

use crate::ask::{Output, ask};
use daemon::control::protocol::Request;
use std::process::ExitCode;

/// What to do with VFs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// A line for each VF.
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Everything about one VF.
    Show {
        /// The VF, such as pf0vf0, or the PF that a guest drives, such as pf0.
        vf: String,
        #[command(flatten)]
        output: Output,
    },
    /// Change one VF. What is not given stays.
    Set {
        /// The VF, such as pf0vf0.
        vf: String,
        #[command(flatten)]
        wishes: set::Wishes,
        #[command(flatten)]
        output: Output,
    },
    /// Let a VF's client go: its machine lives on, sees the link down, and cannot have the VF back before it is
    /// started anew.
    Disconnect {
        /// The VF, such as pf0vf0.
        vf: String,
        #[command(flatten)]
        output: Output,
    },
}

/// Runs a command.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List { output } => ask(Request::PortList, &output),
        Command::Show { vf, output } => ask(Request::VfShow { vf }, &output),
        Command::Disconnect { vf, output } => ask(Request::VfDisconnect { vf }, &output),
        Command::Set { vf, wishes, output } => ask(Request::VfSet { vf, change: wishes.into() }, &output),
    }
}
