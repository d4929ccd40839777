//! `softiov vf`: shows and changes VFs of a running host. `daemon::settings` declares the settings.

pub(crate) mod flight;
pub(crate) mod print;

use crate::ask::{OutputOptions, Persistence, ask};
use daemon::control::protocol::{Change, Request};
use daemon::settings::VfSettings;
use std::process::ExitCode;

/// Subcommands of `softiov vf`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List VFs, one line each.
    List {
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Show everything about one VF.
    Show {
        /// The VF, such as pf0vf0, or the PF that a guest drives, such as pf0.
        vf: String,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Change one VF; other settings stay.
    Set {
        /// The VF, such as pf0vf0.
        vf: String,
        #[command(flatten)]
        set: Box<VfSettings>,
        #[command(flatten)]
        persistence: Persistence,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Print the recent events of a VF and its client: registers read and written, requests refused, frames dropped,
    /// resets.
    ///
    /// When the host quarantines a VF, it writes these events to a file, `flight/VF-TIME.json` in its state directory.
    Flight(flight::Args),
    /// Disconnect a VF's client: its guest loses the VF, and another client may connect.
    Disconnect {
        /// The VF, such as pf0vf0.
        vf: String,
        #[command(flatten)]
        output: OutputOptions,
    },
}

/// Runs a subcommand of `softiov vf`.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List { output } => ask(Request::PortList, &output),
        Command::Show { vf, output } => ask(Request::VfShow { vf }, &output),
        Command::Set { vf, set, persistence: Persistence { default, volatile }, output } => {
            ask(Request::VfSet { vf, change: Change { set: *set, default, volatile } }, &output)
        }
        Command::Flight(args) => flight::run(args),
        Command::Disconnect { vf, output } => ask(Request::VfDisconnect { vf }, &output),
    }
}
