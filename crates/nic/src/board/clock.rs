//! The clock of IEEE 1588 software (SYSTIM). TIMINCA sets its increment (bits 23:0) and its period in units of 16 ns
//! (bits 31:24); the clock stands still until TIMINCA is written. Time comes from the caller, since the card has no clock
//! of its own. `stamps` stamps packets with SYSTIM.

use i82576::Time;
use serde::{Deserialize, Serialize};

/// Unit of TIMINCA's period in nanoseconds.
const UNIT: u64 = 16;

/// IEEE 1588 clock of the card (SYSTIM), with the high half of its count when software last read the low half.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename = "Clock")]
pub(crate) struct SystimClock {
    /// Count of the clock (SYSTIM) at the time `since`.
    base: u64,
    since: Time,
    increment: u32,
    high: u32,
}

impl SystimClock {
    /// Returns the count of the clock (SYSTIM) at a time.
    pub(crate) fn at(&self, now: Time) -> u64 {
        let period = UNIT * u64::from(self.increment >> 24);
        let passed = now.since(self.since).as_nanos() as u64;
        let steps = passed.checked_div(period).unwrap_or(0);
        self.base.wrapping_add(steps.wrapping_mul(u64::from(self.increment & 0x00ff_ffff)))
    }

    /// Returns the low half of the clock (SYSTIML), and keeps the high half of this moment for SYSTIMH: two reads give
    /// one consistent count.
    pub(crate) fn low(&mut self, now: Time) -> u32 {
        let count = self.at(now);
        self.high = (count >> 32) as u32;
        count as u32
    }

    /// Returns the high half of the clock (SYSTIMH) at the moment when SYSTIML was read.
    pub(crate) fn high(&self) -> u32 {
        self.high
    }

    /// Applies a write of the clock's low half (SYSTIML).
    pub(crate) fn set_low(&mut self, value: u32, now: Time) {
        self.set(self.at(now) >> 32 << 32 | u64::from(value), now);
    }

    /// Applies a write of the clock's high half (SYSTIMH).
    pub(crate) fn set_high(&mut self, value: u32, now: Time) {
        self.set(self.at(now) & 0xffff_ffff | u64::from(value) << 32, now);
    }

    /// Applies a write of TIMINCA, which sets the rate of the card's IEEE 1588 clock from now on.
    pub(crate) fn set_increment(&mut self, value: u32, now: Time) {
        self.set(self.at(now), now);
        self.increment = value;
    }

    /// Applies a write of TIMADJ, which adjusts the IEEE 1588 clock: adds its 63-bit amount to the count, or subtracts
    /// the amount if the sign bit is set.
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

/// Returns the free-running timer (FRTIMER): microseconds in bits 9:0, milliseconds in 19:10, seconds in 31:20.
pub(crate) fn free_running(now: Time) -> u32 {
    let us = now.as_nanos() / 1000;
    let (ms, seconds) = (us / 1000, us / 1_000_000);
    (us % 1000) as u32 | ((ms % 1000) as u32) << 10 | (seconds as u32) << 20
}
