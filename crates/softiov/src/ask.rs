//! Asking a running host, and printing its answer. Left out: what is asked.

use crate::place::Place;
use crate::{apply, events, port, vf};
use daemon::control::client;
use daemon::control::protocol::{Answer, Request, Upgraded};
use std::process::ExitCode;

/// Which host, and in which form.
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// How long a change holds, and what is given back.
#[derive(Debug, clap::Args)]
pub(crate) struct Keeping {
    /// Give these settings back to the configuration file, or to their defaults, such as vlan,qos.
    #[arg(long, group = "change", value_name = "KEY,...", value_delimiter = ',')]
    pub(crate) default: Vec<String>,
    /// Change until the host ends. Without this the change is kept: it holds after a restart too.
    #[arg(long)]
    pub(crate) volatile: bool,
}

/// Asks the host and prints its answer.
pub(crate) fn ask(request: Request, output: &Output) -> anyhow::Result<ExitCode> {
    let socket = output.place.load()?.control_socket();
    show(client::ask(&socket, request)?, output)
}

/// Prints an answer.
pub(crate) fn show(answer: Answer, output: &Output) -> anyhow::Result<ExitCode> {
    let text = match answer {
        answer if output.json => serde_json::to_string_pretty(&answer)? + "\n",
        Answer::Ports(ports) => vf::print::list(&ports),
        Answer::Vf(vf) => vf::print::show(&vf),
        Answer::Port(port) => port::print::show(&port),
        Answer::Functions(found) => {
            found.functions.iter().map(|function| format!("{} {}\n", function.rid, function.name)).collect()
        }
        Answer::Difference(difference) => apply::print(&difference),
        Answer::Flight(recording) => vf::flight::text(&recording),
        Answer::Recent(recent) => events::text(&recent, None),
        Answer::Upgraded(Upgraded { pid }) => format!("process {pid} has taken over\n"),
    };
    crate::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
