//! Interrupts to guests' drivers that have to restart, because a new card has replaced the card that they had set up. A
//! message in the driver's mailbox notifies the driver. A driver without an interrupt vector for the mailbox gets an
//! interrupt on every vector that it has: on any interrupt such a driver checks its registers, and finds that its VF
//! was reset.

use i82576::Time;
use std::time::Duration;

/// Schedule of the interrupts to a guest's driver that has to restart: at once, and then at doubling intervals.
#[derive(Debug, Clone, Copy)]
pub(super) struct DriverRestartNoticeSchedule {
    next: Time,
    wait: Duration,
}

/// Intervals between interrupts to a driver that has to restart: the first, and the bound at which the interrupts end.
const FIRST_INTERVAL: Duration = Duration::from_millis(5);
const LAST_INTERVAL: Duration = Duration::from_secs(3);

impl DriverRestartNoticeSchedule {
    pub(super) fn new(now: Time) -> Self {
        Self { next: now, wait: FIRST_INTERVAL }
    }

    /// Returns the time of the next interrupt to the restarting driver.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Returns true if an interrupt to the restarting driver is due, or `None` after the last interrupt.
    pub(super) fn due(&mut self, now: Time) -> Option<bool> {
        if now < self.next {
            return Some(false);
        }
        self.next = now + self.wait;
        self.wait *= 2;
        (self.wait <= LAST_INTERVAL).then_some(true)
    }
}
