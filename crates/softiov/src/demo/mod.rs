//! `softiov demo`: the real host with guests on it, traffic between them, and a table of what it cost.
//!
//! | module | what it does |
//! |---|---|
//! | `host` | a host of its own in a temporary folder |
//! | `embedded` | three guests in this process: no root, no QEMU |
//! | `linux` | two Debian virtual machines with the stock igbvf or iavf, and the host on an uplink if privileged |
//! | `report` | what is printed, and the verdict |
//!
//! Left out: configuration; a demo is the same everywhere.

mod embedded;
mod host;
mod linux;
mod report;

use std::process::ExitCode;

/// Start a host, attach guests, move traffic, and show what it cost.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Boot two Debian virtual machines instead of guests inside this process.
    #[arg(long)]
    linux: bool,
    /// Give guests the pages with doorbells as memory, so that ringing is no message to the host.
    #[arg(long)]
    mapped: bool,
    /// What the card is, as in a host's configuration: its VFs are for igbvf (82576) or for iavf (avf). Guests inside this
    /// process have a driver for either.
    #[arg(long, value_name = "FAMILY", default_value = "82576", value_parser = ["82576", "avf"])]
    family: String,
    /// How long each iperf3 flow takes, seconds.
    #[arg(long, value_name = "N", default_value_t = 5, requires = "linux",
          value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

/// What the demo's card is.
#[derive(Debug, Clone, Copy)]
struct Card<'a> {
    /// As a configuration names it.
    family: &'a str,
    /// Doorbells are memory.
    mapped: bool,
}

/// Runs the demo. The exit status tells whether everything that was sent arrived.
///
/// # Errors
/// Something needed for the demo itself cannot be had.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let card = Card { family: &args.family, mapped: args.mapped };
    let outcome = if args.linux { linux::run(args.seconds, card)? } else { embedded::run(card)? };
    let report = if args.json { serde_json::to_string(&outcome.report)? + "\n" } else { outcome.to_string() };
    crate::output::print(&report)?;
    let problems = outcome.problems();
    for problem in &problems {
        say(format_args!("LOST: {problem}"));
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tells whoever waits what is happening.
fn say(what: impl std::fmt::Display) {
    crate::output::tell(format_args!("softiov demo: {what}"));
}
