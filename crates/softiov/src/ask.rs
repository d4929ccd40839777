//! Sends a command's request to a running host and prints the host's answer.

use crate::target::HostSelectionOptions;
use crate::{apply, events, port, vf};
use daemon::control::client;
use daemon::control::protocol::{ControlAnswer, ControlRequest, UpgradeResult};
use std::process::ExitCode;

/// Options of a command that prints a host's answer: format and host.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputOptions {
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: HostSelectionOptions,
}

/// Options of a change: settings to unset, and whether it survives a restart.
#[derive(Debug, clap::Args)]
pub(crate) struct PersistenceOptions {
    /// Return these settings to the configuration file's value or the default, such as vlan,qos.
    #[arg(long, group = "change", value_name = "KEY,...", value_delimiter = ',')]
    pub(crate) default: Vec<String>,
    /// Drop the change when the host ends (default: the change survives a restart).
    #[arg(long)]
    pub(crate) volatile: bool,
}

/// Sends a request to the host and prints the host's answer.
pub(crate) fn ask(request: ControlRequest, output: &OutputOptions) -> anyhow::Result<ExitCode> {
    let socket = output.target.load()?.control_socket();
    show(client::ask(&socket, request)?, output)
}

/// Prints a host's answer as text or JSON.
pub(crate) fn show(answer: ControlAnswer, output: &OutputOptions) -> anyhow::Result<ExitCode> {
    let text = match answer {
        answer if output.json => serde_json::to_string_pretty(&answer)? + "\n",
        ControlAnswer::Ports(ports) => vf::print::list(&ports),
        ControlAnswer::Vf(vf) => vf::print::show(&vf),
        ControlAnswer::Port(port) => port::print::show(&port),
        ControlAnswer::Functions(found) => {
            let line = |rid: &str, name: &str| format!("{rid} {name}\n").trim_start().to_owned();
            found.functions.iter().map(|function| line(&function.rid, &function.name)).collect()
        }
        ControlAnswer::Difference(difference) => apply::text(&difference),
        ControlAnswer::Flight(recording) => vf::flight::text(&recording),
        ControlAnswer::Recent(recent) => events::text(&recent, None),
        ControlAnswer::Upgraded(UpgradeResult { pid }) => format!("process {pid} has taken over\n"),
    };
    crate::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
