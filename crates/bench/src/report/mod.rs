//! What was found: rows, as a table, as JSON, as charts.

mod charts;
mod table;

use crate::contender::Mode;
use crate::machine::Machine;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// One number, with what belongs to it. What there is no number for is `null`.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The benchmark: forwarding, latency or a raw limit.
    pub bench: String,
    /// The contender that did it.
    pub peer: String,
    /// Bytes of a frame, or of what takes its place.
    pub size: usize,
    /// What kind of number this is.
    pub mode: Mode,
    /// Millions of frames a second, both directions added.
    pub mpps: Option<f64>,
    /// The same in 10^9 bits a second.
    pub gbps: Option<f64>,
    /// Cycles of the forwarder for a frame, the kernel's among them.
    pub cycles_per_packet: Option<f64>,
    /// The median of ratios of slices to those of the fastest peer.
    pub ratio_to_best_peer: Option<f64>,
    /// Between which the middle half of these ratios is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_spread: Option<(f64, f64)>,
    /// Frames of the sender that was served best over those of the one that was served worst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfairness: Option<f64>,
    /// The share of the limit on frames under way that senders used: near 1 the forwarder bounds the rate, else the guests do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under_way: Option<f64>,
    /// Slices measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<usize>,
    /// Those of them that could be compared with the fastest peer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<usize>,
    /// Its rate over those of others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// What one takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nanoseconds: Option<f64>,
    /// Which part of a processor the host takes while its guests are silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_share: Option<f64>,
    /// How often the receiver was interrupted, and what it lost.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<Interrupts>,
    /// One way, under load or after a silence.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
}

/// A contender's rate over that of another: the median over slices that may be compared.
#[derive(Debug, Clone, Serialize)]
pub struct Ratio {
    /// The other.
    pub to: String,
    /// What kind of number the other gives.
    pub mode: Mode,
    /// None without a pair.
    pub median: Option<f64>,
    /// Between which the middle half is.
    pub spread: Option<(f64, f64)>,
    /// Slices that may be compared.
    pub pairs: usize,
}

/// What a receiver met with that hears interrupts.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Interrupts {
    /// Interrupts a second.
    #[serde(rename = "interrupts_per_second")]
    pub hertz: f64,
    /// Part of the frames that never came.
    #[serde(rename = "lost_share")]
    pub lost: f64,
}

/// One way, at a part of the full load; 0 is after a silence.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Latency {
    /// Which part.
    pub load: f64,
    /// Half of the frames took longer.
    pub p50_ns: Option<f64>,
    /// One in a hundred took longer.
    pub p99_ns: Option<f64>,
    /// One in a thousand took longer.
    pub p999_ns: Option<f64>,
}

impl Row {
    /// A row without numbers.
    #[must_use]
    pub fn new(bench: &str, peer: &str, size: usize, mode: Mode) -> Self {
        Self {
            bench: bench.to_owned(),
            peer: peer.to_owned(),
            size,
            mode,
            mpps: None,
            gbps: None,
            cycles_per_packet: None,
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

    /// Millions of frames a second, and what follows.
    pub fn set_rate(&mut self, mpps: Option<f64>) {
        self.mpps = mpps;
        self.gbps = mpps.map(|mpps| mpps * self.size as f64 * 8.0 / 1e3);
    }

    pub(crate) fn with_rate(mut self, mpps: f64) -> Self {
        self.set_rate(Some(mpps));
        self
    }
}

/// All of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Where it was found.
    pub machine: Machine,
    /// Who could not take part, and why.
    pub skipped: Vec<String>,
    /// What was found.
    pub rows: Vec<Row>,
}

impl Report {
    /// Nothing yet.
    #[must_use]
    pub fn new(machine: Machine) -> Self {
        Self { machine, skipped: Vec::new(), rows: Vec::new() }
    }

    /// Notes who could not take part, each once.
    pub(crate) fn skip(&mut self, skipped: Vec<String>) {
        for reason in skipped {
            if !self.skipped.contains(&reason) {
                eprintln!("skipped: {reason}");
                self.skipped.push(reason);
            }
        }
    }

    /// Writes `summary.json` and the charts.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
        };
        write("summary.json", &serde_json::to_string_pretty(self)?)?;
        for (name, svg) in charts::charts(self) {
            write(&format!("{name}.svg"), &svg)?;
        }
        Ok(())
    }
}
