//! Asking a running host, and printing its answer. Left out: what is asked.

use crate::place::Place;
use crate::{port, vf};
use daemon::control::client;
use daemon::control::protocol::{Answer, Request};
use std::process::ExitCode;

/// Which host, and in which form.
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// JSON instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// Asks the host and prints its answer.
pub(crate) fn ask(request: Request, output: &Output) -> anyhow::Result<ExitCode> {
    let socket = output.place.load()?.control_socket();
    let answer = client::ask(&socket, request)?;
    let text = match answer {
        answer if output.json => serde_json::to_string_pretty(&answer)? + "\n",
        Answer::Ports(ports) => vf::print::list(&ports),
        Answer::Vf(vf) => vf::print::show(&vf),
        Answer::Port(port) => port::print::show(&port),
    };
    crate::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
