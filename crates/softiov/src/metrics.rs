//! `softiov metrics`: a running host's counters in the text format of Prometheus, as the host itself gives them under
//! `/metrics`. The text collector of the node exporter takes the output as a file.

use crate::output;
use crate::place::Place;
use daemon::control::client;
use std::process::ExitCode;

/// Which host.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
}

/// Prints the metrics of all ports.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = args.place.load()?.control_socket();
    output::print(&client::metrics(&socket)?)?;
    Ok(ExitCode::SUCCESS)
}
