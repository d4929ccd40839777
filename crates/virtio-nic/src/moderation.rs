//! Moderation of interrupts: after an interrupt of a ring, the next one of that ring comes a configured time later, if its driver
//! still has one to get. The first interrupt after a pause is not delayed.

use core::time::Duration;
use units::Time;

/// Least time between two interrupts of a ring, by the ring's direction; zero does not delay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterruptIntervals {
    /// Time after an interrupt of a receive ring.
    pub receive: Duration,
    /// Time after an interrupt of a transmit ring.
    pub transmit: Duration,
}

impl InterruptIntervals {
    /// Returns the interval of a ring, by the transport's ring number.
    pub(crate) fn of(self, ring: u32) -> Duration {
        if ring.is_multiple_of(2) { self.receive } else { self.transmit }
    }

    /// Returns true if no interrupt is delayed.
    pub(crate) fn are_zero(self) -> bool {
        self == Self::default()
    }
}

/// Times of a device's interrupts.
#[derive(Debug, Default)]
pub(crate) struct InterruptTimes {
    /// Time of the last interrupt of each ring; empty before the first one that counts.
    pub(crate) last: alloc::vec::Vec<Time>,
    /// Bit mask of the rings whose interrupt is delayed.
    pub(crate) delayed: u32,
}
