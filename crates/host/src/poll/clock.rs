//! The clock of the live host. Pure crates get time as an argument; this is where it comes from.

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC: never set back, and stopped while the machine sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// Nanoseconds since some moment in the past, the same for every process since the machine started.
    #[inline]
    #[must_use]
    pub fn now_ns(self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        // Neither part is ever negative; 64 bits of nanoseconds are 584 years.
        now.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec.cast_unsigned())
    }
}
