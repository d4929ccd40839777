//! `softiov vf`: shows and changes VFs of a running host. `daemon::settings` declares the settings.

pub(crate) mod flight;
pub(crate) mod print;
mod transfer;

use crate::ask::{OutputOptions, PersistenceOptions, ask};
use crate::target::HostSelectionOptions;
use daemon::control::export::VfImport;
use daemon::control::protocol::{ControlRequest, SettingsCommand};
use daemon::settings::VfSettings;
use std::path::PathBuf;
use std::process::ExitCode;

/// Subcommands of `softiov vf`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum VfSubcommand {
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
        persistence: PersistenceOptions,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Print the recent events of a VF and its client: registers read and written, requests refused, frames dropped,
    /// resets.
    ///
    /// When the host quarantines a VF, it writes these events to a file, `flight/VF-TIME.json` in its state directory.
    Flight(flight::VfFlightRecorderArgs),
    /// Print the policy and the counters of a VF as JSON, for `vf import` of another host.
    Export {
        /// The VF, such as pf0vf0.
        vf: String,
        #[command(flatten)]
        target: HostSelectionOptions,
    },
    /// Take over the policy and the counters of another host's VF, whose guest moves here.
    ///
    /// Each setting of the file is set, or none if one is invalid here. The counters continue from the exported ones. A VF
    /// in quarantine stays there.
    Import {
        /// The VF that takes over policy and counters, such as pf0vf0.
        vf: String,
        /// File that `softiov vf export` has printed; - for standard input.
        #[arg(long, value_name = "FILE|-")]
        file: PathBuf,
        /// Drop the settings when the host ends (default: they survive a restart).
        #[arg(long)]
        volatile: bool,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Disconnect a VF's client: its guest loses the VF, and another client may connect.
    Disconnect {
        /// The VF, such as pf0vf0.
        vf: String,
        #[command(flatten)]
        output: OutputOptions,
    },
}

/// Runs a subcommand of `softiov vf`.
pub(crate) fn run(command: VfSubcommand) -> anyhow::Result<ExitCode> {
    match command {
        VfSubcommand::List { output } => ask(ControlRequest::PortList, &output),
        VfSubcommand::Show { vf, output } => ask(ControlRequest::VfShow { vf }, &output),
        VfSubcommand::Set { vf, set, persistence: PersistenceOptions { default, volatile }, output } => ask(
            ControlRequest::VfSet { vf, change: SettingsCommand { set: *set, default, volatile } },
            &output,
        ),
        VfSubcommand::Flight(args) => flight::run(args),
        VfSubcommand::Export { vf, target } => transfer::export(&vf, &target),
        VfSubcommand::Import { vf, file, volatile, output } => {
            let import = VfImport { export: transfer::load(&file)?, volatile };
            ask(ControlRequest::VfImport { vf, import }, &output)
        }
        VfSubcommand::Disconnect { vf, output } => ask(ControlRequest::VfDisconnect { vf }, &output),
    }
}
