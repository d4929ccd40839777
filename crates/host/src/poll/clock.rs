//! Monotonic clock of the live host. Crates without system calls get its time as an argument.

use rustix::time::{ClockId, clock_gettime};

/// Monotonic clock (CLOCK_MONOTONIC): never set back, and stopped while the machine sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl MonotonicClock {
    /// Returns nanoseconds since a fixed moment, the same for all processes until the machine restarts.
    #[inline]
    #[must_use]
    pub fn now_ns(self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        // Neither part is ever negative; 64 bits of nanoseconds are 584 years.
        now.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec.cast_unsigned())
    }
}
