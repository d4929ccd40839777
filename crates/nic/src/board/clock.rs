//! The clock that IEEE 1588 software reads (SYSTIM): it adds what TIMINCA says every so many 16 ns, and stands
//! still until TIMINCA is set. It is the caller's time; the card has none. Left out: stamps of packets (`stamps`).

use i82576::Time;
use serde::{Deserialize, Serialize};

/// Nanoseconds of TIMINCA's unit.
const UNIT: u64 = 16;

/// SYSTIM, and what reading its low half has kept of the high one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Clock {
    /// The count at `since`.
    base: u64,
    since: Time,
    increment: u32,
    high: u32,
}

impl Clock {
    /// SYSTIM at a moment.
    pub(crate) fn at(&self, now: Time) -> u64 {
        let period = UNIT * u64::from(self.increment >> 24);
        let passed = now.since(self.since).as_nanos() as u64;
        let steps = passed.checked_div(period).unwrap_or(0);
        self.base.wrapping_add(steps.wrapping_mul(u64::from(self.increment & 0x00ff_ffff)))
    }

    /// SYSTIML: the high half of this moment is kept for SYSTIMH.
    pub(crate) fn low(&mut self, now: Time) -> u32 {
        let count = self.at(now);
        self.high = (count >> 32) as u32;
        count as u32
    }

    /// SYSTIMH, of the moment when SYSTIML was read.
    pub(crate) fn high(&self) -> u32 {
        self.high
    }

    /// SYSTIML was written.
    pub(crate) fn set_low(&mut self, value: u32, now: Time) {
        self.set(self.at(now) >> 32 << 32 | u64::from(value), now);
    }

    /// SYSTIMH was written.
    pub(crate) fn set_high(&mut self, value: u32, now: Time) {
        self.set(self.at(now) & 0xffff_ffff | u64::from(value) << 32, now);
    }

    /// TIMINCA was written: from now on the clock runs at this rate.
    pub(crate) fn set_increment(&mut self, value: u32, now: Time) {
        self.set(self.at(now), now);
        self.increment = value;
    }

    /// TIMADJ was written: its 63 bits are added, or subtracted if the sign says so.
    pub(crate) fn adjust(&mut self, low: u32, high: u32, now: Time) {
        let amount = u64::from(low) | u64::from(high & 0x7fff_ffff) << 32;
        let count = self.at(now);
        let negative = high >> 31 != 0;
        self.set(if negative { count.wrapping_sub(amount) } else { count.wrapping_add(amount) }, now);
    }

    fn set(&mut self, count: u64, now: Time) {
        (self.base, self.since) = (count, now);
        self.high = (count >> 32) as u32;
    }
}

/// FRTIMER: microseconds in 9:0, milliseconds in 19:10, seconds above.
pub(crate) fn free_running(now: Time) -> u32 {
    let us = now.as_nanos() / 1000;
    let (ms, seconds) = (us / 1000, us / 1_000_000);
    (us % 1000) as u32 | ((ms % 1000) as u32) << 10 | (seconds as u32) << 20
}
