//! `softiov port`: ports of a running host, shown, changed and reset.

pub(crate) mod print;

use crate::ask::{Keeping, Output, ask, show};
use daemon::control::client;
use daemon::control::protocol::{Answer, Change, Request};
use daemon::settings::{Direction, Limit, MirrorRule, PortSettings, Storm};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// What to do with ports.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// A line for each port.
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Everything about one port, its VFs excepted.
    Show {
        /// The port, such as pf0.
        port: String,
        #[command(flatten)]
        output: Output,
    },
    /// Change one port. What is not given stays.
    Set {
        /// The port, such as pf0.
        port: String,
        /// How many VFs it offers: 1 to 8, with family "avf" 1 to 64. Those beyond are taken from their guests.
        #[arg(long, group = "change", value_name = "N")]
        vfs: Option<u8>,
        #[command(flatten)]
        storm: Storm,
        #[command(flatten)]
        keeping: Keeping,
        #[command(flatten)]
        output: Output,
    },
    /// Reset one port: its guests are told, their drivers start anew, and its rules stay.
    Reset {
        /// The port, such as pf0.
        port: String,
        #[command(flatten)]
        output: Output,
    },
    /// From how many events a second on a VF's conduct has consequences. What is not given stays.
    Limit {
        /// The port, such as pf0.
        port: String,
        /// The kind of conduct: mailbox, spoofing, storm, interrupts, invalid or dma-faults.
        kind: String,
        #[command(flatten)]
        limit: Limit,
        /// Change until the host ends. Without this the change is kept: it holds after a restart too.
        #[arg(long)]
        volatile: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Copy frames to a watching VF, by one of the card's four rules.
    Mirror {
        /// The port, such as pf0.
        port: String,
        /// Which rule to write or to take away, 0 to 3.
        rule: u8,
        #[command(flatten)]
        traffic: Traffic,
        /// Change until the host ends. Without this the change is kept: it holds after a restart too.
        #[arg(long)]
        volatile: bool,
        #[command(flatten)]
        output: Output,
    },
}

/// What to copy, and to whom.
#[derive(Debug, clap::Args)]
pub(crate) struct Traffic {
    /// The VF that gets the copies, by its number.
    #[arg(long, value_name = "VF", required_unless_present = "off")]
    to: Option<u8>,
    /// Copy what these VFs receive, by their numbers.
    #[arg(long, value_name = "VF,...", value_delimiter = ',')]
    vfs: Vec<u8>,
    /// Copy what comes from the uplink (ingress), what goes there (egress), or both.
    #[arg(long, value_enum)]
    uplink: Option<Direction>,
    /// Copy what is in these VLANs: any, or ids and ranges such as 10,20,100-199.
    #[arg(long, value_name = "LIST")]
    vlans: Option<String>,
    /// Take the rule away.
    #[arg(long, conflicts_with_all = ["to", "vfs", "uplink", "vlans"])]
    off: bool,
}

impl Traffic {
    /// The rule; none with `--off`.
    fn rule(self) -> Option<MirrorRule> {
        let Self { to, vfs, uplink, vlans, off: _ } = self;
        Some(MirrorRule { to: to?, vfs, uplink, vlans })
    }
}

/// Runs a command.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    let nothing = PortSettings::default;
    let (port, set, keeping, output) = match command {
        Command::List { output } if output.json => return ask(Request::PortList, &output),
        Command::List { output } => return list(&output),
        Command::Show { port, output } => return ask(Request::PortShow { port }, &output),
        Command::Reset { port, output } => return ask(Request::PortReset { port }, &output),
        Command::Set { port, vfs, storm, keeping, output } => {
            let storm = Some(storm).filter(|storm| *storm != Storm::default());
            (port, PortSettings { vfs, storm, ..nothing() }, keeping, output)
        }
        Command::Limit { port, kind, limit, volatile, output } => {
            let limits = BTreeMap::from([(kind, limit)]);
            (port, PortSettings { limits, ..nothing() }, Keeping { default: Vec::new(), volatile }, output)
        }
        Command::Mirror { port, rule, traffic, volatile, output } => {
            let mirror = BTreeMap::from([(rule.to_string(), traffic.rule())]);
            (port, PortSettings { mirror, ..nothing() }, Keeping { default: Vec::new(), volatile }, output)
        }
    };
    let Keeping { default, volatile } = keeping;
    ask(Request::PortSet { port, change: Change { set, default, volatile } }, &output)
}

/// A line for each port. The same answer as to `vf list` is printed without the VFs.
fn list(output: &Output) -> anyhow::Result<ExitCode> {
    let socket = output.place.load()?.control_socket();
    match client::ask(&socket, Request::PortList)? {
        Answer::Ports(ports) => {
            let lines: String = ports.iter().map(print::line).collect();
            crate::output::print(&lines)?;
            Ok(ExitCode::SUCCESS)
        }
        answer => show(answer, output),
    }
}
