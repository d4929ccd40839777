//! Calls to drivers that have to start anew, since the card is a new one. A driver is told by a message in its mailbox, and for
//! as long as it has not set up the vector for it, by every vector it has: a driver that is called for nothing looks around,
//! and finds that its VF was reset.

use i82576::Time;
use std::time::Duration;

/// Calls a driver that has to start anew: at once, and then ever less often until it does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kick {
    next: Time,
    wait: Duration,
}

const FIRST_KICK: Duration = Duration::from_millis(5);
const LAST_KICK: Duration = Duration::from_secs(3);

impl Kick {
    pub(super) fn new(now: Time) -> Self {
        Self { next: now, wait: FIRST_KICK }
    }

    /// Returns when the next call is due.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Returns whether it is time for a call; `None` if there were enough.
    pub(super) fn due(&mut self, now: Time) -> Option<bool> {
        if now < self.next {
            return Some(false);
        }
        self.next = now + self.wait;
        self.wait *= 2;
        (self.wait <= LAST_KICK).then_some(true)
    }
}
