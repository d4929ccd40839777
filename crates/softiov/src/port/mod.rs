//! `softiov port`: ports of a running host, shown, changed and reset.

pub(crate) mod print;

use crate::ask::{Output, ask};
use clap::ValueEnum;
use daemon::control::protocol::{PortChange, Request};
use daemon::policy::{self, Limit, MirrorRule, Storm};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// What to do with ports.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
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
        #[command(flatten)]
        wishes: Wishes,
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
        thresholds: Thresholds,
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
        #[command(flatten)]
        output: Output,
    },
}

/// What to change; at least one thing.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Wishes {
    /// How many broadcasts VFs get, Kb/s; 0 lifts the limit.
    #[arg(long, value_name = "KBPS")]
    storm_broadcast: Option<u32>,
    /// How many multicasts VFs get, Kb/s; 0 lifts the limit.
    #[arg(long, value_name = "KBPS")]
    storm_multicast: Option<u32>,
    /// Over how many milliseconds they are counted, 1 to 1000.
    #[arg(long, value_name = "MS")]
    storm_interval: Option<u16>,
}

/// At least one threshold, events a second; 0 is never.
#[derive(Debug, Clone, Copy, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Thresholds {
    /// From how many on it is said.
    #[arg(long, value_name = "N")]
    warn: Option<u32>,
    /// From how many on the VF is slowed down for ten seconds.
    #[arg(long, value_name = "N")]
    throttle: Option<u32>,
    /// From how many on the VF is shut in until it is let out by hand.
    #[arg(long, value_name = "N")]
    quarantine: Option<u32>,
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

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Direction {
    Ingress,
    Egress,
    Both,
}

impl From<Direction> for policy::Direction {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Ingress => Self::Ingress,
            Direction::Egress => Self::Egress,
            Direction::Both => Self::Both,
        }
    }
}

impl From<Wishes> for PortChange {
    fn from(wishes: Wishes) -> Self {
        let Wishes { storm_broadcast: broadcast, storm_multicast: multicast, storm_interval: interval } =
            wishes;
        Self { storm: Some(Storm { broadcast, multicast, interval }), ..Self::default() }
    }
}

impl From<Thresholds> for Limit {
    fn from(Thresholds { warn, throttle, quarantine }: Thresholds) -> Self {
        Self { warn, throttle, quarantine }
    }
}

impl Traffic {
    /// The rule; none with `--off`.
    fn rule(self) -> Option<MirrorRule> {
        let Self { to, vfs, uplink, vlans, off: _ } = self;
        Some(MirrorRule { to: to?, vfs, uplink: uplink.map(policy::Direction::from), vlans })
    }
}

/// Runs a command.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    let (port, change, output) = match command {
        Command::Show { port, output } => return ask(Request::PortShow { port }, &output),
        Command::Reset { port, output } => return ask(Request::PortReset { port }, &output),
        Command::Set { port, wishes, output } => (port, wishes.into(), output),
        Command::Limit { port, kind, thresholds, output } => {
            let limits = BTreeMap::from([(kind, thresholds.into())]);
            (port, PortChange { limits, ..PortChange::default() }, output)
        }
        Command::Mirror { port, rule, traffic, output } => {
            let mirrors = BTreeMap::from([(rule.to_string(), traffic.rule())]);
            (port, PortChange { mirrors, ..PortChange::default() }, output)
        }
    };
    ask(Request::PortSet { port, change }, &output)
}
