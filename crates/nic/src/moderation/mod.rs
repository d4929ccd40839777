//! Interrupt throttling (EITR). After its message a vector stays silent for its interval, in microseconds. A cause that
//! comes meanwhile fires once at the end of the interval.
//!
//! An urgent frame ends the interval at once (low-latency interrupts, I210 datasheet 7.3.6). With EITR.LLI_EN that takes
//! a credit of the vector. A vector gains one credit in each interval that GPIE sets.

use core::time::Duration;
use i82576::bits::{eitr, gpie};
use i82576::ids::VECTORS;
use i82576::{Time, VectorIndex};
use serde::{Deserialize, Serialize};

/// Throttle of all vectors: the time from which each vector may send its next message, and its credits for urgent
/// frames.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "Throttle")]
pub(crate) struct InterruptThrottle {
    silent_until: [Time; VECTORS],
    credits: [LowLatencyCredits; VECTORS],
}

/// Low-latency credits of a vector: interrupts for urgent frames that ignore the throttle.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename = "Credits")]
struct LowLatencyCredits {
    count: u32,
    /// Time at which the vector gains its next low-latency credit.
    since: Time,
}

impl LowLatencyCredits {
    const NONE: Self = Self { count: 0, since: Time::ZERO };

    /// Returns a vector's low-latency credits at `now`, including the credits gained since `since`.
    fn at(self, eitr: u32, gpie: u32, now: Time) -> Self {
        let interval = Duration::from_micros(gpie::credit_us(gpie).into());
        if eitr & eitr::LLI_EN == 0 || interval.is_zero() {
            return Self { since: now, ..self };
        }
        let came = now.since(self.since).as_nanos() / interval.as_nanos();
        let room = eitr::MOST_CREDITS.saturating_sub(self.count);
        match u32::try_from(came) {
            Ok(came) if came < room => Self { count: self.count + came, since: self.since + interval * came },
            _ => Self { count: eitr::MOST_CREDITS, since: now },
        }
    }
}

impl InterruptThrottle {
    /// Creates a throttle under which every vector may send a message at once.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self { silent_until: [Time::ZERO; VECTORS], credits: [LowLatencyCredits::NONE; VECTORS] }
    }

    /// Returns the time from which the vector may send its next message.
    #[must_use]
    pub(crate) fn silent_until(&self, vector: VectorIndex) -> Time {
        self.silent_until[vector.index()]
    }

    /// Starts the throttling interval of `eitr` after a vector's message.
    pub(crate) fn fired(&mut self, vector: VectorIndex, eitr: u32, now: Time) {
        self.silent_until[vector.index()] = now + Duration::from_micros(u64::from(eitr::interval_us(eitr)));
    }

    /// Applies a write of the throttle register EITR: unless CNT_IGNR is set, the written counter and credits replace
    /// the current ones.
    pub(crate) fn written(&mut self, vector: VectorIndex, value: u32, now: Time) {
        if value & eitr::CNT_IGNR == 0 {
            let counter = u64::from((value >> eitr::COUNTER_SHIFT) & eitr::COUNTER_END);
            let micros = counter * u64::from(eitr::COUNTER_STEP_US);
            self.silent_until[vector.index()] = now + Duration::from_micros(micros);
            let count = value >> eitr::CREDITS_SHIFT & eitr::MOST_CREDITS;
            self.credits[vector.index()] = LowLatencyCredits { count, since: now };
        }
    }

    /// Ends the vector's throttling interval for an urgent frame. With EITR.LLI_EN this uses up one low-latency credit;
    /// without a credit the interval stays.
    pub(crate) fn hurry(&mut self, vector: VectorIndex, eitr: u32, gpie: u32, now: Time) {
        let silent_until = &mut self.silent_until[vector.index()];
        if *silent_until <= now {
            return;
        }
        if eitr & eitr::LLI_EN != 0 {
            let credits = &mut self.credits[vector.index()];
            *credits = credits.at(eitr, gpie, now);
            let Some(left) = credits.count.checked_sub(1) else { return };
            credits.count = left;
        }
        *silent_until = now;
    }

    /// Returns the throttle register EITR as it reads now: the stored `eitr` with the current counter and credits.
    #[must_use]
    pub(crate) fn shown(&self, vector: VectorIndex, eitr: u32, gpie: u32, now: Time) -> u32 {
        let credits = self.credits[vector.index()].at(eitr, gpie, now).count;
        let stored = eitr & !(eitr::MOST_CREDITS << eitr::CREDITS_SHIFT);
        stored | credits << eitr::CREDITS_SHIFT | self.counter(vector, now)
    }

    /// Returns the counter field of the throttle register EITR with its current value.
    #[must_use]
    fn counter(&self, vector: VectorIndex, now: Time) -> u32 {
        let left = self.silent_until(vector).since(now).as_micros() as u64;
        let steps = left / u64::from(eitr::COUNTER_STEP_US);
        (steps.min(eitr::COUNTER_END.into()) as u32) << eitr::COUNTER_SHIFT
    }

    /// Ends the vector's interval and clears its credits, when its function is reset.
    pub(crate) fn reset(&mut self, vector: VectorIndex) {
        self.silent_until[vector.index()] = Time::ZERO;
        self.credits[vector.index()] = LowLatencyCredits::NONE;
    }
}

impl Default for InterruptThrottle {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::InterruptThrottle;
    use i82576::bits::eitr;
    use i82576::{Time, VectorIndex};

    #[test]
    fn vector_sends_no_second_interrupt_within_its_eitr_interval() {
        let (mut throttle, vector) = (InterruptThrottle::new(), VectorIndex::new(22).unwrap());
        throttle.fired(vector, 125 << 2, Time::from_micros(10));
        assert_eq!(throttle.silent_until(vector), Time::from_micros(135));
    }

    #[test]
    fn eitr_write_sets_the_throttle_counter_unless_cnt_ignr() {
        let (mut throttle, vector) = (InterruptThrottle::new(), VectorIndex::new(1).unwrap());
        throttle.fired(vector, 1000 << 2, Time::ZERO);
        throttle.written(vector, 8 << 2 | eitr::CNT_IGNR, Time::from_micros(1));
        assert_eq!(throttle.silent_until(vector), Time::from_micros(1000));
        assert_eq!(throttle.counter(vector, Time::from_micros(600)) >> eitr::COUNTER_SHIFT, 100);
        throttle.written(vector, 8 << 2, Time::from_micros(1));
        assert_eq!(throttle.silent_until(vector), Time::from_micros(1));
    }
}
