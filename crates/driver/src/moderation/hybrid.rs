//! A hybrid of interrupts at once and interrupts that wait: below a packet rate each packet may interrupt, above it interrupts
//! are held back by a fixed interval, as Salah, El-Badawi and Haidari propose for disabling and enabling interrupts
//! ("Performance analysis and comparison of interrupt-handling schemes in gigabit networks", 2007).

use super::{MAX_INTERVAL_US, RateMeter, Received};
use core::time::Duration;
use i82576::Time;

/// How often the rate is looked at.
const PERIOD: Duration = Duration::from_millis(10);

/// What the policy is told once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hybrid {
    /// Packets a second from which on interrupts wait.
    pub from_pps: u64,
    /// How long they wait then, microseconds.
    pub interval_us: u32,
}

impl Default for Hybrid {
    fn default() -> Self {
        Self { from_pps: 20_000, interval_us: 500 }
    }
}

/// The policy at work.
#[derive(Debug, Clone)]
pub(super) struct Switch {
    hybrid: Hybrid,
    meter: RateMeter,
    waits: bool,
}

impl Switch {
    pub(super) fn new(hybrid: Hybrid) -> Self {
        Self { hybrid, meter: RateMeter::default(), waits: false }
    }

    pub(super) fn interval_us(&self) -> u32 {
        if self.waits { self.hybrid.interval_us.min(MAX_INTERVAL_US) } else { 0 }
    }

    pub(super) fn sample(&mut self, now: Time, received: Received) {
        if let Some(rate) = self.meter.sample_each(PERIOD, now, received.buffers) {
            self.waits = rate >= self.hybrid.from_pps;
        }
    }
}
