//! `softiov ip`: iproute2's `ip link` for ports and their VFs. Text, JSON and errors are those of iproute2 6 and 7, so that
//! scripts and parsers need no change. Left out: every other object of `ip`.

mod attributes;
mod json;
mod options;
mod set;
mod show;
mod statistics;
#[cfg(test)]
mod tests;
mod words;

use super::said::Said;
use crate::output;
use crate::place::Place;
use daemon::control::client;
use options::{Asked, Form};
use std::process::ExitCode;
use words::{Words, matches};

/// What `ip` is told.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// As iproute2 takes them: `-s -j link show PORT`, or `link set PORT vf N` with mac, vlan (qos, proto), rate,
    /// max_tx_rate, min_tx_rate, spoofchk, state and trust. `softiov ip help` has all.
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

/// Runs a command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = args.place.load()?.control_socket();
    let mut words = Words::new(&args.words);
    let done = match parse(&mut words) {
        Err(said) => Err(said),
        Ok((form, Command::Show(which))) => match which.choose(&client::ports(&socket)?) {
            Ok(ports) if form.json => Ok(json::print(&ports, form)?),
            Ok(ports) => Ok(show::print(&ports, form)),
            Err(said) => Err(said),
        },
        Ok((_, Command::Set(change))) => set::apply(change, &socket)?.map(|()| String::new()),
        Ok((_, Command::Help)) => Ok(USAGE.to_owned()),
        Ok((_, Command::Version)) => Ok(version()),
    };
    match done {
        Ok(text) => output::print(&text).map(|()| ExitCode::SUCCESS),
        Err(said) => Ok(said.say()),
    }
}

/// A command on links.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Command {
    Show(show::Which),
    Set(set::Change),
    Help,
    Version,
}

/// Reads options, object and command.
fn parse(words: &mut Words<'_>) -> Result<(Form, Command), Said> {
    match options::parse(words)? {
        Asked::Run(form) => Ok((form, command(words)?)),
        Asked::Version => Ok((Form::default(), Command::Version)),
        Asked::Help => Ok((Form::default(), Command::Help)),
    }
}

/// The version of iproute2 that these answers follow: scripts look for it.
const FOLLOWS: &str = "7.1.0";

fn version() -> String {
    format!("ip utility, iproute2-{FOLLOWS}, softiov {}\n", env!("CARGO_PKG_VERSION"))
}

/// Reads the object and what is to be done with it.
fn command(words: &mut Words<'_>) -> Result<Command, Said> {
    match words.next() {
        None | Some("help") => return Ok(Command::Help),
        Some(object) if matches(object, "link") => {}
        Some(object) => {
            let said = Said::new(format!("Object \"{object}\" is unknown, try \"ip help\"."), 1);
            return Err(said.because("ports and VFs are links; for anything else use the system's ip"));
        }
    }
    match words.next() {
        None => Ok(Command::Show(show::Which::default())),
        Some(word) if matches(word, "add") => Err(set::no_change_of_ports()),
        Some(word) if matches(word, "set") || matches(word, "change") => {
            Ok(set::parse(words)?.map_or(Command::Help, Command::Set))
        }
        Some(word) if ["show", "lst", "list"].iter().any(|full| matches(word, full)) => {
            Ok(show::Which::parse(words)?.map_or(Command::Help, Command::Show))
        }
        Some(word) if matches(word, "help") => Ok(Command::Help),
        Some(word) if ["replace", "delete", "property"].iter().any(|full| matches(word, full)) => {
            Err(set::no_change_of_ports())
        }
        Some(word) => Err(Said::new(format!("Command \"{word}\" is unknown, try \"ip link help\"."), 255)),
    }
}
