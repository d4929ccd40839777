//! `softiov drive`: runs the project's PF and VF drivers on an 82576 that Linux hands over through VFIO, or on VFs of
//! a running host, and checks them or audits their registers. `--reset` resets any function that Linux hands over, as
//! before a new owner.

mod stack;

use anyhow::Context;
use direct::check::{CardCheckPlan, PciFunctionSelection, WireStation, audit, run as check};
use direct::reset::{self, IgnoredResetMethods};
use host::poll::SignalHandlers;
use host::vfio::{PciAddress, PciSysfs};
use stack::EmbeddedStack;
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `softiov drive`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("functions").required(true).args(["pf", "vf", "socket", "reset"]))]
pub(crate) struct DriveCommandArgs {
    /// Physical function, such as 0000:01:00.0: run our PF driver on it, and our VF drivers on its VFs.
    #[arg(long, value_name = "ADDRESS")]
    pf: Option<PciAddress>,
    /// Number of VFs to enable on the physical function.
    #[arg(long, value_name = "N", default_value_t = 2, requires = "pf",
          value_parser = clap::value_parser!(u8).range(1..=7))]
    vfs: u8,
    /// Virtual function, such as 0000:01:10.0, of a PF that Linux drives; may be given several times.
    #[arg(long, value_name = "ADDRESS")]
    vf: Vec<PciAddress>,
    /// vfio-user socket of a running host's VF, such as pf0vf0/vf.sock; may be given several times.
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,
    /// Reset any function, such as 0000:01:00.0, as before a new owner: by the first of function-level reset, D3hot
    /// and bus reset that it supports. Then check that it writes nothing to the new owner's memory.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["audit", "peer"])]
    reset: Option<PciAddress>,
    /// With --reset: treat these methods as unsupported by the device.
    #[arg(long, value_enum, value_name = "METHOD,...", value_delimiter = ',', requires = "reset",
          conflicts_with_all = ["pf", "vf", "socket"])]
    hide: Vec<ResetMethod>,
    /// With --reset: do everything but the reset, to show what the reset prevents.
    #[arg(long, requires = "reset", conflicts_with_all = ["pf", "vf", "socket"])]
    without_reset: bool,
    /// List the registers that hold a sensitive resource (rings, mailbox, vectors, BARs, the function's number),
    /// without any check.
    #[arg(long, conflicts_with = "peer")]
    audit: bool,
    /// Station on the wire to ping, such as 10.0.2.2; with --vf, this may be the address of the PF.
    #[arg(long, value_name = "IP", requires = "address")]
    peer: Option<Ipv4Addr>,
    /// Address of the first VF for --peer, in the same /24; the second VF has the next one.
    #[arg(long, value_name = "IP", requires = "peer")]
    address: Option<Ipv4Addr>,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

/// Reset method of a PCI function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ResetMethod {
    /// Function-level reset.
    Flr,
    /// Change to power state D3hot and back.
    D3hot,
    /// Bus reset.
    Bus,
}

/// Runs the checks, the audit or the reset. The exit status is 0 if nothing failed.
///
/// # Errors
/// A function is not available, or a driver does not start.
pub(crate) fn run(args: &DriveCommandArgs) -> anyhow::Result<ExitCode> {
    match args.reset {
        Some(function) => reset(args, function),
        None if args.audit => {
            let report = audit(&PciSysfs::default(), &functions(args))?;
            print_report(args, &report)?;
            Ok(ExitCode::SUCCESS)
        }
        None => run_checks(args),
    }
}

fn reset(args: &DriveCommandArgs, function: PciAddress) -> anyhow::Result<ExitCode> {
    let hides = |method| args.hide.contains(&method);
    let hidden = IgnoredResetMethods {
        flr: hides(ResetMethod::Flr),
        d3hot: hides(ResetMethod::D3hot),
        bus: hides(ResetMethod::Bus),
    };
    let plan = reset::ResetPlan { function, hidden, without_reset: args.without_reset };
    let report = reset::run(&PciSysfs::default(), &plan)?;
    print_report(args, &report)?;
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the report of checks, audit or reset as text or JSON.
fn print_report(
    args: &DriveCommandArgs,
    report: &(impl serde::Serialize + std::fmt::Display),
) -> anyhow::Result<()> {
    let text = if args.json { serde_json::to_string(report)? } else { report.to_string() };
    crate::output::print(&(text + "\n"))
}

fn functions(args: &DriveCommandArgs) -> PciFunctionSelection {
    match args.pf {
        Some(pf) => PciFunctionSelection::Port { pf, vfs: args.vfs },
        None if args.vf.is_empty() => PciFunctionSelection::Sockets(args.socket.clone()),
        None => PciFunctionSelection::Vfs(args.vf.clone()),
    }
}

/// Runs every check of the drivers on the selected functions. The exit status is 0 if no check failed.
fn run_checks(args: &DriveCommandArgs) -> anyhow::Result<ExitCode> {
    let wire = args.peer.zip(args.address).map(|(peer, own)| WireStation { peer, own });
    let plan = CardCheckPlan { functions: functions(args), wire };
    // An interrupted run must still return the functions and disable its VFs.
    let signals = SignalHandlers::install().context("cannot catch signals")?;
    let (mut printed, mut ended) = (Ok(()), false);
    let report = check::<EmbeddedStack>(&PciSysfs::default(), &plan, |check| {
        if !args.json {
            printed = crate::output::print(&format!("{check}\n"));
        }
        ended = signals.take().asks_to_end();
        if ended || printed.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    printed?;
    anyhow::ensure!(!ended, "a signal interrupted the run before its last check");
    print_report(args, &report)?;
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
