//! `softiov vf`: VFs of a running host, shown and changed. What can be set is declared with the settings themselves
//! (`daemon::settings`).

pub(crate) mod flight;
pub(crate) mod print;

use crate::ask::{Keeping, Output, ask};
use daemon::control::protocol::{Change, Request};
use daemon::settings::VfSettings;
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
        set: Box<VfSettings>,
        #[command(flatten)]
        keeping: Keeping,
        #[command(flatten)]
        output: Output,
    },
    /// Print what a VF and its client did last: registers read and written, requests refused, frames dropped, resets.
    ///
    /// When a VF is quarantined, the host writes the same into a file, `flight/VF-TIME.json` in its state folder.
    Flight(flight::Args),
    /// End the connection of a VF's client: its guest loses the VF. Another client may connect.
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
        Command::Set { vf, set, keeping: Keeping { default, volatile }, output } => {
            ask(Request::VfSet { vf, change: Change { set: *set, default, volatile } }, &output)
        }
        Command::Flight(args) => flight::run(args),
        Command::Disconnect { vf, output } => ask(Request::VfDisconnect { vf }, &output),
    }
}
