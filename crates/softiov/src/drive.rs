//! `softiov drive`: our own PF and VF drivers on an 82576 that Linux hands over through VFIO, or on VFs behind the
//! sockets of a running host, and a check that they work there.

use anyhow::Context;
use direct::check::{Functions, Plan, Wire, run as check};
use host::poll::Signals;
use host::vfio::{Pci, PciAddress};
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

/// Which functions, and how the findings are told.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("functions").required(true).args(["pf", "vf", "socket"]))]
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

/// Makes every check. The exit status tells whether nothing failed.
///
/// # Errors
/// The functions cannot be had, or the drivers do not start.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let functions = match args.pf {
        Some(pf) => Functions::Port { pf, vfs: args.vfs },
        None if args.vf.is_empty() => Functions::Sockets(args.socket.clone()),
        None => Functions::Vfs(args.vf.clone()),
    };
    let wire = args.peer.zip(args.address).map(|(peer, own)| Wire { peer, own });
    let plan = Plan { functions, wire };
    // A run that is broken off gives the functions back, and takes its VFs away.
    let signals = Signals::install().context("cannot catch signals")?;
    let (mut told, mut ended) = (Ok(()), false);
    let report = check(&Pci::default(), &plan, |check| {
        if !args.json {
            told = crate::output::print(&format!("{check}\n"));
        }
        ended = signals.take().asks_to_end();
        if ended || told.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    told?;
    anyhow::ensure!(!ended, "broken off before the end");
    let end = if args.json { serde_json::to_string(&report)? } else { report.to_string() };
    crate::output::print(&(end + "\n"))?;
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
