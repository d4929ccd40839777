//! Clock of a simulation. A wait of the port moves it instead of blocking.

use crate::clock::TimeSource;
use crate::port::moments::death;
use i82576::Time;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longest time between two readings of the clock, in ns. A port that polls memory finds nothing new: the guests wait meanwhile.
const TICK_NS: u64 = 1_000;

/// Clock of the simulation. Each reading by the port is a moment at which the port may die.
#[derive(Debug, Default)]
pub(super) struct SimulatedClock {
    now_ns: AtomicU64,
}

impl SimulatedClock {
    pub(super) fn time(&self) -> Time {
        Time::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }

    pub(super) fn advance(&self, time: Duration) {
        self.now_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl TimeSource for SimulatedClock {
    fn now(&self) -> Time {
        death::pass();
        self.now_ns.fetch_add(TICK_NS, Ordering::Relaxed);
        self.time()
    }

    fn blocking_time(&self, time: Option<Duration>) -> Option<Duration> {
        self.advance(time.expect("a step of the simulation bounds each wait"));
        Some(Duration::ZERO)
    }
}
