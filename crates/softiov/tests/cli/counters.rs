//! Tests published counters across a hand-over and a crash: none falls.

use crate::process::{PATIENCE, ServeProcess, softiov};
use crate::survival::{address, attach};
use embedded_guest::EmbeddedGuest;
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Instant;
use tempfile::tempdir;

/// Values of the host's counters, by name in the metrics or path in the status.
type PublishedCounterValues = BTreeMap<String, u64>;

/// Keys of the status JSON below which every number is a counter.
const COUNTED: [&str; 9] =
    ["rx", "tx", "drops", "interventions", "mailbox", "offences", "storms", "answers", "reattached"];
/// Keys of status numbers that are not counters, though they are below a key of counters: a percentile falls when many
/// short delays come.
const GAUGES: [&str; 2] = ["p50_ns", "p99_ns"];

/// Returns the counters in a text of `/metrics`: samples of counters and histograms.
fn metrics(text: &str) -> PublishedCounterValues {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let types: BTreeMap<&str, &str> = types.collect();
    let is_counter = |sample: &str| {
        let name = sample.split(['{', ' ']).next().unwrap_or_default();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        [Some(name), family]
            .into_iter()
            .flatten()
            .any(|name| matches!(types.get(name), Some(&"counter" | &"histogram")))
    };
    let samples = text.lines().filter(|line| !line.starts_with('#') && is_counter(line));
    // In nanoseconds, so that sums of seconds are whole numbers.
    let number = |text: &str| (text.parse::<f64>().unwrap() * 1e9) as u64;
    samples
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, value)| (name.to_owned(), number(value)))
        .collect()
}

/// Collects the counters of a part of the status JSON into `counts`, by path. `counted` is true if `value` lies under a
/// key whose numbers are all counters.
fn leaves(value: &Value, path: &str, counted: bool, counts: &mut PublishedCounterValues) {
    match value {
        Value::Number(number) if counted => {
            counts.insert(path.to_owned(), number.as_u64().unwrap());
        }
        Value::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| !GAUGES.contains(&key.as_str())) {
                let counted = counted || COUNTED.contains(&key.as_str());
                leaves(value, &format!("{path}.{key}"), counted, counts);
            }
        }
        Value::Array(values) => {
            values
                .iter()
                .zip(0..)
                .for_each(|(value, n)| leaves(value, &format!("{path}[{n}]"), counted, counts));
        }
        _ => {}
    }
}

/// Returns every counter that the host publishes, in `/metrics` and in the status.
fn published(serve: &ServeProcess) -> PublishedCounterValues {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (text, status) =
            (softiov(serve.folder(), &["metrics"]), softiov(serve.folder(), &["vf", "list", "--json"]));
        if (text.status, status.status) == (Some(0), Some(0)) {
            let mut counts = metrics(&text.out);
            leaves(&serde_json::from_str(&status.out).unwrap(), "", false, &mut counts);
            return counts;
        }
        assert!(Instant::now() < deadline, "{}{}", text.err, status.err);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Exchanges data between two guests of one port. The guests' ARP requests also reach the other port, over the wire.
fn exchange([a, b]: &[EmbeddedGuest; 2]) {
    for (from, to) in [(a, 1), (b, 0)] {
        assert!(from.send_tcp(address(to), 1 << 20).is_ok());
    }
}

fn none_falls(before: &PublishedCounterValues, after: &PublishedCounterValues, what: &str) {
    let fallen: Vec<String> = before
        .iter()
        .filter(|(name, count)| after.get(*name).is_none_or(|after| after < *count))
        .map(|(name, count)| format!("{name}: {count} -> {:?}", after.get(name)))
        .collect();
    assert!(fallen.is_empty(), "{what}: {fallen:#?}");
}

#[test]
fn no_counter_decreases_at_an_upgrade_or_after_a_crash() {
    for family in ["82576", "avf"] {
        let folder = tempdir().unwrap();
        let config = folder.path().join("softiov.toml");
        let port = format!("[[port]]\nfamily = \"{family}\"\nuplink.wire = \"w\"\n");
        std::fs::write(&config, port.repeat(2)).unwrap();
        let config = config.to_str().unwrap();
        let serve = ServeProcess::start(&folder, &["--config", config]);
        let guests = [0, 1].map(|vf| attach(serve.folder(), vf));
        exchange(&guests);
        let before = published(&serve);
        for (moved, least) in [
            ("softiov_port_uplink_packets_total{direction=\"tx\",pf=\"pf0\"}", 1),
            ("softiov_port_uplink_bytes_total{direction=\"rx\",pf=\"pf1\"}", 60),
            ("softiov_port_pf_visits_total{pf=\"pf0\"}", 1),
            ("softiov_port_pf_answer_seconds_count{pf=\"pf0\"}", 1),
            ("softiov_vf_interventions_total{kind=\"interrupt\",pf=\"pf0\",vf=\"0\"}", 1),
        ] {
            let count = before.get(moved).unwrap_or_else(|| panic!("{family}: no {moved} in {before:#?}"));
            assert!(*count >= least * 1_000_000_000, "{family}: {moved} {count}");
        }
        let said = softiov(serve.folder(), &["upgrade", "--config", config]);
        assert_eq!(said.status, Some(0), "{}", said.err);
        let after = published(&serve);
        none_falls(&before, &after, &format!("{family}, an upgrade"));
        exchange(&guests);
        let before = published(&serve);
        none_falls(&after, &before, &format!("{family}, more traffic"));
        serve.hosts().into_iter().for_each(|host| kill_process(host, Signal::KILL).unwrap());
        none_falls(&before, &published(&serve), &format!("{family}, a crash"));
    }
}
