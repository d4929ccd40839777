//! The TCP timer (TCPTIMER): counts down milliseconds and interrupts at the end (datasheet of the I210, 7.3.7). Left
//! out: which interrupt that is.

use core::time::Duration;
use i82576::Time;
use i82576::bits::tcptimer as bits;
use serde::{Deserialize, Serialize};

/// What the register does not store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TcpTimer {
    /// It stands still with so much left; with nothing left until it is started again.
    Still(Duration),
    /// It ends at this moment.
    Ends(Time),
}

impl TcpTimer {
    /// TCPTIMER was written; answers whether that interrupts.
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

    /// Time has passed under a TCPTIMER; answers whether the count came to its end, once however often it did.
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

    /// When it ends, if it runs.
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
