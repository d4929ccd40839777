//! Describes the benchmark's machine: processors, processes restricted to them, pages and counters. [`crate::raw`]
//! measures its speed.

pub mod cycles;
pub mod huge_pages;
pub mod process;
pub mod processors;

use serde::Serialize;
use std::fs;

/// Description of the benchmark's machine.
#[derive(Debug, Clone, Serialize)]
pub struct MachineDescription {
    /// Name of the machine's processor.
    pub processor: String,
    /// Number of processors that this process may use.
    pub processors: usize,
    /// Release of the machine's kernel.
    pub kernel: String,
    /// Load average that other programs caused on the machine in the last minute before the run.
    pub load: Option<f64>,
    /// Source of the processes' cycle counts on this machine.
    pub cycles: cycles::CycleSource,
    /// True if the compared forwarders had huge pages.
    pub huge_pages: bool,
}

/// Returns the description of this machine.
#[must_use]
pub fn describe() -> MachineDescription {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let name = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    MachineDescription {
        processor: name.map_or("unknown", |(_, name)| name).to_owned(),
        processors: std::thread::available_parallelism().map_or(1, Into::into),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        load: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()),
        cycles: cycles::source(),
        huge_pages: false,
    }
}
