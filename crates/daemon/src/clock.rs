//! Clock of the live host. A port's loop reads the clock and passes the time on as an argument, so that tests can
//! advance the time by hand. Recordings use wall-clock time instead (`pcapng`).

use i82576::Time;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Monotonic clock of a host or of a test.
pub(crate) trait TimeSource: fmt::Debug {
    /// Returns the present time on this clock.
    fn now(&self) -> Time;

    /// Returns the time for which the kernel blocks in a wait of at most `time`. A simulation moves its own clock instead, and does
    /// not block.
    fn blocking_time(&self, time: Option<Duration>) -> Option<Duration> {
        time
    }
}

/// Clock that the threads of a host share.
pub(crate) type SharedClock = Arc<dyn TimeSource + Send + Sync>;

/// Clock of the live host (CLOCK_MONOTONIC). All processes see the same time until the machine reboots.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HostClock;

impl TimeSource for HostClock {
    fn now(&self) -> Time {
        Time::from_nanos(host::poll::MonotonicClock.now_ns())
    }
}

/// Returns the present time on the host's clock, for threads that receive no time as an argument.
pub(crate) fn now() -> Time {
    HostClock.now()
}
