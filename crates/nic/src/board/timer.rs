//! The TCP timer (TCPTIMER): counts down milliseconds and interrupts at the end (I210 datasheet 7.3.7). `interrupt`
//! chooses the vector.

use core::time::Duration;
use i82576::Time;
use i82576::bits::tcptimer as bits;
use serde::{Deserialize, Serialize};

/// Countdown of the TCP timer: stopped or running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TcpTimer {
    /// The TCP timer is stopped with this time left. A timer with no time left stays stopped until KICK_START.
    Still(Duration),
    /// The TCP timer runs and ends at this time.
    Ends(Time),
}

impl TcpTimer {
    /// Applies a write of the TCP timer's register (TCPTIMER). Returns true if the write itself interrupts (FINISH).
    pub(crate) fn written(&mut self, value: u32, now: Time) -> bool {
        let finish = value & bits::FINISH != 0;
        let mut left = match *self {
            _ if finish => Duration::ZERO,
            Self::Still(left) => left,
            Self::Ends(end) => end.since(now),
        };
        if value & bits::KICK_START != 0 || finish && value & bits::LOOP != 0 {
            left = duration(value);
        }
        let goes = value & bits::COUNT_EN != 0 && !left.is_zero();
        *self = if goes { Self::Ends(now + left) } else { Self::Still(left) };
        finish
    }

    /// Advances the TCP timer to `now`. Returns true if the count ended at least once since the last call: a looping
    /// count that ended several times makes one interrupt.
    pub(crate) fn pass(&mut self, register: u32, now: Time) -> bool {
        let Self::Ends(end) = *self else { return false };
        if end > now {
            return false;
        }
        let period = duration(register);
        *self = match now.since(end).as_nanos().checked_rem(period.as_nanos()) {
            Some(into) if register & bits::LOOP != 0 => {
                Self::Ends(now + (period - Duration::from_nanos(into as u64)))
            }
            _ => Self::Still(Duration::ZERO),
        };
        true
    }

    /// Returns the time at which the TCP timer's count ends, or `None` while the timer is stopped.
    pub(crate) fn end(&self) -> Option<Time> {
        match *self {
            Self::Still(_) => None,
            Self::Ends(end) => Some(end),
        }
    }
}

impl Default for TcpTimer {
    fn default() -> Self {
        Self::Still(Duration::ZERO)
    }
}

fn duration(register: u32) -> Duration {
    Duration::from_millis((register & bits::DURATION).into())
}
