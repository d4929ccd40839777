//! Virtual time in whole picoseconds: points of it and lengths of it. Left out: clocks (nothing here ticks) and
//! cycles, which [`crate::Frequency`] converts.
//!
//! A `u64` of picoseconds lasts for 213 days. Sums stop at the end of time rather than wrap round to its
//! beginning.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

const PICOS_PER_NANO: u64 = 1_000;
const PICOS_PER_MICRO: u64 = 1_000_000;
const PICOS_PER_MILLI: u64 = 1_000_000_000;
/// Picoseconds in a second.
pub const PICOS_PER_SECOND: u64 = 1_000_000_000_000;

/// A point of virtual time, in picoseconds since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A length of virtual time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Instant {
    /// The beginning.
    pub const ZERO: Instant = Instant(0);
    /// The end of time: later than everything that happens.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// `picos` picoseconds after the beginning.
    pub const fn from_picos(picos: u64) -> Instant {
        Instant(picos)
    }

    /// `nanos` nanoseconds after the beginning.
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos.saturating_mul(PICOS_PER_NANO))
    }

    /// Picoseconds since the beginning.
    pub const fn picos(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds since the beginning.
    pub const fn nanos(self) -> u64 {
        self.0 / PICOS_PER_NANO
    }

    /// How long after `earlier`; nothing if it is not after it.
    pub const fn since(self, earlier: Instant) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// `picos` picoseconds.
    pub const fn from_picos(picos: u64) -> Span {
        Span(picos)
    }

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Span {
        Span(nanos.saturating_mul(PICOS_PER_NANO))
    }

    /// `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Span {
        Span(micros.saturating_mul(PICOS_PER_MICRO))
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(PICOS_PER_MILLI))
    }

    /// `secs` seconds.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(PICOS_PER_SECOND))
    }

    /// The period of something that happens `hertz` times a second, rounded down; for ever if it never does.
    pub const fn period(hertz: u64) -> Span {
        match PICOS_PER_SECOND.checked_div(hertz) {
            Some(picos) => Span(picos),
            None => Span(u64::MAX),
        }
    }

    /// How long `bits` take at `bits_per_second`, rounded up; for ever at no speed.
    ///
    /// A picosecond too much a frame is 10 parts in a million million at a gigabit: whoever sends back to back
    /// and cares keeps the total.
    pub const fn of_bits(bits: u64, bits_per_second: u64) -> Span {
        if bits_per_second == 0 {
            return Span(u64::MAX);
        }
        match bits.checked_mul(PICOS_PER_SECOND) {
            Some(product) => Span(product.div_ceil(bits_per_second)),
            None => {
                let wide = (bits as u128 * PICOS_PER_SECOND as u128).div_ceil(bits_per_second as u128);
                Span(if wide > u64::MAX as u128 { u64::MAX } else { wide as u64 })
            }
        }
    }

    /// Picoseconds.
    pub const fn picos(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0 / PICOS_PER_NANO
    }

    /// Seconds, for reports only: nothing that decides an order may depend on it.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PICOS_PER_SECOND as f64
    }

    /// This span `times` times.
    pub const fn times(self, times: u64) -> Span {
        Span(self.0.saturating_mul(times))
    }
}

impl Add<Span> for Instant {
    type Output = Instant;

    fn add(self, span: Span) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub for Instant {
    type Output = Span;

    fn sub(self, earlier: Instant) -> Span {
        self.since(earlier)
    }
}

impl Add for Span {
    type Output = Span;

    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(formatter)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:06} us", self.0 / PICOS_PER_MICRO, self.0 % PICOS_PER_MICRO)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn a_full_frame_takes_12304_nanoseconds_of_a_gigabit_wire() {
        assert_eq!(Span::of_bits(1_538 * 8, 1_000_000_000), Span::from_nanos(12_304));
        assert_eq!(Span::from_secs(1).picos() / Span::of_bits(1_538 * 8, 1_000_000_000).picos(), 81_274);
    }

    #[test]
    fn many_bits_and_no_speed_are_answered() {
        assert_eq!(Span::of_bits(u64::MAX, u64::MAX), Span::from_secs(1));
        assert_eq!(Span::of_bits(1, 0), Span::from_picos(u64::MAX));
        assert_eq!(Span::period(0), Span::from_picos(u64::MAX));
    }

    #[test]
    fn time_ends_and_does_not_wrap() {
        assert_eq!(Instant::NEVER + Span::from_secs(1), Instant::NEVER);
        assert_eq!(Instant::ZERO - Instant::from_nanos(1), Span::ZERO);
    }

    #[test]
    fn time_reads_as_microseconds() {
        assert_eq!(Instant::from_picos(1_500_000_007).to_string(), "1500.000007 us");
    }
}
