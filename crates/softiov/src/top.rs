//! `softiov top`: shows the current rates of each VF, table after table. `softiov vf show` has the totals.

use crate::output;
use crate::target::HostSelectionOptions;
use daemon::control::client;
use daemon::control::status::{PortStatus, VfStatus};
use serde::Serialize;
use std::fmt::Write;
use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Arguments of `softiov top`.
#[derive(Debug, clap::Args)]
pub(crate) struct TopCommandArgs {
    /// Seconds between two tables.
    #[arg(short, long, default_value_t = 1.0, value_name = "SECONDS", value_parser = seconds)]
    delay: f64,
    /// Stop after this number of tables.
    #[arg(short = 'n', long, value_name = "COUNT")]
    iterations: Option<u64>,
    /// Print JSON instead of tables, one array per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: HostSelectionOptions,
}

/// Parses the delay between two tables: seconds, from a tenth of a second to an hour.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "not a number of seconds from 0.1 to 3600".to_owned())
}

/// Rates of a VF between two samples, per second.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct VfTrafficRates {
    name: String,
    /// Number of frames that the VF received per second.
    rx_pps: f64,
    /// Megabits per second of the frames that the VF received.
    rx_mbps: f64,
    /// Number of frames that the VF sent per second.
    tx_pps: f64,
    /// Megabits per second of the frames that the VF sent.
    tx_mbps: f64,
    /// Number of the VF's frames dropped per second, in either direction.
    dropped_pps: f64,
    interrupts_per_s: f64,
    /// Number of the VF's register accesses per second that the host carried out.
    interventions_per_s: f64,
    /// State of the VF if it is not normal, such as quarantined; otherwise empty.
    note: &'static str,
}

/// Prints a table of VF rates at each interval, until interrupted or for the number of tables requested.
pub(crate) fn run(args: &TopCommandArgs) -> anyhow::Result<ExitCode> {
    let socket = args.target.load()?.control_socket();
    let delay = Duration::from_secs_f64(args.delay);
    let (mut before, mut read) = (client::ports(&socket)?, Instant::now());
    let mut left = args.iterations.unwrap_or(u64::MAX);
    while left > 0 {
        sleep(delay);
        let (now, again) = (client::ports(&socket)?, Instant::now());
        let rates = rates(&before, &now, again - read);
        let text = match args.json {
            true => serde_json::to_string(&rates)? + "\n",
            // On a terminal, a table replaces the one before.
            false if stdout().is_terminal() => format!("\x1b[H\x1b[J{}", table(&rates)),
            false => table(&rates) + "\n",
        };
        output::print(&text)?;
        (before, read) = (now, again);
        left -= 1;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the rates of VFs between two samples of the ports' status. A VF that is new, or whose counters began anew,
/// has rates of 0.
fn rates(before: &[PortStatus], now: &[PortStatus], elapsed: Duration) -> Vec<VfTrafficRates> {
    let vfs = |ports: &'_ [PortStatus]| ports.iter().flat_map(|port| port.vfs.clone()).collect::<Vec<_>>();
    let before = vfs(before);
    let of = |vf: VfStatus| {
        let past = before.iter().find(|past| past.name == vf.name).unwrap_or(&vf);
        let rate =
            |read: fn(&VfStatus) -> u64| read(&vf).saturating_sub(read(past)) as f64 / elapsed.as_secs_f64();
        VfTrafficRates {
            rx_pps: rate(|vf| vf.rx.packets),
            rx_mbps: rate(|vf| vf.rx.bytes) * 8e-6,
            tx_pps: rate(|vf| vf.tx.packets),
            tx_mbps: rate(|vf| vf.tx.bytes) * 8e-6,
            dropped_pps: rate(|vf| vf.rx.dropped + vf.tx.dropped),
            interrupts_per_s: rate(|vf| vf.interventions.interrupts),
            interventions_per_s: rate(|vf| {
                vf.interventions.reads + vf.interventions.posted_writes + vf.interventions.synchronous_writes
            }),
            note: note(&vf),
            name: vf.name,
        }
    };
    vfs(now).into_iter().map(of).collect()
}

fn note(vf: &VfStatus) -> &'static str {
    match () {
        () if vf.conduct.quarantine.is_some() => "quarantined",
        () if vf.conduct.throttled => "throttled",
        () if vf.peer.is_none() => "no client",
        () if vf.hint.is_some() => "memory not shared",
        () if !vf.active => "no driver",
        () if !vf.link => "no link",
        () => "",
    }
}

const COLUMNS: [&str; 7] = ["rx pps", "rx Mb/s", "tx pps", "tx Mb/s", "drops/s", "irqs/s", "exits/s"];

fn table(rates: &[VfTrafficRates]) -> String {
    let mut text = format!("{:<10}", "vf");
    COLUMNS.iter().for_each(|column| text += &format!(" {column:>10}"));
    text.push('\n');
    for vf in rates {
        let numbers = [
            (vf.rx_pps, 0),
            (vf.rx_mbps, 1),
            (vf.tx_pps, 0),
            (vf.tx_mbps, 1),
            (vf.dropped_pps, 0),
            (vf.interrupts_per_s, 0),
            (vf.interventions_per_s, 0),
        ];
        let mut line = format!("{:<10}", vf.name);
        numbers.iter().for_each(|(number, digits)| line += &format!(" {number:>10.digits$}"));
        let _ = writeln!(text, "{}", format!("{line}  {}", vf.note).trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{rates, seconds, table};
    use crate::sample;
    use daemon::control::status::{PortStatus, TrafficCounts, VmmInterventions};
    use std::time::Duration;

    /// Returns the status of a port whose VF has moved `packets` frames in each direction.
    fn port(packets: u64, has_client: bool) -> Vec<PortStatus> {
        let mut port = sample::port();
        let function = &mut port.vfs[0].function;
        let traffic = TrafficCounts { packets, bytes: packets * 1000, ..TrafficCounts::default() };
        (function.rx, function.tx) = (traffic, traffic);
        function.interventions = VmmInterventions {
            reads: packets,
            posted_writes: packets,
            synchronous_writes: 0,
            interrupts: packets,
        };
        if !has_client {
            function.peer = None;
        }
        vec![port]
    }

    #[test]
    fn rate_in_softiov_top_is_the_counter_difference_per_second() {
        let of =
            |before: &[PortStatus], now: &[PortStatus]| table(&rates(before, now, Duration::from_secs(2)));
        let text = of(&port(1_000, true), &port(3_000, true));
        let expected =
            "pf0vf0           1000        8.0       1000        8.0          0       1000       2000\n";
        assert_eq!(text.lines().nth(1), Some(expected.trim_end()), "{text}");
        let nothing =
            "pf0vf0              0        0.0          0        0.0          0          0          0";
        assert_eq!(of(&[], &port(3_000, true)).lines().nth(1), Some(nothing), "a new VF");
        assert_eq!(
            of(&port(3_000, true), &port(5, true)).lines().nth(1),
            Some(nothing),
            "a host that began anew"
        );
        let unused = format!("{nothing}  no client");
        assert_eq!(of(&[], &port(0, false)).lines().nth(1), Some(unused.as_str()));
    }

    #[test]
    fn refresh_delay_of_top_is_0_1_s_to_an_hour() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        for text in ["0", "-1", "NaN", "inf", "1e9", "soon"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
