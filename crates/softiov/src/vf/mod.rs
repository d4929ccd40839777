//! `softiov vf`: VFs of a running host, shown and changed.

mod print;

use crate::place::Place;
use clap::ValueEnum;
use daemon::control::client::ask;
use daemon::control::protocol::{Answer, Change, Request};
use daemon::control::status::LinkState;
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
    #[command(group(clap::ArgGroup::new("change").required(true).multiple(true)))]
    Set {
        /// The VF, such as pf0vf0.
        vf: String,
        /// Its link: as the port's, or down.
        #[arg(long, value_enum, group = "change")]
        state: Option<State>,
        /// The most that the guest may send, Mb/s, 1 to 1000; 0 lifts the limit.
        #[arg(long, value_name = "MBPS", alias = "max_tx_rate", group = "change")]
        max_tx_rate: Option<u32>,
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

/// A VF's link, in iproute2's words.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum State {
    /// As the port's.
    Auto,
    /// Down.
    Disable,
}

/// Asks the host and prints its answer.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    let (request, output) = match command {
        Command::List { output } => (Request::PortList, output),
        Command::Show { vf, output } => (Request::VfShow { vf }, output),
        Command::Set { vf, state, max_tx_rate, output } => {
            let state = state.map(|state| match state {
                State::Auto => LinkState::Auto,
                State::Disable => LinkState::Disable,
            });
            (Request::VfSet { vf, change: Change { state, max_tx_rate } }, output)
        }
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
