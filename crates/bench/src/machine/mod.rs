//! The machine: its processors, processes held on them, its pages and its counters. Left out: how fast it is
//! ([`crate::raw`]).

pub mod cycles;
pub mod huge_pages;
pub mod process;
pub mod processors;

use serde::Serialize;
use std::fs;

/// What was measured on.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// What the processors call themselves.
    pub processor: String,
    /// How many this process may use.
    pub processors: usize,
    /// The kernel's release.
    pub kernel: String,
    /// The load of the last minute, when the run began: what others do.
    pub load: Option<f64>,
    /// Where numbers of cycles are from.
    pub cycles: cycles::Source,
    /// Whether peers had huge pages.
    pub huge_pages: bool,
}

/// The machine at hand.
#[must_use]
pub fn describe() -> Machine {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let name = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    Machine {
        processor: name.map_or("unknown", |(_, name)| name).to_owned(),
        processors: std::thread::available_parallelism().map_or(1, Into::into),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        load: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()),
        cycles: cycles::source(),
        huge_pages: false,
    }
}
