//! `softiov ip`: iproute2's `ip link` for ports and their VFs. Text, JSON and errors are those of iproute2 6 and 7,
//! so that scripts and parsers need no change. Other objects of `ip` are refused.

mod attributes;
mod json;
mod options;
mod set;
mod show;
mod statistics;
#[cfg(test)]
mod tests;
mod words;

use super::tool_exit::ToolExit;
use crate::output;
use crate::target::HostSelectionOptions;
use daemon::control::client;
use options::{IpInvocation, IpOutputFormat};
use std::process::ExitCode;
use words::{IpCommandWords, matches};

/// Arguments of `softiov ip`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct IpCommandArgs {
    #[command(flatten)]
    target: HostSelectionOptions,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// Words as iproute2 takes them: `-s -j link show PORT`, or `link set PORT vf N` with mac, vlan (qos, proto),
    /// rate, max_tx_rate, min_tx_rate, spoofchk, state and trust. `softiov ip help` lists all.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<String>,
}

const USAGE: &str = "\
Usage: softiov ip [ -s[tatistics] ] [ -d[etails] ] [ -h[uman-readable] ] [ -iec ] [ -br[ief] ] [ -j[son] ] [ -p[retty] ]
                  [ -o[neline] ] link COMMAND
       softiov ip -V[ersion]
       link show [ [ dev ] PORT ] [ group default ] [ up ] [ down ] [ nomaster ] [ type TYPE ] [ novf ]
       link set [ dev ] PORT [ up ] vf NUM [ mac LLADDR ] [ vlan VLANID [ qos VLAN-QOS ] [ proto VLAN-PROTO ] ]
                [ rate TXRATE ] [ max_tx_rate TXRATE ] [ min_tx_rate TXRATE ] [ spoofchk { on | off } ]
                [ query_rss { on | off } ] [ state { auto | enable | disable } ] [ trust { on | off } ]
                [ node_guid EUI64 ] [ port_guid EUI64 ]
";

/// Runs an `ip` command.
pub(crate) fn run(args: &IpCommandArgs) -> anyhow::Result<ExitCode> {
    let socket = args.target.load()?.control_socket();
    let mut words = IpCommandWords::new(&args.words);
    let done = match parse(&mut words) {
        Err(exit) => Err(exit),
        Ok((format, LinkCommand::Show(which))) => match which.choose(&client::ports(&socket)?) {
            Ok(ports) if format.json => Ok(json::print(&ports, format)?),
            Ok(ports) => Ok(show::print(&ports, format)),
            Err(exit) => Err(exit),
        },
        Ok((_, LinkCommand::Set(change))) => set::apply(change, &socket)?.map(|()| String::new()),
        Ok((_, LinkCommand::Help)) => Ok(USAGE.to_owned()),
        Ok((_, LinkCommand::Version)) => Ok(version()),
    };
    match done {
        Ok(text) => output::print(&text).map(|()| ExitCode::SUCCESS),
        Err(exit) => Ok(exit.report()),
    }
}

/// Command of `softiov ip` on links.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LinkCommand {
    Show(show::IpLinkSelection),
    Set(set::LinkChange),
    Help,
    Version,
}

/// Parses the options, object and command of `softiov ip`.
fn parse(words: &mut IpCommandWords<'_>) -> Result<(IpOutputFormat, LinkCommand), ToolExit> {
    match options::parse(words)? {
        IpInvocation::Run(format) => Ok((format, command(words)?)),
        IpInvocation::Version => Ok((IpOutputFormat::default(), LinkCommand::Version)),
        IpInvocation::Help => Ok((IpOutputFormat::default(), LinkCommand::Help)),
    }
}

/// iproute2 version whose answers are reproduced; scripts look for it.
const IPROUTE2_VERSION: &str = "7.1.0";

fn version() -> String {
    format!("ip utility, iproute2-{IPROUTE2_VERSION}, softiov {}\n", env!("CARGO_PKG_VERSION"))
}

/// Parses the object (`link`) of an `ip` command line, and the command for it.
fn command(words: &mut IpCommandWords<'_>) -> Result<LinkCommand, ToolExit> {
    match words.next() {
        None | Some("help") => return Ok(LinkCommand::Help),
        Some(object) if matches(object, "link") => {}
        Some(object) => {
            let exit = ToolExit::new(format!("Object \"{object}\" is unknown, try \"ip help\"."), 1);
            return Err(exit.with_hint(
                "only links (ports and VFs) are supported; for other objects use the system's ip",
            ));
        }
    }
    match words.next() {
        None => Ok(LinkCommand::Show(show::IpLinkSelection::default())),
        Some(word) if matches(word, "add") => Err(set::no_change_of_ports()),
        Some(word) if matches(word, "set") || matches(word, "change") => {
            Ok(set::parse(words)?.map_or(LinkCommand::Help, LinkCommand::Set))
        }
        Some(word) if ["show", "lst", "list"].iter().any(|full| matches(word, full)) => {
            Ok(show::IpLinkSelection::parse(words)?.map_or(LinkCommand::Help, LinkCommand::Show))
        }
        Some(word) if matches(word, "help") => Ok(LinkCommand::Help),
        Some(word) if ["replace", "delete", "property"].iter().any(|full| matches(word, full)) => {
            Err(set::no_change_of_ports())
        }
        Some(word) => {
            Err(ToolExit::new(format!("Command \"{word}\" is unknown, try \"ip link help\"."), 255))
        }
    }
}
