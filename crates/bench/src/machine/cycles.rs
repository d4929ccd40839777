//! The cycles that a process takes, the kernel's in its name among them: from the processor's own counters, or, where
//! a virtual machine has none, the time that its threads had a processor times the clock that instructions see. Left
//! out: kernels that tell neither; there is no number then.

use host::measure::PROBES;
use perf_event::events::Hardware;
use perf_event::{Builder, Counter};
use serde::Serialize;
use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

/// Counts the cycles of a process.
#[derive(Debug)]
pub enum Cycles {
    /// Counters of all threads that it has.
    Counted(Vec<Counter>),
    /// Its number: the kernel knows the time.
    Timed(u32),
}

/// Where a number of cycles is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The processor's counters.
    Counters,
    /// The time on a processor, times the clock.
    Time,
}

impl Cycles {
    /// Counts from now on.
    #[must_use]
    pub fn of(process: u32) -> Self {
        let counters: Option<Vec<Counter>> = threads(process).into_iter().map(counter).collect();
        match counters {
            Some(counters) if !counters.is_empty() => Self::Counted(counters),
            _ => Self::Timed(process),
        }
    }

    /// Cycles so far.
    pub fn read(&mut self) -> Option<u64> {
        match self {
            Self::Counted(counters) => counters.iter_mut().map(|counter| counter.read().ok()).sum(),
            Self::Timed(process) => of_time(time(*process)),
        }
    }
}

/// Where numbers of cycles are from on this machine.
#[must_use]
pub fn source() -> Source {
    match Cycles::of(std::process::id()) {
        Cycles::Counted(_) => Source::Counters,
        Cycles::Timed(_) => Source::Time,
    }
}

fn threads(process: u32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok()).collect()
}

fn counter(thread: i32) -> Option<Counter> {
    let mut builder = Builder::new(Hardware::CPU_CYCLES);
    builder.observe_pid(thread).any_cpu().include_kernel();
    let mut counter = builder.build().ok()?;
    counter.enable().ok()?;
    Some(counter)
}

/// How long the threads of a process have had a processor; zero where the kernel does not say.
#[must_use]
pub fn time(process: u32) -> Duration {
    let of = |thread: i32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    Duration::from_nanos(threads(process).into_iter().filter_map(of).sum())
}

/// Cycles of a processor that was busy for so long.
#[must_use]
pub fn of_time(time: Duration) -> Option<u64> {
    Some((time.as_secs_f64() * clock()?) as u64)
}

/// Hertz, measured once.
fn clock() -> Option<f64> {
    static CLOCK: OnceLock<Option<f64>> = OnceLock::new();
    let measure = || PROBES.iter().find(|probe| probe.name == "clock").and_then(|probe| (probe.run)().ok());
    *CLOCK.get_or_init(|| measure().map(|sample| sample.median))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_takes_cycles() {
        let mut cycles = Cycles::of(std::process::id());
        let before = cycles.read();
        let sum = std::hint::black_box((0..1_000_000_u64).fold(0, |sum: u64, at| sum.rotate_left(3) ^ at));
        assert!(sum > 0);
        // The kernel may bring the time up to date only when the thread is switched.
        std::thread::sleep(Duration::from_millis(1));
        assert!(cycles.read() > before, "{cycles:?}");
    }
}
