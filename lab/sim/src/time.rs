//! Virtual time in whole picoseconds: instants and spans. [`crate::Frequency`] converts instants to cycles.
//!
//! A `u64` of picoseconds lasts for 213 days. Sums saturate at the end of time instead of wrapping.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

const PICOS_PER_NANO: u64 = 1_000;
const PICOS_PER_MICRO: u64 = 1_000_000;
const PICOS_PER_MILLI: u64 = 1_000_000_000;
/// Picoseconds in a second.
pub const PICOS_PER_SECOND: u64 = 1_000_000_000_000;

/// Instant of virtual time, in picoseconds since time zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualInstant(u64);

/// Length of an interval of virtual time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualDuration(u64);

impl VirtualInstant {
    /// Time zero of the simulation, at which every simulation starts.
    pub const ZERO: VirtualInstant = VirtualInstant(0);
    /// Instant later than every event of a simulation.
    pub const NEVER: VirtualInstant = VirtualInstant(u64::MAX);

    /// Creates the instant `picos` picoseconds after time zero.
    pub const fn from_picos(picos: u64) -> VirtualInstant {
        VirtualInstant(picos)
    }

    /// Creates the instant `nanos` nanoseconds after time zero.
    pub const fn from_nanos(nanos: u64) -> VirtualInstant {
        VirtualInstant(nanos.saturating_mul(PICOS_PER_NANO))
    }

    /// Returns the picoseconds since time zero.
    pub const fn picos(self) -> u64 {
        self.0
    }

    /// Returns the whole nanoseconds since time zero.
    pub const fn nanos(self) -> u64 {
        self.0 / PICOS_PER_NANO
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    pub const fn since(self, earlier: VirtualInstant) -> VirtualDuration {
        VirtualDuration(self.0.saturating_sub(earlier.0))
    }
}

impl VirtualDuration {
    /// Duration of zero length in virtual time.
    pub const ZERO: VirtualDuration = VirtualDuration(0);

    /// Creates a duration of virtual time from picoseconds.
    pub const fn from_picos(picos: u64) -> VirtualDuration {
        VirtualDuration(picos)
    }

    /// Creates a duration of virtual time from nanoseconds.
    pub const fn from_nanos(nanos: u64) -> VirtualDuration {
        VirtualDuration(nanos.saturating_mul(PICOS_PER_NANO))
    }

    /// Creates a duration of virtual time from microseconds.
    pub const fn from_micros(micros: u64) -> VirtualDuration {
        VirtualDuration(micros.saturating_mul(PICOS_PER_MICRO))
    }

    /// Creates a duration of virtual time from milliseconds.
    pub const fn from_millis(millis: u64) -> VirtualDuration {
        VirtualDuration(millis.saturating_mul(PICOS_PER_MILLI))
    }

    /// Creates a duration of virtual time from seconds.
    pub const fn from_secs(secs: u64) -> VirtualDuration {
        VirtualDuration(secs.saturating_mul(PICOS_PER_SECOND))
    }

    /// Returns the period of a frequency in hertz, rounded down; the longest duration for 0 Hz.
    pub const fn period(hertz: u64) -> VirtualDuration {
        match PICOS_PER_SECOND.checked_div(hertz) {
            Some(picos) => VirtualDuration(picos),
            None => VirtualDuration(u64::MAX),
        }
    }

    /// Returns the time to send `bits` at `bits_per_second`, rounded up; the longest duration for a speed of 0.
    ///
    /// Rounding adds less than a picosecond per frame, one part in 10^7 of a full gigabit frame. A sender of
    /// back-to-back frames that needs more sums the bits before it converts them.
    pub const fn of_bits(bits: u64, bits_per_second: u64) -> VirtualDuration {
        if bits_per_second == 0 {
            return VirtualDuration(u64::MAX);
        }
        match bits.checked_mul(PICOS_PER_SECOND) {
            Some(product) => VirtualDuration(product.div_ceil(bits_per_second)),
            None => {
                let wide = (bits as u128 * PICOS_PER_SECOND as u128).div_ceil(bits_per_second as u128);
                VirtualDuration(if wide > u64::MAX as u128 { u64::MAX } else { wide as u64 })
            }
        }
    }

    /// Returns the duration in picoseconds.
    pub const fn picos(self) -> u64 {
        self.0
    }

    /// Returns the duration in whole nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0 / PICOS_PER_NANO
    }

    /// Returns the duration in seconds, for reports only: floating point must not decide the order of events.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PICOS_PER_SECOND as f64
    }

    /// Returns the duration multiplied by `times`, at most the longest duration.
    pub const fn times(self, times: u64) -> VirtualDuration {
        VirtualDuration(self.0.saturating_mul(times))
    }
}

impl Add<VirtualDuration> for VirtualInstant {
    type Output = VirtualInstant;

    fn add(self, span: VirtualDuration) -> VirtualInstant {
        VirtualInstant(self.0.saturating_add(span.0))
    }
}

impl AddAssign<VirtualDuration> for VirtualInstant {
    fn add_assign(&mut self, span: VirtualDuration) {
        *self = *self + span;
    }
}

impl Sub for VirtualInstant {
    type Output = VirtualDuration;

    fn sub(self, earlier: VirtualInstant) -> VirtualDuration {
        self.since(earlier)
    }
}

impl Add for VirtualDuration {
    type Output = VirtualDuration;

    fn add(self, other: VirtualDuration) -> VirtualDuration {
        VirtualDuration(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for VirtualInstant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        VirtualDuration(self.0).fmt(formatter)
    }
}

impl fmt::Display for VirtualDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:06} us", self.0 / PICOS_PER_MICRO, self.0 % PICOS_PER_MICRO)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn full_ethernet_frame_takes_12304_ns_at_one_gigabit_a_second() {
        assert_eq!(VirtualDuration::of_bits(1_538 * 8, 1_000_000_000), VirtualDuration::from_nanos(12_304));
        assert_eq!(
            VirtualDuration::from_secs(1).picos()
                / VirtualDuration::of_bits(1_538 * 8, 1_000_000_000).picos(),
            81_274
        );
    }

    #[test]
    fn frame_send_time_at_zero_speed_is_the_longest_duration() {
        assert_eq!(VirtualDuration::of_bits(u64::MAX, u64::MAX), VirtualDuration::from_secs(1));
        assert_eq!(VirtualDuration::of_bits(1, 0), VirtualDuration::from_picos(u64::MAX));
        assert_eq!(VirtualDuration::period(0), VirtualDuration::from_picos(u64::MAX));
    }

    #[test]
    fn simulated_time_saturates_at_both_ends() {
        assert_eq!(VirtualInstant::NEVER + VirtualDuration::from_secs(1), VirtualInstant::NEVER);
        assert_eq!(VirtualInstant::ZERO - VirtualInstant::from_nanos(1), VirtualDuration::ZERO);
    }

    #[test]
    fn simulated_time_is_formatted_as_microseconds() {
        assert_eq!(VirtualInstant::from_picos(1_500_000_007).to_string(), "1500.000007 us");
    }
}
