//! `softiov vf`: shows and changes VFs of a running host. `daemon::settings` declares the settings.

pub(crate) mod flight;
pub(crate) mod print;
mod transfer;

use crate::ask::{OutputOptions, PersistenceOptions, ask};
use daemon::control::protocol::{ControlRequest, SettingsCommand};
use daemon::settings::VfSettings;
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
    Flight(flight::VfFlightArgs),
    /// Print the policy and the counters of a VF as JSON, for `vf import` of another host.
    Export(transfer::VfExportArgs),
    /// Take over the policy and the counters of another host's VF, whose guest moves here.
    ///
    /// Each setting of the file is set, or none if one is invalid here. The counters go on from the exported ones. A VF
    /// in quarantine stays there.
    Import(transfer::VfImportArgs),
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
        VfSubcommand::Export(args) => transfer::export(args),
        VfSubcommand::Import(args) => transfer::import(args),
        VfSubcommand::Disconnect { vf, output } => ask(ControlRequest::VfDisconnect { vf }, &output),
    }
}
