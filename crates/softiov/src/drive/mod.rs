//! `softiov drive`: our own PF and VF drivers on an 82576 that Linux hands over through VFIO, or on VFs behind the
//! sockets of a running host, and a check that they work there, or an audit of their registers. And `--reset`: any function
//! that Linux hands over, reset as before a new owner.

mod stack;

use anyhow::Context;
use direct::check::{Functions, Plan, Wire, audit, run as check};
use direct::reset::{self, Hidden};
use host::poll::Signals;
use host::vfio::{Pci, PciAddress};
use stack::Embedded;
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

/// Which functions, and how the findings are told.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("functions").required(true).args(["pf", "vf", "socket", "reset"]))]
pub(crate) struct Args {
    /// A physical function, such as 0000:01:00.0: our PF driver drives it, and our VF drivers VFs of it.
    #[arg(long, value_name = "ADDRESS")]
    pf: Option<PciAddress>,
    /// How many VFs the physical function gets.
    #[arg(long, value_name = "N", default_value_t = 2, requires = "pf",
          value_parser = clap::value_parser!(u8).range(1..=7))]
    vfs: u8,
    /// A virtual function, such as 0000:01:10.0, of a PF that Linux drives; may be given several times.
    #[arg(long, value_name = "ADDRESS")]
    vf: Vec<PciAddress>,
    /// A vfio-user socket of a running host's VF, such as pf0vf0/vf.sock; may be given several times.
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,
    /// Any function, such as 0000:01:00.0: reset it as before a new owner, by the first of function-level reset, D3hot and
    /// a reset of its bus that it has, and watch that it writes nothing to the new owner's memory.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["audit", "peer"])]
    reset: Option<PciAddress>,
    /// With --reset: take the device not to have these.
    #[arg(long, value_enum, value_name = "RUNG,...", value_delimiter = ',', requires = "reset",
          conflicts_with_all = ["pf", "vf", "socket"])]
    hide: Vec<Rung>,
    /// With --reset: do everything but the reset, to see what it is for.
    #[arg(long, requires = "reset", conflicts_with_all = ["pf", "vf", "socket"])]
    without_reset: bool,
    /// List the registers whose value is a sensitive resource (rings, mailbox, vectors, BARs, the function's number), and
    /// check nothing.
    #[arg(long, conflicts_with = "peer")]
    audit: bool,
    /// A station on the wire to ping, such as 10.0.2.2; with another's PF, that may be its address.
    #[arg(long, value_name = "IP", requires = "address")]
    peer: Option<Ipv4Addr>,
    /// The first VF's address for that, in the same /24; the second VF has the next.
    #[arg(long, value_name = "IP", requires = "peer")]
    address: Option<Ipv4Addr>,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

/// A way to reset a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Rung {
    /// Function-level reset.
    Flr,
    /// To D3hot and back.
    D3hot,
    /// The bus.
    Bus,
}

/// Does what was asked for. The exit status tells whether all was well.
///
/// # Errors
/// The functions cannot be had, or the drivers do not start.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args.reset {
        Some(function) => reset(args, function),
        None if args.audit => {
            let report = audit(&Pci::default(), &functions(args))?;
            tell(args, &report)?;
            Ok(ExitCode::SUCCESS)
        }
        None => examine(args),
    }
}

fn reset(args: &Args, function: PciAddress) -> anyhow::Result<ExitCode> {
    let hides = |rung| args.hide.contains(&rung);
    let hidden = Hidden { flr: hides(Rung::Flr), d3hot: hides(Rung::D3hot), bus: hides(Rung::Bus) };
    let plan = reset::Plan { function, hidden, without_reset: args.without_reset };
    let report = reset::run(&Pci::default(), &plan)?;
    tell(args, &report)?;
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a report, for people or for programs.
fn tell(args: &Args, report: &(impl serde::Serialize + std::fmt::Display)) -> anyhow::Result<()> {
    let text = if args.json { serde_json::to_string(report)? } else { report.to_string() };
    crate::output::print(&(text + "\n"))
}

fn functions(args: &Args) -> Functions {
    match args.pf {
        Some(pf) => Functions::Port { pf, vfs: args.vfs },
        None if args.vf.is_empty() => Functions::Sockets(args.socket.clone()),
        None => Functions::Vfs(args.vf.clone()),
    }
}

/// Makes every check. The exit status tells whether nothing failed.
fn examine(args: &Args) -> anyhow::Result<ExitCode> {
    let wire = args.peer.zip(args.address).map(|(peer, own)| Wire { peer, own });
    let plan = Plan { functions: functions(args), wire };
    // A run that is broken off gives the functions back, and takes its VFs away.
    let signals = Signals::install().context("cannot catch signals")?;
    let (mut told, mut ended) = (Ok(()), false);
    let report = check::<Embedded>(&Pci::default(), &plan, |check| {
        if !args.json {
            told = crate::output::print(&format!("{check}\n"));
        }
        ended = signals.take().asks_to_end();
        if ended || told.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    told?;
    anyhow::ensure!(!ended, "broken off before the end");
    tell(args, &report)?;
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
