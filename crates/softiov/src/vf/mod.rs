//! `softiov vf`: VFs of a running host, shown and changed.

mod print;
mod set;

use crate::place::Place;
use daemon::control::client::ask;
use daemon::control::protocol::{Answer, Request};
use std::process::ExitCode;

/// What to do with VFs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// A line for each VF.
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Everything about one VF.
    Show {
        /// The VF, such as pf0vf0.
        vf: String,
        #[command(flatten)]
        output: Output,
    },
    /// Change one VF. What is not given stays.
    Set {
        /// The VF, such as pf0vf0.
        vf: String,
        #[command(flatten)]
        wishes: set::Wishes,
        #[command(flatten)]
        output: Output,
    },
}

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
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    let (request, output) = match command {
        Command::List { output } => (Request::PortList, output),
        Command::Show { vf, output } => (Request::VfShow { vf }, output),
        Command::Set { vf, wishes, output } => (Request::VfSet { vf, change: wishes.into() }, output),
    };
    let socket = output.place.load()?.control_socket();
    let answer = ask(&socket, request)?;
    let text = match answer {
        answer if output.json => serde_json::to_string_pretty(&answer)? + "\n",
        Answer::Ports(ports) => print::list(&ports),
        Answer::Vf(vf) => print::show(&vf),
    };
    crate::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
