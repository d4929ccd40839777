//! `softiov events`: what has happened on a host lately, and what happens. Left out: which events there are, which are the
//! lines of its log.

use crate::output;
use crate::place::Place;
use daemon::control::client::{self, ClientError};
use daemon::control::protocol::{Answer, Request};
use daemon::events::{Event, Recent};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

/// Which events.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only those about this function, port or interface, such as pf0vf3.
    name: Option<String>,
    /// Go on with what happens, until interrupted. A host that is upgraded or starts again is followed.
    #[arg(long, short)]
    follow: bool,
    /// JSON instead of text, a line for each event.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// How often a host is asked for what happens.
const EVERY: Duration = Duration::from_millis(250);

/// Prints events.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = args.place.load()?.control_socket();
    let mut last = 0;
    loop {
        let recent = match ask(&socket, last) {
            // It is being replaced, and its successor begins to count anew.
            Err(ClientError::Unreachable { .. } | ClientError::Io(_)) if args.follow && last > 0 => {
                sleep(EVERY);
                continue;
            }
            other => other?,
        };
        last = recent.events.last().map_or(last, |event| event.number);
        output::print(&match args.json {
            true => json(&recent, args.name.as_deref())?,
            false => text(&recent, args.name.as_deref()),
        })?;
        match recent.more {
            true => {}
            false if args.follow => sleep(EVERY),
            false => return Ok(ExitCode::SUCCESS),
        }
    }
}

fn ask(socket: &Path, after: u64) -> Result<Recent, ClientError> {
    match client::ask(socket, Request::Events { after })? {
        Answer::Recent(recent) => Ok(recent),
        _ => Err(ClientError::OtherAnswer),
    }
}

fn chosen<'a>(recent: &'a Recent, name: Option<&'a str>) -> impl Iterator<Item = &'a Event> {
    let wanted = move |event: &&Event| name.is_none_or(|name| event.about.as_deref() == Some(name));
    recent.events.iter().filter(wanted)
}

fn json(recent: &Recent, name: Option<&str>) -> anyhow::Result<String> {
    let mut lines = String::new();
    for event in chosen(recent, name) {
        lines += &serde_json::to_string(event)?;
        lines.push('\n');
    }
    Ok(lines)
}

/// A line for each event.
pub(crate) fn text(recent: &Recent, name: Option<&str>) -> String {
    let mut text = String::new();
    if recent.lost > 0 {
        let _ = writeln!(text, "({} events before these are not kept any more)", recent.lost);
    }
    for Event { time, level, about, event, fields, .. } in chosen(recent, name) {
        let about = about.as_ref().map_or(String::new(), |about| format!("{about}: "));
        let mut line = format!("{time} {:<5} {about}{event}", level.to_uppercase());
        for (name, value) in fields {
            let _ = match value {
                Value::String(value) => write!(line, " {name}={value}"),
                value => write!(line, " {name}={value}"),
            };
        }
        text += &output::plain(&line);
        text.push('\n');
    }
    text
}
