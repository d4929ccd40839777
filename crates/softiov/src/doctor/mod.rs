//! `softiov doctor`: looks at QEMU, the machine, the host and its guests, and says what keeps them from working and what
//! helps. Changes nothing.

mod finding;
mod host;
mod machine;
mod qemu;
mod sockets;
#[cfg(test)]
mod tests;

use crate::output;
use crate::place::Place;
use daemon::config::uplink::Uplink;
use daemon::control::client;
use finding::{Finding, Verdict};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to look at.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The QEMU that is used, instead of the one in PATH.
    #[arg(long, value_name = "PROGRAM")]
    qemu: Option<PathBuf>,
    /// JSON instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// Looks, and prints what was found. Fails if something does not work.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.place.load()?;
    let has_taps = config.ports.iter().any(|port| matches!(port.uplink, Uplink::Tap(_)));
    let mut findings = vec![qemu::judge(qemu::ask(args.qemu.as_deref()).as_ref())];
    findings.extend(machine::Machine::look(has_taps).judge());
    findings.extend(of_the_host(&config.control_socket()));
    let text = match args.json {
        true => serde_json::to_string_pretty(&findings)? + "\n",
        false => finding::text(&findings),
    };
    output::print(&text)?;
    let works = findings.iter().all(|finding| finding.verdict < Verdict::Problem);
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn of_the_host(socket: &Path) -> Vec<Finding> {
    match client::ports(socket) {
        Ok(ports) => {
            let mut findings = vec![Finding::ok("host", format!("{} answers", socket.display()))];
            findings.extend(client::server(socket).iter().flat_map(|pid| host::Process::look(*pid).judge()));
            findings.extend(sockets::look(&ports));
            findings.extend(host::ports(&ports));
            findings
        }
        Err(error) => vec![host::unreachable(&error, socket)],
    }
}
