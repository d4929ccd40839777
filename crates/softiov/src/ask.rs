//! Sends a request to a running host and prints the answer.

use crate::target::TargetHost;
use crate::{apply, events, port, vf};
use daemon::control::client;
use daemon::control::protocol::{Answer, Request, Upgraded};
use std::process::ExitCode;

/// Options of a command that prints a host's answer: format and host.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputOptions {
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: TargetHost,
}

/// Options of a change: settings to unset, and whether it survives a restart.
#[derive(Debug, clap::Args)]
pub(crate) struct Persistence {
    /// Return these settings to the configuration file's value or the default, such as vlan,qos.
    #[arg(long, group = "change", value_name = "KEY,...", value_delimiter = ',')]
    pub(crate) default: Vec<String>,
    /// Drop the change when the host ends (default: the change survives a restart).
    #[arg(long)]
    pub(crate) volatile: bool,
}

/// Sends a request to the host and prints the answer.
pub(crate) fn ask(request: Request, output: &OutputOptions) -> anyhow::Result<ExitCode> {
    let socket = output.target.load()?.control_socket();
    show(client::ask(&socket, request)?, output)
}

/// Prints an answer as text or JSON.
pub(crate) fn show(answer: Answer, output: &OutputOptions) -> anyhow::Result<ExitCode> {
    let text = match answer {
        answer if output.json => serde_json::to_string_pretty(&answer)? + "\n",
        Answer::Ports(ports) => vf::print::list(&ports),
        Answer::Vf(vf) => vf::print::show(&vf),
        Answer::Port(port) => port::print::show(&port),
        Answer::Functions(found) => {
            found.functions.iter().map(|function| format!("{} {}\n", function.rid, function.name)).collect()
        }
        Answer::Difference(difference) => apply::text(&difference),
        Answer::Flight(recording) => vf::flight::text(&recording),
        Answer::Recent(recent) => events::text(&recent, None),
        Answer::Upgraded(Upgraded { pid }) => format!("process {pid} has taken over\n"),
    };
    crate::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
