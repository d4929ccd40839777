//! How often a queue may interrupt. A policy turns what was seen into an interval for EITR.
//!
//! | module | policy |
//! |---|---|
//! | `adaptive` | as rarely as buffers allow (HPCA 2010) |
//! | `dynamic` | Linux' dynamic interrupt moderation |
//! | `hybrid` | at once at low rates, at a fixed interval at high ones |
//!
//! Left out: who asks. The driver does at the end of a poll, and in its watchdog.

mod adaptive;
mod dynamic;
mod hybrid;

pub use adaptive::{Adaptive, RateMeter, Redundancy, SAMPLE_PERIOD, interrupt_frequency};
pub use dynamic::Dynamic;
pub use hybrid::Hybrid;

use hybrid::Switch;
use i82576::Time;
use i82576::bits::eitr;

/// The longest interval EITR holds, microseconds.
pub const MAX_INTERVAL_US: u32 = eitr::INTERVAL_MASK >> eitr::INTERVAL_SHIFT;

/// What a queue has received in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Buffers that were filled: the packets, but for those longer than a buffer.
    pub buffers: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// A policy for the interval between interrupts of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Always this many microseconds; 0 does not hold interrupts back.
    Fixed(u32),
    /// As rarely as the packet rate allows.
    Adaptive(Adaptive),
    /// What Linux' drivers of today do ([`Dynamic`]).
    Dynamic,
    /// At once at low rates, at a fixed interval at high ones.
    Hybrid(Hybrid),
}

impl Default for Policy {
    /// 488 microseconds, what igbvf starts with (EITR 0x7a0), is slow for a ping; 50 is not.
    fn default() -> Self {
        Policy::Fixed(50)
    }
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

/// What a policy keeps while it is at work.
#[derive(Debug, Clone)]
enum Work {
    Fixed(u32),
    Adaptive(Adaptive, RateMeter, u32),
    Dynamic(Dynamic),
    Hybrid(Switch),
}

/// A policy at work on one vector.
#[derive(Debug, Clone)]
pub struct Moderator(Work);

impl Moderator {
    /// A policy that has seen nothing yet.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self(match policy {
            Policy::Fixed(micros) => Work::Fixed(micros.min(MAX_INTERVAL_US)),
            Policy::Adaptive(adaptive) => {
                let interval = interval_us(interrupt_frequency(0, &adaptive));
                Work::Adaptive(adaptive, RateMeter::default(), interval)
            }
            Policy::Dynamic => Work::Dynamic(Dynamic::default()),
            Policy::Hybrid(hybrid) => Work::Hybrid(Switch::new(hybrid)),
        })
    }

    /// The interval in force, microseconds.
    #[must_use]
    pub fn interval_us(&self) -> u32 {
        match &self.0 {
            Work::Fixed(micros) | Work::Adaptive(_, _, micros) => *micros,
            Work::Dynamic(dynamic) => dynamic.interval_us(),
            Work::Hybrid(switch) => switch.interval_us(),
        }
    }

    /// A poll is over: tells what was received in all; answers a new interval if the register should change.
    pub fn sample(&mut self, now: Time, received: Received) -> Option<u32> {
        let before = self.interval_us();
        match &mut self.0 {
            Work::Fixed(_) => {}
            Work::Adaptive(adaptive, meter, interval) => {
                if let Some(rate) = meter.sample(now, received.buffers) {
                    *interval = interval_us(interrupt_frequency(rate, adaptive));
                }
            }
            Work::Dynamic(dynamic) => dynamic.interrupted(now, received),
            Work::Hybrid(switch) => switch.sample(now, received),
        }
        Some(self.interval_us()).filter(|interval| *interval != before)
    }
}

#[cfg(test)]
mod tests {
    use super::{Adaptive, Hybrid, Moderator, Policy, Received, interval_us, register_value};
    use i82576::Time;

    fn packets(buffers: u64) -> Received {
        Received { buffers, bytes: 1_500 * buffers }
    }

    #[test]
    fn intervals_fit_the_register() {
        assert_eq!(interval_us(2_000), 500);
        assert_eq!(interval_us(0), 8191);
        assert_eq!(register_value(488), 0x7a0);
        assert_eq!(register_value(u32::MAX), 0x7ffc);
    }

    #[test]
    fn the_adaptive_interval_follows_the_packet_rate() {
        let mut moderator = Moderator::new(Policy::Adaptive(Adaptive::default()));
        assert_eq!(moderator.interval_us(), 1_000);
        assert_eq!(moderator.sample(Time::ZERO, packets(0)), None);
        assert_eq!(moderator.sample(Time::from_micros(999_999), packets(81_267)), None, "too soon");
        assert_eq!(moderator.sample(Time::from_micros(1_000_000), packets(81_267)), Some(656));
        assert_eq!(moderator.sample(Time::from_micros(2_000_000), packets(162_534)), None);
        assert_eq!(moderator.sample(Time::from_micros(9_000_000), packets(162_534)), Some(1_000));
    }

    #[test]
    fn a_hybrid_waits_from_its_rate_on_and_no_longer() {
        let mut moderator = Moderator::new(Policy::Hybrid(Hybrid { from_pps: 20_000, interval_us: 500 }));
        assert_eq!(moderator.interval_us(), 0);
        assert_eq!(moderator.sample(Time::ZERO, packets(0)), None);
        assert_eq!(moderator.sample(Time::from_micros(10_000), packets(199)), None, "19,900 a second");
        assert_eq!(moderator.sample(Time::from_micros(20_000), packets(399)), Some(500));
        assert_eq!(moderator.sample(Time::from_micros(30_000), packets(400)), Some(0));
    }

    #[test]
    fn a_fixed_interval_stays() {
        let mut moderator = Moderator::new(Policy::Fixed(100));
        assert_eq!(moderator.sample(Time::ZERO, packets(0)), None);
        assert_eq!(moderator.sample(Time::from_micros(1_000_000), packets(1_000_000)), None);
        assert_eq!(moderator.interval_us(), 100);
    }
}
