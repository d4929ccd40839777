//! `softiov vf flight`: prints the recent events of a VF and its client, from the host or from a file that it has
//! written. `daemon::flight` records them.

use crate::ask::OutputOptions;
use crate::capture::line::time;
use crate::output;
use anyhow::Context;
use daemon::control::client::{self, ControlClientError};
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use daemon::{FlightEntry, FlightRecording};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `softiov vf flight`.
#[derive(Debug, clap::Args)]
pub(crate) struct VfFlightRecorderArgs {
    /// VF, such as pf0vf0.
    #[arg(required_unless_present = "read")]
    vf: Option<String>,
    /// Write JSON to this file, or to standard output (`-`).
    #[arg(long, short = 'w', value_name = "FILE|-")]
    write: Option<PathBuf>,
    /// Print a recording from a file that `--write` or a host has written; needs no running host.
    #[arg(long, short, value_name = "FILE", conflicts_with = "vf")]
    read: Option<PathBuf>,
    #[command(flatten)]
    output: OutputOptions,
}

/// Prints a VF's flight recording, or writes it to a file.
pub(crate) fn run(args: VfFlightRecorderArgs) -> anyhow::Result<ExitCode> {
    let VfFlightRecorderArgs { vf, write, read, output: OutputOptions { json, target } } = args;
    let recording = match &read {
        Some(file) => load(file)?,
        None => ask(&target.load()?.control_socket(), vf.unwrap_or_default())?,
    };
    let as_json = || Ok::<_, anyhow::Error>(serde_json::to_string_pretty(&recording)? + "\n");
    match write {
        Some(file) if file != Path::new("-") => {
            fs::write(&file, as_json()?).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Some(_) => output::print(&as_json()?)?,
        None if json => output::print(&as_json()?)?,
        None => output::print(&text(&recording))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn load(file: &Path) -> anyhow::Result<FlightRecording> {
    let text =
        fs::read(file).with_context(|| format!("cannot read the flight recording {}", file.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is not a flight recording of a VF", file.display()))
}

fn ask(socket: &Path, vf: String) -> Result<FlightRecording, ControlClientError> {
    match client::ask(socket, ControlRequest::VfFlight { vf })? {
        ControlAnswer::Flight(recording) => Ok(recording),
        _ => Err(ControlClientError::OtherAnswer),
    }
}

/// Returns a flight recording as text, one line per entry.
pub(crate) fn text(recording: &FlightRecording) -> String {
    let FlightRecording { vf, time_ns, because, lost, entries } = recording;
    let because = because.as_ref().map_or(String::new(), |why| format!(", quarantined for {why}"));
    let mut text = format!("{vf} at {} UTC{because}", time(*time_ns));
    if *lost > 0 {
        let _ = write!(text, "; {lost} earlier entries are no longer kept");
    }
    text = output::escape_controls(&text) + "\n";
    for entry in entries {
        text += &output::escape_controls(&line(entry));
        text.push('\n');
    }
    text
}

fn line(entry: &FlightEntry) -> String {
    let FlightEntry { before_ns, what, name, offset, value, times, region: _ } = entry;
    let micros = before_ns / 1000;
    let before = format!("-{}.{:06}s", micros / 1_000_000, micros % 1_000_000);
    let mut line = format!("{before:>14}  {what:7}");
    if let Some(name) = name {
        let _ = write!(line, " {name}");
    }
    match (offset, value) {
        (Some(offset), Some(value)) => {
            let _ = write!(line, " {offset:#x} = {value:#x}");
        }
        (None, Some(rate)) => {
            let _ = write!(line, ", {rate} a second");
        }
        _ => {}
    }
    if *times > 1 {
        let _ = write!(line, " ({times} times)");
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::text;
    use daemon::{FlightEntry, FlightRecording};

    #[test]
    fn flight_recording_prints_one_line_per_entry_with_its_age() {
        let entry = |what: &str, name: Option<&str>| FlightEntry {
            before_ns: 1_234_567_000,
            what: what.to_owned(),
            name: name.map(str::to_owned),
            region: None,
            offset: None,
            value: None,
            times: 1,
        };
        let recording = FlightRecording {
            vf: "pf0vf0".into(),
            time_ns: 3_661_000_000_000,
            because: Some("spoofing".into()),
            lost: 3,
            entries: vec![
                entry("a client has connected", None),
                FlightEntry {
                    region: Some(0),
                    offset: Some(0x800),
                    value: Some(6),
                    ..entry("write", Some("VMBMEM[0] reset"))
                },
                FlightEntry { times: 2, ..entry("dropped", Some("spoofed")) },
                FlightEntry { value: Some(7), ..entry("offence", Some("spoofing")) },
            ],
        };
        assert_eq!(
            text(&recording),
            "pf0vf0 at 01:01:01.000000 UTC, quarantined for spoofing; 3 earlier entries are no longer kept
    -1.234567s  a client has connected
    -1.234567s  write   VMBMEM[0] reset 0x800 = 0x6
    -1.234567s  dropped spoofed (2 times)
    -1.234567s  offence spoofing, 7 a second
"
        );
    }
}
