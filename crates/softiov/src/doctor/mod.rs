//! `softiov doctor`: checks QEMU, the machine, the host and its guests, and prints each fault with its remedy.
//! Changes nothing.

mod finding;
mod host;
mod machine;
mod qemu;
mod sockets;
#[cfg(test)]
mod tests;

use crate::output;
use crate::target::HostSelectionOptions;
use daemon::config::PortConfig;
use daemon::config::file::CardFamily;
use daemon::config::uplink::UplinkConfig;
use daemon::control::client::{self, ControlClientError};
use daemon::control::status::PortStatus;
use finding::{DoctorFinding, DoctorVerdict};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `softiov doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// QEMU program to check (default: qemu-system-x86_64 in PATH).
    #[arg(long, value_name = "PROGRAM")]
    qemu: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: HostSelectionOptions,
}

/// Runs all checks of `softiov doctor` and prints the findings. Fails if a check reports that something does not work.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let config = args.target.load()?;
    let has_taps = config.ports.iter().any(|port| matches!(port.uplink, UplinkConfig::Tap(_)));
    let socket = config.control_socket();
    let ports = client::ports(&socket);
    let needs_vfio_user = match &ports {
        Ok(ports) => ports.iter().any(has_vfio_user),
        Err(_) => {
            let vfs = |port: &PortConfig| port.vfs.iter().any(|vf| vf.family != CardFamily::Virtio);
            config.ports.iter().any(|port| port.pf_socket.is_some() || vfs(port))
        }
    };
    let qemu = qemu::find(args.qemu.as_deref());
    let mut findings = vec![qemu::judge(qemu.as_ref(), needs_vfio_user)];
    findings.extend(machine::HostMachineState::read(has_taps).judge());
    findings.extend(host_findings(&socket, ports));
    let text = match args.json {
        true => serde_json::to_string_pretty(&findings)? + "\n",
        false => finding::text(&findings),
    };
    output::print(&text)?;
    let works = findings.iter().all(|finding| finding.verdict < DoctorVerdict::Problem);
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns true if guests of the port use vfio-user.
fn has_vfio_user(port: &PortStatus) -> bool {
    port.pf.is_some() || port.vfs.iter().any(|vf| port.family_of(vf) != CardFamily::Virtio)
}

fn host_findings(socket: &Path, ports: Result<Vec<PortStatus>, ControlClientError>) -> Vec<DoctorFinding> {
    match ports {
        Ok(ports) => {
            let mut findings = vec![DoctorFinding::ok("host", format!("{} answers", socket.display()))];
            findings.extend(
                client::server(socket).iter().flat_map(|pid| host::ProcessLimits::read(*pid).judge()),
            );
            findings.extend(sockets::check(&ports));
            findings.extend(host::ports(&ports));
            findings
        }
        Err(error) => vec![host::unreachable(&error, socket)],
    }
}
