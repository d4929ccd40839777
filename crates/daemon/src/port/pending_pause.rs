//! Pause that waits for blocking calls of front ends, and for room in their sockets. `pause` carries it out.

use i82576::Time;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Longest time that a pause waits for front ends. One whose blocking call takes longer, or whose socket has no room for a
/// reply, has to connect again.
const FRONT_END_TIMEOUT: Duration = Duration::from_millis(20);

/// Pause that waits for front ends. The port handles no message meanwhile.
#[derive(Debug)]
pub(super) struct PendingPause {
    /// Time that the paused port waits for its successor.
    pub(super) time: Duration,
    pub(super) answer: Sender<bool>,
    /// Time at which the port pauses at the latest.
    deadline: Time,
}

impl PendingPause {
    /// Creates a pause that begins at `now` and waits up to `time` for the successor.
    pub(super) fn new(time: Duration, answer: Sender<bool>, now: Time) -> Self {
        Self { time, answer, deadline: now + FRONT_END_TIMEOUT }
    }

    /// Returns true if the port may still wait for front ends.
    pub(super) fn may_wait(&self, now: Time) -> bool {
        now < self.deadline
    }

    /// Returns how long the port sleeps at most, if it would sleep for `timeout` without the pause.
    pub(super) fn limit(&self, timeout: Option<Duration>, now: Time) -> Duration {
        let left = self.deadline.since(now);
        timeout.map_or(left, |timeout| timeout.min(left))
    }
}
