//! `softiov events`: what has happened on a host lately, and what happens. Left out: which events there are, which are the
//! lines of its log.

use crate::output;
use crate::place::Place;
use daemon::control::client::{self, ClientError, Told};
use daemon::control::protocol::{Answer, Request};
use daemon::events::{Event, Recent};
use serde_json::Value;
use std::fmt::Write;
use std::ops::ControlFlow;
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

/// How long until a host is looked for again that has gone.
const AGAIN: Duration = Duration::from_millis(100);

/// Prints events.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = args.place.load()?.control_socket();
    if args.follow {
        return follow(&socket, args);
    }
    let mut last = 0;
    loop {
        let recent = ask(&socket, last)?;
        last = recent.events.last().map_or(last, |event| event.number);
        show(&recent, args)?;
        if !recent.more {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Prints events as they happen, of this host and of those that take its place, each of them once.
fn follow(socket: &Path, args: &Args) -> anyhow::Result<ExitCode> {
    let mut last: Option<String> = None;
    loop {
        let mut outcome = Ok(());
        let behind = last.clone();
        let end = client::follow(socket, behind.as_deref(), &mut |told| {
            let recent = match told {
                Told::Event { id, event } => {
                    last = Some(id);
                    Recent { events: vec![event], ..Recent::default() }
                }
                Told::Lost(lost) => Recent { lost, ..Recent::default() },
            };
            outcome = show(&recent, args);
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        outcome?;
        match end {
            // It has ended or is being replaced; a place among those who follow is free a moment after it was left.
            Ok(()) => {}
            Err(ClientError::Unreachable { .. } | ClientError::Io(_) | ClientError::Refused(_))
                if last.is_some() => {}
            Err(error) => return Err(error.into()),
        }
        sleep(AGAIN);
    }
}

fn show(recent: &Recent, args: &Args) -> anyhow::Result<()> {
    output::print(&match args.json {
        true => json(recent, args.name.as_deref())?,
        false => text(recent, args.name.as_deref()),
    })
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
