//! Interrupt throttling (EITR): after a vector fires it stays silent for its interval, in microseconds, and a
//! cause that comes meanwhile fires once at the end of it. Left out: low-latency interrupts.

use core::time::Duration;
use i82576::bits::eitr;
use i82576::ids::VECTORS;
use i82576::{Time, Vector};

/// When each vector may fire next.
#[derive(Debug, Clone)]
pub struct Throttle {
    silent_until: [Time; VECTORS],
}

impl Throttle {
    /// No vector is throttled.
    #[must_use]
    pub fn new() -> Self {
        Self { silent_until: [Time::ZERO; VECTORS] }
    }

    /// The moment from which the vector may fire.
    #[must_use]
    pub fn silent_until(&self, vector: Vector) -> Time {
        self.silent_until[vector.index()]
    }

    /// The vector has fired under the given EITR.
    pub fn fired(&mut self, vector: Vector, eitr: u32, now: Time) {
        self.silent_until[vector.index()] = now + Duration::from_micros(u64::from(eitr::interval_us(eitr)));
    }

    /// EITR was written: unless told to leave the counter, it now runs down from the value written.
    pub fn written(&mut self, vector: Vector, value: u32, now: Time) {
        if value & eitr::CNT_IGNR == 0 {
            let counter = u64::from((value >> eitr::COUNTER_SHIFT) & eitr::COUNTER_END);
            let micros = counter * u64::from(eitr::COUNTER_STEP_US);
            self.silent_until[vector.index()] = now + Duration::from_micros(micros);
        }
    }

    /// The counter field of EITR as it reads now.
    #[must_use]
    pub fn counter(&self, vector: Vector, now: Time) -> u32 {
        let left = self.silent_until(vector).since(now).as_micros() as u64;
        let steps = left / u64::from(eitr::COUNTER_STEP_US);
        (steps.min(eitr::COUNTER_END.into()) as u32) << eitr::COUNTER_SHIFT
    }

    /// Forgets what the vector was waiting for.
    pub fn reset(&mut self, vector: Vector) {
        self.silent_until[vector.index()] = Time::ZERO;
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::Throttle;
    use i82576::bits::eitr;
    use i82576::{Time, Vector};

    #[test]
    fn a_vector_is_silent_for_its_interval_after_it_fired() {
        let (mut throttle, vector) = (Throttle::new(), Vector::new(22).unwrap());
        throttle.fired(vector, 125 << 2, Time::from_micros(10));
        assert_eq!(throttle.silent_until(vector), Time::from_micros(135));
    }

    #[test]
    fn a_write_restarts_the_counter_unless_it_says_to_ignore_it() {
        let (mut throttle, vector) = (Throttle::new(), Vector::new(1).unwrap());
        throttle.fired(vector, 1000 << 2, Time::ZERO);
        throttle.written(vector, 8 << 2 | eitr::CNT_IGNR, Time::from_micros(1));
        assert_eq!(throttle.silent_until(vector), Time::from_micros(1000));
        assert_eq!(throttle.counter(vector, Time::from_micros(600)) >> eitr::COUNTER_SHIFT, 100);
        throttle.written(vector, 8 << 2, Time::from_micros(1));
        assert_eq!(throttle.silent_until(vector), Time::from_micros(1));
    }
}
