//! `softiov metrics`: prints a running host's counters in Prometheus' text format, as the host's `/metrics` does. The
//! node exporter's text collector reads the output as a file.

use crate::output;
use crate::target::HostSelectionOptions;
use daemon::control::client;
use std::process::ExitCode;

/// Arguments of `softiov metrics`.
#[derive(Debug, clap::Args)]
pub(crate) struct MetricsArgs {
    #[command(flatten)]
    target: HostSelectionOptions,
}

/// Prints the metrics of all ports.
pub(crate) fn run(args: &MetricsArgs) -> anyhow::Result<ExitCode> {
    let socket = args.target.load()?.control_socket();
    output::print(&client::metrics(&socket)?)?;
    Ok(ExitCode::SUCCESS)
}
