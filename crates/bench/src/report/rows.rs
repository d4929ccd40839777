//! Rows of a report, and the report that has them.

use super::comparison::StatedRate;
use crate::contender::ContenderKind;
use crate::machine::MachineDescription;
use crate::variation::{self, WorkerSettings};
use serde::Serialize;

/// Result of a contender in a benchmark. A missing number is `null`.
#[derive(Debug, Clone, Serialize)]
pub struct BenchmarkRow {
    /// Name of the benchmark, such as forwarding, latency or a limit of the machine.
    pub bench: String,
    /// Name of the measured contender, moderation policy or machine.
    pub peer: String,
    /// Settings that differ from the contender's defaults, as they are in its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub variation: String,
    /// Reason why the row cannot show what its variation does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// Number of ports whose guests exchange frames, in a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<usize>,
    /// Length of a frame in bytes, or of the unit that a limit of the machine moves.
    pub size: usize,
    /// Kind of the measured contender (card, alternative or limit).
    pub mode: ContenderKind,
    /// Forwarding rate in millions of frames a second, in both directions.
    pub mpps: Option<f64>,
    /// Forwarding rate in gigabits (10^9 bits) a second.
    pub gbps: Option<f64>,
    /// Processor cycles of the forwarder for a frame, including the kernel's.
    pub cycles_per_packet: Option<f64>,
    /// Instructions of the forwarder for a frame, on a machine with counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions_per_packet: Option<f64>,
    /// Notifications between guests and card.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<NotificationRates>,
    /// Order in which frames with sequence numbers arrived.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub order: Option<ArrivalOrder>,
    /// Median ratio of the contender's slices to those of the fastest peer.
    pub ratio_to_best_peer: Option<f64>,
    /// Bounds of the middle half of the ratios to the fastest peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_spread: Option<(f64, f64)>,
    /// Number of frames of the best-served sender, divided by that of the worst-served sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfairness: Option<f64>,
    /// Share of the limit on pending frames that senders used. Near 1 the forwarder limits the rate; far below 1 the
    /// guests limit it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under_way: Option<f64>,
    /// Number of slices of time in which the contender was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<usize>,
    /// Number of slices that were comparable with those of the fastest peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<usize>,
    /// Ratios of the contender's rate to those of other contenders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<RateRatio>,
    /// Duration of the measured operation, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nanoseconds: Option<f64>,
    /// Share of a processor that the host uses while its guests are silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_share: Option<f64>,
    /// Interrupt rate of the receiver, and the share of frames that the receiver lost.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<ReceiverInterrupts>,
    /// Latency in one direction, under load or after a silence.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyPercentiles>,
}

/// Ratio of a contender's rate to that of another contender: the median over comparable slices.
#[derive(Debug, Clone, Serialize)]
pub struct RateRatio {
    /// Name of the contender that the rate is compared with.
    pub to: String,
    /// Kind of the contender that the rate is compared with.
    pub mode: ContenderKind,
    /// Median of the ratios; `None` without a comparable pair of slices.
    pub median: Option<f64>,
    /// Bounds of the middle half of the ratios over comparable slices.
    pub spread: Option<(f64, f64)>,
    /// Number of comparable pairs of slices.
    pub pairs: usize,
    /// Median of the ratios over all rounds, comparable or not. A machine whose speed changes within slices has few
    /// comparable pairs, but its changes affect both slices of a round equally often.
    pub median_of_all: Option<f64>,
    /// Bounds of the middle half of the ratios of all rounds.
    pub spread_of_all: Option<(f64, f64)>,
}

/// Interrupts and losses of a receiver that acts on interrupts.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ReceiverInterrupts {
    /// Number of interrupts a second.
    #[serde(rename = "interrupts_per_second")]
    pub hertz: f64,
    /// Share of the sent frames that the receiver lost.
    #[serde(rename = "lost_share")]
    pub lost: f64,
}

/// Notifications between guests and card, for 1,000 frames.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct NotificationRates {
    /// Number of kicks by eventfds for 1,000 frames.
    #[serde(rename = "kicks_per_1000_packets")]
    pub kicks: f64,
    /// Number of doorbells and other register accesses by message for 1,000 frames.
    #[serde(rename = "messages_per_1000_packets")]
    pub messages: f64,
    /// Number of interrupts to the guests for 1,000 frames.
    #[serde(rename = "interrupts_per_1000_packets")]
    pub interrupts: f64,
}

/// Order in which frames with increasing send times arrived at one receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ArrivalOrder {
    /// Number of frames that did not arrive.
    #[serde(rename = "lost_packets")]
    pub lost: u64,
    /// Number of frames that arrived after a frame that was sent later.
    #[serde(rename = "reordered_packets")]
    pub reordered: u64,
}

/// Percentiles of the latency in one direction, at a fraction of the full load or after a silence (load 0).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LatencyPercentiles {
    /// Rate of the sent frames, as a fraction of the full load.
    pub load: f64,
    /// Median frame latency, nanoseconds.
    pub p50_ns: Option<f64>,
    /// 99th percentile of frame latency, nanoseconds.
    pub p99_ns: Option<f64>,
    /// 99.9th percentile of frame latency, nanoseconds.
    pub p999_ns: Option<f64>,
}

impl BenchmarkRow {
    /// Creates a result row without numbers.
    #[must_use]
    pub fn new(bench: &str, peer: &str, size: usize, mode: ContenderKind) -> Self {
        Self {
            bench: bench.to_owned(),
            peer: peer.to_owned(),
            variation: String::new(),
            note: None,
            ports: None,
            size,
            mode,
            mpps: None,
            gbps: None,
            cycles_per_packet: None,
            instructions_per_packet: None,
            notifications: None,
            order: None,
            ratio_to_best_peer: None,
            ratio_spread: None,
            unfairness: None,
            under_way: None,
            slices: None,
            pairs: None,
            ratios: Vec::new(),
            nanoseconds: None,
            idle_share: None,
            interrupts: None,
            latency: None,
        }
    }

    /// Sets the row's variation, and the reason why the row cannot show what it does.
    pub(crate) fn set_variation(&mut self, variation: &str) {
        self.variation = variation.to_owned();
        self.note = variation::note(variation);
    }

    /// Returns the contender's name without its variation.
    pub(crate) fn peer_without_variation(&self) -> &str {
        let name = self.peer.strip_suffix(&self.variation).unwrap_or(&self.peer);
        name.strip_suffix(", ").unwrap_or(name)
    }

    /// Sets the row's rate in frames a second, and in bits from the frame's length.
    pub fn set_rate(&mut self, mpps: Option<f64>) {
        self.mpps = mpps;
        self.gbps = mpps.map(|mpps| mpps * self.size as f64 * 8.0 / 1e3);
    }

    pub(crate) fn with_rate(mut self, mpps: f64) -> Self {
        self.set_rate(Some(mpps));
        self
    }
}

/// Results of a benchmark run.
#[derive(Debug, Clone, Serialize)]
pub struct BenchmarkReport {
    /// Machine of the benchmark run.
    pub machine: MachineDescription,
    /// Contenders that could not take part, each with the reason.
    pub skipped: Vec<String>,
    /// Statements about what the results show and what they do not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<&'static str>,
    /// Result rows of all benchmarks.
    pub rows: Vec<BenchmarkRow>,
    /// Rates of guests that the paper states, which charts show beside the measured ones.
    #[serde(skip)]
    pub(crate) stated_rates: Vec<StatedRate>,
    /// Rates of a back end with one and with several workers that the paper states, in Gb/s.
    #[serde(skip)]
    pub(crate) stated_workers: Vec<(WorkerSettings, f64)>,
}

impl BenchmarkReport {
    /// Creates a benchmark report without rows.
    #[must_use]
    pub fn new(machine: MachineDescription) -> Self {
        Self {
            machine,
            skipped: Vec::new(),
            claims: Vec::new(),
            rows: Vec::new(),
            stated_rates: Vec::new(),
            stated_workers: Vec::new(),
        }
    }

    /// Adds the names and reasons of contenders that could not be measured, each once.
    pub(crate) fn skip(&mut self, skipped: Vec<String>) {
        for reason in skipped {
            if !self.skipped.contains(&reason) {
                eprintln!("skipped: {reason}");
                self.skipped.push(reason);
            }
        }
    }
}
