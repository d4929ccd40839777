//! `softiov events`: prints a host's recent events, and new ones as they happen. Events are the lines of the host's
//! log.

use crate::output;
use crate::target::HostSelectionOptions;
use daemon::control::client::{self, ControlClientError, EventStreamItem};
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use daemon::events::{HostEvent, RecentEvents};
use serde_json::Value;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

/// Arguments of `softiov events`.
#[derive(Debug, clap::Args)]
pub(crate) struct EventsArgs {
    /// Print only events of this function, port or interface, such as pf0vf3.
    name: Option<String>,
    /// Print new events until interrupted. An upgraded or restarted host is followed.
    #[arg(long, short)]
    follow: bool,
    /// Print JSON instead of text, one event per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: HostSelectionOptions,
}

/// Delay before a new connection to a host that is gone.
const RECONNECT_DELAY: Duration = Duration::from_millis(100);

/// Prints a host's recent events, or follows new ones.
pub(crate) fn run(args: &EventsArgs) -> anyhow::Result<ExitCode> {
    let socket = args.target.load()?.control_socket();
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

/// Prints each event once as it happens, of the present host and of its successors.
fn follow(socket: &Path, args: &EventsArgs) -> anyhow::Result<ExitCode> {
    let mut last: Option<String> = None;
    loop {
        let mut outcome = Ok(());
        let behind = last.clone();
        let end = client::follow(socket, behind.as_deref(), &mut |told| {
            let recent = match told {
                EventStreamItem::Event { id, event } => {
                    last = Some(id);
                    RecentEvents { events: vec![event], ..RecentEvents::default() }
                }
                EventStreamItem::Lost(lost) => RecentEvents { lost, ..RecentEvents::default() },
            };
            outcome = show(&recent, args);
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        outcome?;
        match end {
            // The host has ended or is being replaced, or has not yet released the closed connection.
            Ok(()) => {}
            Err(
                ControlClientError::Unreachable { .. }
                | ControlClientError::Io(_)
                | ControlClientError::Refused(_),
            ) if last.is_some() => {}
            Err(error) => return Err(error.into()),
        }
        sleep(RECONNECT_DELAY);
    }
}

fn show(recent: &RecentEvents, args: &EventsArgs) -> anyhow::Result<()> {
    output::print(&match args.json {
        true => json(recent, args.name.as_deref())?,
        false => text(recent, args.name.as_deref()),
    })
}

fn ask(socket: &Path, after: u64) -> Result<RecentEvents, ControlClientError> {
    match client::ask(socket, ControlRequest::Events { after })? {
        ControlAnswer::Recent(recent) => Ok(recent),
        _ => Err(ControlClientError::OtherAnswer),
    }
}

fn matching<'a>(recent: &'a RecentEvents, name: Option<&'a str>) -> impl Iterator<Item = &'a HostEvent> {
    let wanted = move |event: &&HostEvent| name.is_none_or(|name| event.about.as_deref() == Some(name));
    recent.events.iter().filter(wanted)
}

fn json(recent: &RecentEvents, name: Option<&str>) -> anyhow::Result<String> {
    let mut lines = String::new();
    for event in matching(recent, name) {
        lines += &serde_json::to_string(event)?;
        lines.push('\n');
    }
    Ok(lines)
}

/// Returns events as text, one line each.
pub(crate) fn text(recent: &RecentEvents, name: Option<&str>) -> String {
    let mut text = String::new();
    if recent.lost > 0 {
        let _ = writeln!(text, "({} earlier events are no longer kept)", recent.lost);
    }
    for HostEvent { time, level, about, event, fields, .. } in matching(recent, name) {
        let about = about.as_ref().map_or(String::new(), |about| format!("{about}: "));
        let mut line = format!("{time} {:<5} {about}{event}", level.to_uppercase());
        for (name, value) in fields {
            let _ = match value {
                Value::String(value) => write!(line, " {name}={value}"),
                value => write!(line, " {name}={value}"),
            };
        }
        text += &output::escape_controls(&line);
        text.push('\n');
    }
    text
}
