//! How often a queue may interrupt. A policy turns what was seen into an interval for EITR.
//!
//! [`interrupt_frequency`] is the adaptive interrupt coalescing of Dong, Yang, Li, Li, Tian and Guan, "High
//! Performance Network Virtualization with SR-IOV" (HPCA 2010): interrupt just often enough that the smallest
//! buffer on the way to the application does not overflow: IF = max(pps * r / bufs, lif).
//!
//! Left out: who asks. The driver does at the end of a poll, and in its watchdog.

use core::time::Duration;
use i82576::Time;
use i82576::bits::eitr;
use serde::{Deserialize, Serialize};

/// The longest interval EITR holds, microseconds.
pub const MAX_INTERVAL_US: u32 = eitr::INTERVAL_MASK >> eitr::INTERVAL_SHIFT;

/// How much headroom the buffers keep: r of the formula, in tenths, so that 12 is 1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redundancy(pub u32);

/// What the adaptive policy is told once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adaptive {
    /// r: more than one, so that buffers do not run full between two interrupts.
    pub redundancy: Redundancy,
    /// bufs: packets that the smaller of the application's and the ring's buffers holds.
    pub buffers: u32,
    /// lif: the lowest frequency, hertz, which bounds the latency of a quiet link.
    pub lowest_hz: u32,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self { redundancy: Redundancy(12), buffers: 64, lowest_hz: 1_000 }
    }
}

/// A policy for the interval between interrupts of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Always this many microseconds; 0 does not hold interrupts back.
    Fixed(u32),
    /// As rarely as the packet rate allows.
    Adaptive(Adaptive),
}

impl Default for Policy {
    /// 488 microseconds, what igbvf starts with (EITR 0x7a0), is slow for a ping; 50 is not.
    fn default() -> Self {
        Policy::Fixed(50)
    }
}

/// Interrupts a second for `packets_per_second`: IF = max(pps * r / bufs, lif), rounded to the nearest.
#[must_use]
pub fn interrupt_frequency(packets_per_second: u64, adaptive: &Adaptive) -> u64 {
    let divisor = u64::from(adaptive.buffers.max(1)) * 10;
    let wanted = packets_per_second.saturating_mul(u64::from(adaptive.redundancy.0));
    (wanted.saturating_add(divisor / 2) / divisor).max(u64::from(adaptive.lowest_hz))
}

/// The interval of a frequency, microseconds, as far as EITR reaches; 0 hertz is the longest interval.
#[must_use]
pub fn interval_us(hertz: u64) -> u32 {
    let micros = 1_000_000u64.checked_div(hertz).unwrap_or(u64::MAX);
    u32::try_from(micros).unwrap_or(u32::MAX).min(MAX_INTERVAL_US)
}

/// The register's value for an interval in microseconds.
#[must_use]
pub const fn register_value(interval_us: u32) -> u32 {
    let micros = if interval_us > MAX_INTERVAL_US { MAX_INTERVAL_US } else { interval_us };
    micros << eitr::INTERVAL_SHIFT
}

/// How often the packet rate is sampled, as in the paper; so a step up may overflow a buffer for that long. The guest's
/// driver and the PF, which enforces the rule, sample alike.
pub const SAMPLE_PERIOD: Duration = Duration::from_secs(1);

/// Packets a second, over a period each.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct RateMeter {
    sampled: Option<(Time, u64)>,
}

impl RateMeter {
    /// Whether a period is over, or none has begun.
    #[must_use]
    pub fn is_due(&self, now: Time) -> bool {
        self.sampled.is_none_or(|(then, _)| now.since(then) >= SAMPLE_PERIOD)
    }

    /// Tells how many packets there have been in all; answers their rate if a period is over.
    pub fn sample(&mut self, now: Time, packets: u64) -> Option<u64> {
        if !self.is_due(now) {
            return None;
        }
        let (then, before) = self.sampled.replace((now, packets))?;
        let micros = u64::try_from(now.since(then).as_micros()).unwrap_or(u64::MAX);
        Some(packets.saturating_sub(before).saturating_mul(1_000_000) / micros.max(1))
    }
}

/// A policy at work on one vector.
#[derive(Debug, Clone)]
pub struct Moderator {
    policy: Policy,
    interval_us: u32,
    meter: RateMeter,
}

impl Moderator {
    /// A policy that has seen nothing yet.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let interval_us = match policy {
            Policy::Fixed(micros) => micros.min(MAX_INTERVAL_US),
            Policy::Adaptive(adaptive) => interval_us(interrupt_frequency(0, &adaptive)),
        };
        Self { policy, interval_us, meter: RateMeter::default() }
    }

    /// The interval in force, microseconds.
    #[must_use]
    pub fn interval_us(&self) -> u32 {
        self.interval_us
    }

    /// Tells how many packets there have been in all; answers a new interval if the register should change.
    pub fn sample(&mut self, now: Time, packets: u64) -> Option<u32> {
        let Policy::Adaptive(adaptive) = self.policy else { return None };
        let rate = self.meter.sample(now, packets)?;
        let next = interval_us(interrupt_frequency(rate, &adaptive));
        (next != core::mem::replace(&mut self.interval_us, next)).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::{Adaptive, Moderator, Policy, Redundancy, interrupt_frequency, interval_us, register_value};
    use i82576::Time;

    #[test]
    fn udp_at_line_rate_needs_1524_interrupts_a_second() {
        let adaptive = Adaptive { redundancy: Redundancy(12), buffers: 64, lowest_hz: 1_000 };
        assert_eq!(interrupt_frequency(81_267, &adaptive), 1_524);
    }

    #[test]
    fn a_quiet_link_is_held_at_the_lowest_frequency() {
        let adaptive = Adaptive { lowest_hz: 1_000, ..Adaptive::default() };
        assert_eq!(interrupt_frequency(0, &adaptive), 1_000);
        assert_eq!(interrupt_frequency(53_333, &adaptive), 1_000);
        assert_eq!(interrupt_frequency(u64::MAX, &adaptive), u64::MAX / 640);
    }

    #[test]
    fn no_buffers_do_not_divide_by_zero() {
        let adaptive = Adaptive { buffers: 0, ..Adaptive::default() };
        assert_eq!(interrupt_frequency(1_000, &adaptive), 1_200);
    }

    #[test]
    fn intervals_fit_the_register() {
        assert_eq!(interval_us(2_000), 500);
        assert_eq!(interval_us(0), 8191);
        assert_eq!(register_value(488), 0x7a0);
        assert_eq!(register_value(u32::MAX), 0x7ffc);
    }

    #[test]
    fn the_interval_follows_the_packet_rate() {
        let mut moderator = Moderator::new(Policy::Adaptive(Adaptive::default()));
        assert_eq!(moderator.interval_us(), 1_000);
        assert_eq!(moderator.sample(Time::ZERO, 0), None);
        assert_eq!(moderator.sample(Time::from_micros(999_999), 81_267), None, "too soon");
        assert_eq!(moderator.sample(Time::from_micros(1_000_000), 81_267), Some(656));
        assert_eq!(moderator.sample(Time::from_micros(2_000_000), 162_534), None);
        assert_eq!(moderator.sample(Time::from_micros(9_000_000), 162_534), Some(1_000));
    }

    #[test]
    fn a_fixed_interval_stays() {
        let mut moderator = Moderator::new(Policy::Fixed(100));
        assert_eq!(moderator.sample(Time::ZERO, 0), None);
        assert_eq!(moderator.sample(Time::from_micros(1_000_000), 1_000_000), None);
        assert_eq!(moderator.interval_us(), 100);
    }
}
