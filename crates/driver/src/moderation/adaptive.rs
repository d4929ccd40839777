//! Adaptive interrupt coalescing, after Dong, Yang, Li, Li, Tian and Guan, "High Performance Network Virtualization
//! with SR-IOV" (HPCA 2010): interrupts are just frequent enough that the smallest buffer between card and
//! application does not overflow. IF = max(pps * r / bufs, lif).

use core::time::Duration;
use i82576::Time;
use serde::{Deserialize, Serialize};

/// Factor r of the formula in tenths, so that 12 is 1.2: buffers hold r times the packets of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferRedundancy(pub u32);

/// Parameters of the adaptive interrupt policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaptiveModeration {
    /// Factor r, above one, so that buffers do not run full between two interrupts.
    pub redundancy: BufferRedundancy,
    /// Parameter bufs: packets that the smaller of the application's and the ring's buffers holds.
    pub buffers: u32,
    /// Parameter lif: the lowest frequency in hertz, which bounds the latency of a quiet link.
    pub lowest_hz: u32,
}

impl Default for AdaptiveModeration {
    fn default() -> Self {
        Self { redundancy: BufferRedundancy(12), buffers: 64, lowest_hz: 1_000 }
    }
}

/// Returns the interrupts per second for a packet rate: IF = max(pps * r / bufs, lif), rounded to the nearest.
#[must_use]
pub fn interrupt_frequency(packets_per_second: u64, adaptive: &AdaptiveModeration) -> u64 {
    let divisor = u64::from(adaptive.buffers.max(1)) * 10;
    let wanted = packets_per_second.saturating_mul(u64::from(adaptive.redundancy.0));
    (wanted.saturating_add(divisor / 2) / divisor).max(u64::from(adaptive.lowest_hz))
}

/// Sampling period of the packet rate, as in the paper. After a rise of the rate, buffers may overflow for that long.
/// The guest's driver and the PF driver, which enforces the rule, use the same period.
pub const SAMPLE_PERIOD: Duration = Duration::from_secs(1);

/// Meter of the packet rate: counts packets per second over periods.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename = "RateMeter")]
pub struct PacketRateMeter {
    sampled: Option<(Time, u64)>,
}

impl PacketRateMeter {
    /// Returns true if a period of the adaptive policy is over, or none has begun.
    #[must_use]
    pub fn is_due(&self, now: Time) -> bool {
        self.has_passed(now, SAMPLE_PERIOD)
    }

    /// Records the total number of packets so far. Returns the packet rate if a period of the adaptive policy is over.
    pub fn sample(&mut self, now: Time, packets: u64) -> Option<u64> {
        self.sample_each(SAMPLE_PERIOD, now, packets)
    }

    /// Continues the period at another total of packets, since the counter has restarted.
    pub(crate) fn continue_at(&mut self, packets: u64) {
        if let Some((_, before)) = &mut self.sampled {
            *before = packets;
        }
    }

    /// Records the total number of packets so far. Returns the packet rate if the given period is over.
    pub(super) fn sample_each(&mut self, period: Duration, now: Time, packets: u64) -> Option<u64> {
        if !self.has_passed(now, period) {
            return None;
        }
        let (then, before) = self.sampled.replace((now, packets))?;
        let micros = u64::try_from(now.since(then).as_micros()).unwrap_or(u64::MAX);
        Some(packets.saturating_sub(before).saturating_mul(1_000_000) / micros.max(1))
    }

    fn has_passed(&self, now: Time, period: Duration) -> bool {
        self.sampled.is_none_or(|(then, _)| now.since(then) >= period)
    }
}

#[cfg(test)]
mod tests {
    use super::{AdaptiveModeration, BufferRedundancy, interrupt_frequency};

    #[test]
    fn udp_at_line_rate_needs_1524_interrupts_a_second() {
        let adaptive = AdaptiveModeration { redundancy: BufferRedundancy(12), buffers: 64, lowest_hz: 1_000 };
        assert_eq!(interrupt_frequency(81_267, &adaptive), 1_524);
    }

    #[test]
    fn quiet_link_has_the_lowest_interrupt_frequency() {
        let adaptive = AdaptiveModeration { lowest_hz: 1_000, ..AdaptiveModeration::default() };
        assert_eq!(interrupt_frequency(0, &adaptive), 1_000);
        assert_eq!(interrupt_frequency(53_333, &adaptive), 1_000);
        assert_eq!(interrupt_frequency(u64::MAX, &adaptive), u64::MAX / 640);
    }

    #[test]
    fn interrupt_frequency_of_zero_buffers_does_not_panic() {
        let adaptive = AdaptiveModeration { buffers: 0, ..AdaptiveModeration::default() };
        assert_eq!(interrupt_frequency(1_000, &adaptive), 1_200);
    }
}
