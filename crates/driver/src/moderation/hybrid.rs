//! Hybrid of immediate and delayed interrupts. Below a packet rate each packet may interrupt; above the rate,
//! interrupts have a fixed interval. Salah, El-Badawi and Haidari propose this for disabling and enabling interrupts
//! ("Performance analysis and comparison of interrupt-handling schemes in gigabit networks", 2007).

use super::{MAX_INTERVAL_US, PacketRateMeter, ReceivedBufferTotals};
use core::time::Duration;
use i82576::Time;

/// Sampling period of the packet rate that decides on delayed interrupts.
const PERIOD: Duration = Duration::from_millis(10);

/// Parameters of the hybrid interrupt policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HybridModeration {
    /// Packets per second from which on interrupts are delayed.
    pub from_pps: u64,
    /// Interval of delayed interrupts in microseconds.
    pub interval_us: u32,
}

impl Default for HybridModeration {
    fn default() -> Self {
        Self { from_pps: 20_000, interval_us: 500 }
    }
}

/// State of the hybrid interrupt policy: its parameters, the packet rate, and true while interrupts are delayed.
#[derive(Debug, Clone)]
pub(super) struct HybridModerationState {
    hybrid: HybridModeration,
    meter: PacketRateMeter,
    delays: bool,
}

impl HybridModerationState {
    pub(super) fn new(hybrid: HybridModeration) -> Self {
        Self { hybrid, meter: PacketRateMeter::default(), delays: false }
    }

    pub(super) fn interval_us(&self) -> u32 {
        if self.delays { self.hybrid.interval_us.min(MAX_INTERVAL_US) } else { 0 }
    }

    pub(super) fn sample(&mut self, now: Time, received: ReceivedBufferTotals) {
        if let Some(rate) = self.meter.sample_each(PERIOD, now, received.buffers) {
            self.delays = rate >= self.hybrid.from_pps;
        }
    }
}
