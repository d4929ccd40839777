//! The cycles that a process takes, the kernel's in its name among them, from the processor's own counters. Left out:
//! machines that have none; there is no number then.

use perf_event::events::Hardware;
use perf_event::{Builder, Counter};
use std::fs;

/// Counters of all threads that a process has.
#[derive(Debug)]
pub struct Cycles(Vec<Counter>);

impl Cycles {
    /// Counts from now on, if the machine can and lets us.
    #[must_use]
    pub fn of(process: u32) -> Option<Self> {
        let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
        let counters: Option<Vec<Counter>> =
            threads.map(|thread| counter(thread.ok()?.file_name().to_str()?.parse().ok()?)).collect();
        counters.filter(|counters| !counters.is_empty()).map(Self)
    }

    /// Cycles so far.
    pub fn read(&mut self) -> Option<u64> {
        self.0.iter_mut().map(|counter| counter.read().ok()).sum()
    }
}

fn counter(thread: i32) -> Option<Counter> {
    let mut builder = Builder::new(Hardware::CPU_CYCLES);
    builder.observe_pid(thread).any_cpu().include_kernel();
    let mut counter = builder.build().ok()?;
    counter.enable().ok()?;
    Some(counter)
}
