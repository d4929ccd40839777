//! The clock of the live host. A port's loop reads it and passes the time on as an argument, so that a test can move the
//! time by hand. Left out: wall-clock time, which recordings have (`pcapng`).

use i82576::Time;

/// A monotonic clock.
pub(crate) trait Clock {
    /// Returns the time now.
    fn now(&self) -> Time;
}

/// The host's CLOCK_MONOTONIC, which is the same for every process until the machine starts anew.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HostClock;

impl Clock for HostClock {
    fn now(&self) -> Time {
        Time::from_nanos(host::poll::Clock.now_ns())
    }
}

/// Returns the time now on the host's clock, for threads that have no loop to pass it on.
pub(crate) fn now() -> Time {
    HostClock.now()
}
