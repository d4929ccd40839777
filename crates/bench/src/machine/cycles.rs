//! Counts the cycles of a process, including the kernel's on its behalf, by the processor's counters. In a virtual
//! machine without such counters, multiplies the processor time of the process's threads by the clock rate. If the
//! kernel reports neither, returns no number.

use host::measure::PROBES;
use perf_event::events::Hardware;
use perf_event::{Builder, Counter};
use serde::Serialize;
use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

/// Cycle counter of a process.
#[derive(Debug)]
pub enum CycleCounter {
    /// Counting by hardware counters of all threads of the process.
    Counted(Vec<Counter>),
    /// Counting by the processor time that the kernel reports for the process with this id.
    Timed(u32),
}

/// Source of a process's cycle counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CycleSource {
    /// The processor's hardware counters count the cycles.
    Counters,
    /// The kernel reports the processor time, which is multiplied by the clock rate.
    Time,
}

impl CycleCounter {
    /// Starts counting the cycles of a process.
    #[must_use]
    pub fn of(process: u32) -> Self {
        counters(process, Hardware::CPU_CYCLES).map_or(Self::Timed(process), Self::Counted)
    }

    /// Returns the cycles that the process has taken so far.
    pub fn read(&mut self) -> Option<u64> {
        match self {
            Self::Counted(counters) => sum(counters),
            Self::Timed(process) => of_time(time(*process)),
        }
    }
}

/// Instruction counter of a process, on a machine with hardware counters.
#[derive(Debug)]
pub struct InstructionCounter(Option<Vec<Counter>>);

impl InstructionCounter {
    /// Starts counting the instructions of a process.
    #[must_use]
    pub fn of(process: u32) -> Self {
        Self(counters(process, Hardware::INSTRUCTIONS))
    }

    /// Returns the instructions that the process has taken so far, or `None` on a machine without counters.
    pub fn read(&mut self) -> Option<u64> {
        sum(self.0.as_mut()?)
    }
}

fn sum(counters: &mut [Counter]) -> Option<u64> {
    counters.iter_mut().map(|counter| counter.read().ok()).sum()
}

/// Returns counters of an event, one for each thread of a process; `None` without hardware counters.
fn counters(process: u32, event: Hardware) -> Option<Vec<Counter>> {
    let counters: Option<Vec<Counter>> =
        threads(process).into_iter().map(|thread| counter(thread, event)).collect();
    counters.filter(|counters| !counters.is_empty())
}

/// Returns the source of cycle counts on this machine.
#[must_use]
pub fn source() -> CycleSource {
    match CycleCounter::of(std::process::id()) {
        CycleCounter::Counted(_) => CycleSource::Counters,
        CycleCounter::Timed(_) => CycleSource::Time,
    }
}

fn threads(process: u32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok()).collect()
}

fn counter(thread: i32, event: Hardware) -> Option<Counter> {
    let mut builder = Builder::new(event);
    builder.observe_pid(thread).any_cpu().include_kernel();
    let mut counter = builder.build().ok()?;
    counter.enable().ok()?;
    Some(counter)
}

/// Returns the processor time of a process's threads, or zero if the kernel does not report it.
#[must_use]
pub fn time(process: u32) -> Duration {
    let of = |thread: i32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    Duration::from_nanos(threads(process).into_iter().filter_map(of).sum())
}

/// Returns the number of cycles of a processor that was in use for `time`, if the clock rate is known.
#[must_use]
pub fn of_time(time: Duration) -> Option<u64> {
    Some((time.as_secs_f64() * clock()?) as u64)
}

/// Returns the processor's clock rate in hertz, measured on the first call.
fn clock() -> Option<f64> {
    static CLOCK: OnceLock<Option<f64>> = OnceLock::new();
    let measure = || PROBES.iter().find(|probe| probe.name == "clock").and_then(|probe| (probe.run)().ok());
    *CLOCK.get_or_init(|| measure().map(|sample| sample.median))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycle_count_grows_while_the_process_works() {
        let mut cycles = CycleCounter::of(std::process::id());
        let before = cycles.read();
        let sum = std::hint::black_box((0..1_000_000_u64).fold(0, |sum: u64, at| sum.rotate_left(3) ^ at));
        assert!(sum > 0);
        // The kernel may update the time only when the thread is switched.
        std::thread::sleep(Duration::from_millis(1));
        assert!(cycles.read() > before, "{cycles:?}");
    }
}
