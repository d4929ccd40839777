//! `softiov port`: shows, changes and resets ports of a running host.

pub(crate) mod print;

use crate::ask::{OutputOptions, PersistenceOptions, ask, show};
use daemon::config::file::CardFamily;
use daemon::control::client;
use daemon::control::protocol::{ControlAnswer, ControlRequest, SettingsCommand};
use daemon::settings::{
    ConductThresholds, LinkLocalPolicy, MirrorRule, PortSettings, StormControlSettings, UplinkDirection,
};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Subcommands of `softiov port`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum PortSubcommand {
    /// List ports, one line each.
    List {
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Show everything about one port except its VFs.
    Show {
        /// The port, such as pf0.
        port: String,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Change one port; other settings stay.
    Set {
        /// The port, such as pf0.
        port: String,
        /// Number of VFs: 1 to 8, with family "avf" or "virtio" 1 to 64. A lower number removes VFs from their guests.
        #[arg(long, group = "change", value_name = "N")]
        vfs: Option<u8>,
        /// Policy for frames that a guest sends to 01:80:c2:00:00:00 to 0f (LLDP, LACP, EAPOL, spanning tree), drop by default.
        /// Pause and MAC control frames are dropped in any case.
        #[arg(long, group = "change", value_enum, alias = "link_local")]
        link_local: Option<LinkLocalPolicy>,
        #[command(flatten)]
        storm: StormControlSettings,
        #[command(flatten)]
        persistence: PersistenceOptions,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Reset one port: drivers of its guests are notified and restart; settings stay.
    Reset {
        /// The port, such as pf0.
        port: String,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Set thresholds, in events per second, for a warning, throttling and quarantine of VFs; other thresholds stay.
    Limit {
        /// The port, such as pf0.
        port: String,
        /// Kind of offence: mailbox, spoofing, storm, interrupts, invalid or dma-faults.
        kind: String,
        #[command(flatten)]
        limit: ConductThresholds,
        /// Drop the change when the host ends (default: the change survives a restart).
        #[arg(long)]
        volatile: bool,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Copy frames to a monitoring VF, by one of the card's four mirror rules.
    Mirror {
        /// The port, such as pf0.
        port: String,
        /// Number of the mirror rule to write or remove, 0 to 3.
        rule: u8,
        #[command(flatten)]
        traffic: MirrorArgs,
        /// Drop the change when the host ends (default: the change survives a restart).
        #[arg(long)]
        volatile: bool,
        #[command(flatten)]
        output: OutputOptions,
    },
}

/// Traffic that a mirror rule copies, and the VF that receives the copies.
#[derive(Debug, clap::Args)]
pub(crate) struct MirrorArgs {
    /// Number of the VF that receives the rule's copies.
    #[arg(long, value_name = "VF", required_unless_present = "off")]
    to: Option<u8>,
    /// Copy frames that these VFs receive, by number.
    #[arg(long, value_name = "VF,...", value_delimiter = ',')]
    vfs: Vec<u8>,
    /// Copy frames from the uplink (ingress), to the uplink (egress), or both.
    #[arg(long, value_enum)]
    uplink: Option<UplinkDirection>,
    /// Copy frames of these VLANs: any, or ids and ranges such as 10,20,100-199.
    #[arg(long, value_name = "LIST")]
    vlans: Option<String>,
    /// Remove the mirror rule.
    #[arg(long, conflicts_with_all = ["to", "vfs", "uplink", "vlans"])]
    off: bool,
}

impl MirrorArgs {
    /// Returns the mirror rule that the options describe, or `None` for `--off`.
    fn rule(self) -> Option<MirrorRule> {
        let Self { to, vfs, uplink, vlans, off: _ } = self;
        Some(MirrorRule { to: to?, vfs, uplink, vlans })
    }
}

/// Resets a port. Tells the user of virtio VFs that no driver of a guest takes part.
fn reset(port: String, output: &OutputOptions) -> anyhow::Result<ExitCode> {
    let socket = output.target.load()?.control_socket();
    let answer = client::ask(&socket, ControlRequest::PortReset { port })?;
    if let ControlAnswer::Port(port) = &answer
        && port.vfs.iter().any(|vf| port.family_of(vf) == CardFamily::Virtio)
    {
        crate::output::print_error(format!(
            "softiov: the VMMs of {}'s virtio VFs were disconnected and connect again; drivers of virtio guests do not restart",
            port.name
        ));
    }
    show(answer, output)
}

/// Runs a subcommand of `softiov port`.
pub(crate) fn run(command: PortSubcommand) -> anyhow::Result<ExitCode> {
    let nothing = PortSettings::default;
    let (port, set, persistence, output) = match command {
        PortSubcommand::List { output } if output.json => return ask(ControlRequest::PortList, &output),
        PortSubcommand::List { output } => return list(&output),
        PortSubcommand::Show { port, output } => return ask(ControlRequest::PortShow { port }, &output),
        PortSubcommand::Reset { port, output } => return reset(port, &output),
        PortSubcommand::Set { port, vfs, link_local, storm, persistence, output } => {
            let storm = Some(storm).filter(|storm| *storm != StormControlSettings::default());
            (port, PortSettings { vfs, link_local, storm, ..nothing() }, persistence, output)
        }
        PortSubcommand::Limit { port, kind, limit, volatile, output } => {
            let limits = BTreeMap::from([(kind, limit)]);
            (
                port,
                PortSettings { limits, ..nothing() },
                PersistenceOptions { default: Vec::new(), volatile },
                output,
            )
        }
        PortSubcommand::Mirror { port, rule, traffic, volatile, output } => {
            let mirror = BTreeMap::from([(rule.to_string(), traffic.rule())]);
            (
                port,
                PortSettings { mirror, ..nothing() },
                PersistenceOptions { default: Vec::new(), volatile },
                output,
            )
        }
    };
    let PersistenceOptions { default, volatile } = persistence;
    ask(ControlRequest::PortSet { port, change: SettingsCommand { set, default, volatile } }, &output)
}

/// Prints a line for each port. The request is that of `vf list`; the VFs are not printed.
fn list(output: &OutputOptions) -> anyhow::Result<ExitCode> {
    let socket = output.target.load()?.control_socket();
    match client::ask(&socket, ControlRequest::PortList)? {
        ControlAnswer::Ports(ports) => {
            let lines: String = ports.iter().map(print::line).collect();
            crate::output::print(&lines)?;
            Ok(ExitCode::SUCCESS)
        }
        answer => show(answer, output),
    }
}
