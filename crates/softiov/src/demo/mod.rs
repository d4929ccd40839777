//! `softiov demo`: starts a host with guests, moves traffic between them, and prints what it cost.
//!
//! | module | what it does |
//! |---|---|
//! | `card` | the card of the demo |
//! | `host` | a host of its own in a temporary folder |
//! | `embedded` | three guests in this process: no root, no QEMU |
//! | `linux` | two Debian virtual machines with the stock igbvf, iavf or virtio_net, and the host on an uplink if privileged |
//! | `picture` | the demo of embedded guests as an animated SVG |
//! | `report` | JSON, tables, and the list of problems |

mod card;
mod embedded;
mod host;
mod linux;
mod picture;
mod report;

use anyhow::{Context, ensure};
use card::DemoCard;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `softiov demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Boot two Debian virtual machines instead of guests inside this process.
    #[arg(long)]
    linux: bool,
    /// Map doorbell pages into the guests, so that a doorbell write sends no message to the host.
    #[arg(long)]
    mapped: bool,
    /// Card family, as in a host's configuration: VFs for igbvf (82576), iavf (avf) or virtio_net (virtio, with --linux
    /// only). Guests inside this process have drivers of the first two.
    #[arg(long, value_name = "FAMILY", default_value = "82576", value_parser = ["82576", "avf", "virtio"])]
    family: String,
    /// Duration of each iperf3 flow, seconds.
    #[arg(long, value_name = "N", default_value_t = 5, requires = "linux",
          value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Also write an animated picture of the demo (SVG).
    #[arg(long, value_name = "FILE", conflicts_with = "linux")]
    picture: Option<PathBuf>,
}

/// Runs the demo. The exit status is 0 if everything that was sent arrived.
///
/// # Errors
/// The host or a guest does not start, or the picture cannot be written.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let card = DemoCard { family: &args.family, mapped: args.mapped };
    ensure!(
        args.linux || card.family != "virtio",
        "guests inside this process have no driver for --family virtio; add --linux, or use --family avf"
    );
    let outcome = if args.linux { linux::run(args.seconds, card)? } else { embedded::run(card)? };
    if let Some(file) = &args.picture {
        std::fs::write(file, picture::draw(&outcome.report))
            .with_context(|| format!("cannot write the picture to {}", file.display()))?;
    }
    let report = if args.json { serde_json::to_string(&outcome.report)? + "\n" } else { outcome.to_string() };
    crate::output::print(&report)?;
    let problems = outcome.problems();
    for problem in &problems {
        print_progress(format_args!("LOST: {problem}"));
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a line of progress to standard error.
fn print_progress(what: impl std::fmt::Display) {
    crate::output::print_error(format_args!("softiov demo: {what}"));
}
