//! A bound on what others can make the host log. Left out: what to log.

use i82576::Time;
use std::time::Duration;

/// So many events a minute; what comes beyond is counted.
#[derive(Debug)]
pub(crate) struct Limit {
    most: u32,
    used: u32,
    suppressed: u64,
    window: Time,
}

const MINUTE: Duration = Duration::from_secs(60);

impl Limit {
    pub(crate) fn per_minute(most: u32) -> Self {
        Self { most, used: 0, suppressed: 0, window: Time::ZERO }
    }

    /// Whether this event may be logged; if so, how many were kept back before it.
    pub(crate) fn allow(&mut self, now: Time) -> Option<u64> {
        if now.since(self.window) >= MINUTE {
            (self.window, self.used) = (now, 0);
        }
        if self.used == self.most {
            self.suppressed += 1;
            return None;
        }
        self.used += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::Limit;
    use i82576::Time;

    #[test]
    fn what_is_kept_back_is_told_later() {
        let mut limit = Limit::per_minute(2);
        let second = |s: u64| Time::from_micros(s * 1_000_000);
        assert_eq!((limit.allow(second(100)), limit.allow(second(101))), (Some(0), Some(0)));
        assert_eq!((limit.allow(second(102)), limit.allow(second(103))), (None, None));
        assert_eq!(limit.allow(second(161)), Some(2));
    }
}
