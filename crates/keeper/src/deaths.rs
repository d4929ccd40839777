//! Recent deaths of hosts, which delay the start of the next host.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of hosts that die within [`PERIOD`] before the keeper process delays the next start. Each delay is twice the
/// previous one, up to the longest. QEMU abandons its device after five seconds without a reply, so the longest delay
/// leaves time for the start itself.
const DEATHS: usize = 5;
pub(crate) const PERIOD: Duration = Duration::from_secs(60);
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Times of the deaths of hosts within [`PERIOD`].
#[derive(Debug, Default)]
pub(crate) struct RecentDeaths(VecDeque<Instant>);

impl RecentDeaths {
    /// Adds the death of a host.
    pub(crate) fn add(&mut self, now: Instant) {
        self.0.push_back(now);
    }

    /// Returns the number of recent deaths.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Forgets old deaths. Returns the delay of the next start, or `None` if few hosts have died.
    pub(crate) fn pause(&mut self, now: Instant) -> Option<Duration> {
        while self.0.front().is_some_and(|death| now.saturating_duration_since(*death) > PERIOD) {
            self.0.pop_front();
        }
        let excess = self.0.len().checked_sub(DEATHS)?;
        Some((FIRST_WAIT * (1 << excess.min(8))).min(LONGEST_WAIT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_grows_with_recent_deaths_only() {
        let (mut deaths, start) = (RecentDeaths::default(), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..8 {
            deaths.add(start);
            pauses.push(deaths.pause(start).map(|pause| pause.as_millis()));
        }
        assert_eq!(pauses, [None, None, None, None, Some(250), Some(500), Some(1000), Some(1000)]);
        assert_eq!(deaths.pause(start + PERIOD + Duration::from_millis(1)), None);
    }
}
