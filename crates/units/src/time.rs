//! Time, which callers pass as an argument: the crates that the host uses read no clock.

use core::ops::{Add, Sub};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// Time in nanoseconds since a start that the caller defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Time(u64);

impl Time {
    /// Start from which times count: 0 ns.
    pub const ZERO: Time = Time(0);

    /// Returns the time `ns` nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns the time `us` microseconds after the start.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// Returns the number of nanoseconds since the start from which times count.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the microseconds since the start, rounded down.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the duration since `earlier`, or zero if `earlier` is the later time.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, rhs: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Time {
    type Output = Duration;
    fn sub(self, rhs: Time) -> Duration {
        self.since(rhs)
    }
}
