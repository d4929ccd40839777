//! `softiov ip`: iproute2's `ip link` for ports and their VFs. Text, JSON and errors are those of iproute2 6 and 7, so that
//! scripts and parsers need no change. Left out: every other object of `ip`.

mod attributes;
mod json;
mod set;
mod show;
#[cfg(test)]
mod tests;
mod words;

use super::said::Said;
use crate::output;
use crate::place::Place;
use daemon::control::client;
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

/// In which form answers are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Form {
    statistics: bool,
    json: bool,
    pretty: bool,
    oneline: bool,
}

const USAGE: &str = "\
Usage: softiov ip [ -s[tatistics] ] [ -j[son] ] [ -p[retty] ] [ -o[neline] ] link COMMAND
       link show [ [ dev ] PORT ] [ up ] [ novf ]
       link set [ dev ] PORT vf NUM [ mac LLADDR ] [ vlan VLANID [ qos VLAN-QOS ] [ proto VLAN-PROTO ] ]
                [ rate TXRATE ] [ max_tx_rate TXRATE ] [ min_tx_rate TXRATE ] [ spoofchk { on | off } ]
                [ query_rss { on | off } ] [ state { auto | enable | disable } ] [ trust { on | off } ]
                [ node_guid EUI64 ] [ port_guid EUI64 ]
";

/// Runs a command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = args.place.load()?.control_socket();
    let mut words = Words::new(&args.words);
    let done = match form(&mut words).and_then(|form| Ok((form, command(&mut words)?))) {
        Err(said) => Err(said),
        Ok((form, Command::Show(which))) => match which.choose(&client::ports(&socket)?) {
            Ok(ports) if form.json => Ok(json::print(&ports, form)?),
            Ok(ports) => Ok(show::print(&ports, form)),
            Err(said) => Err(said),
        },
        Ok((_, Command::Set(change))) => set::apply(change, &socket)?.map(|()| String::new()),
        Ok((_, Command::Help)) => Ok(USAGE.to_owned()),
    };
    match done {
        Ok(text) => output::print(&text).map(|()| ExitCode::SUCCESS),
        Err(said) => Ok(said.say()),
    }
}

/// What is wanted of ports.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Command {
    Show(show::Which),
    Set(set::Change),
    Help,
}

/// Reads the options before the command. One dash or two, and cut short, as iproute2 has it.
fn form(words: &mut Words<'_>) -> Result<Form, Said> {
    let mut form = Form::default();
    while let Some(word) = words.peek().filter(|word| word.starts_with('-')) {
        words.next();
        let name = word.strip_prefix('-').unwrap_or(word);
        let name = name.strip_prefix('-').unwrap_or(name);
        let is = |full| matches(name, full);
        match () {
            () if is("stats") || is("statistics") => form.statistics = true,
            () if is("json") => form.json = true,
            () if is("pretty") => form.pretty = true,
            () if is("oneline") => form.oneline = true,
            // There is no more to tell, no name to look up, and no colour to see.
            () if is("details") || is("resolve") || name.starts_with("color") || name == "c" => {}
            () => return Err(Said::new(format!("Option \"{word}\" is unknown, try \"ip -help\"."), 255)),
        }
    }
    Ok(form)
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
        Some(word) if matches(word, "set") || matches(word, "change") => set::parse(words).map(Command::Set),
        Some(word) if ["show", "lst", "list"].iter().any(|full| matches(word, full)) => {
            show::Which::parse(words).map(Command::Show)
        }
        Some(word) if matches(word, "help") => Ok(Command::Help),
        Some(word) if ["add", "replace", "delete"].iter().any(|full| matches(word, full)) => {
            Err(set::not_supported("ports are added and taken away by `softiov apply`"))
        }
        Some(word) => Err(Said::new(format!("Command \"{word}\" is unknown, try \"ip link help\"."), 255)),
    }
}
