//! Interrupt moderation: a policy turns the rate of received packets into an interval for the register EITR.
//!
//! | module | policy |
//! |---|---|
//! | `adaptive` | as few interrupts as buffers allow (HPCA 2010) |
//! | `dynamic` | Linux's dynamic interrupt moderation |
//! | `hybrid` | immediate at low rates, at a fixed interval at high ones |
//!
//! The driver samples at the end of a poll, and in its watchdog.

mod adaptive;
mod dynamic;
mod hybrid;

pub use adaptive::{
    AdaptiveModeration, BufferRedundancy, PacketRateMeter, SAMPLE_PERIOD, interrupt_frequency,
};
pub use dynamic::DynamicModeration;
pub use hybrid::HybridModeration;

use hybrid::HybridModerationState;
use i82576::Time;
use i82576::bits::eitr;

/// Longest interval of EITR in microseconds (82576 datasheet 8.8.14).
pub const MAX_INTERVAL_US: u32 = eitr::INTERVAL_MASK >> eitr::INTERVAL_SHIFT;

/// Totals of buffers and bytes that a receive queue has counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceivedBufferTotals {
    /// Number of filled buffers: packets, except those longer than a buffer.
    pub buffers: u64,
    /// Number of bytes in the filled receive buffers.
    pub bytes: u64,
}

/// Policy for the interval between interrupts of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModerationPolicy {
    /// Fixed interval in microseconds; 0 delays no interrupt.
    Fixed(u32),
    /// Fewest interrupts that the packet rate permits ([`AdaptiveModeration`]).
    Adaptive(AdaptiveModeration),
    /// Policy of current Linux drivers ([`DynamicModeration`]).
    Dynamic,
    /// Interrupts at once at low packet rates, and at a fixed interval at high rates.
    Hybrid(HybridModeration),
}

impl Default for ModerationPolicy {
    /// Returns a fixed interval of 50 microseconds: igbvf's 488 (EITR 0x7a0) is slow for a ping.
    fn default() -> Self {
        ModerationPolicy::Fixed(50)
    }
}

/// Returns the interval of a frequency in microseconds, limited to EITR's range; 0 hertz is the longest.
#[must_use]
pub fn interval_us(hertz: u64) -> u32 {
    let micros = 1_000_000u64.checked_div(hertz).unwrap_or(u64::MAX);
    u32::try_from(micros).unwrap_or(u32::MAX).min(MAX_INTERVAL_US)
}

/// Returns the EITR value that sets an interval in microseconds.
#[must_use]
pub const fn register_value(interval_us: u32) -> u32 {
    let micros = if interval_us > MAX_INTERVAL_US { MAX_INTERVAL_US } else { interval_us };
    micros << eitr::INTERVAL_SHIFT
}

/// State of an interrupt moderation policy.
#[derive(Debug, Clone)]
enum ModerationState {
    Fixed(u32),
    Adaptive(AdaptiveModeration, PacketRateMeter, u32),
    Dynamic(DynamicModeration),
    Hybrid(HybridModerationState),
}

/// Interrupt moderation of one vector: the policy and the policy's state.
#[derive(Debug, Clone)]
pub struct InterruptModerator(ModerationState);

impl InterruptModerator {
    /// Creates the moderation of a vector, which has seen no packets yet.
    #[must_use]
    pub fn new(policy: ModerationPolicy) -> Self {
        Self(match policy {
            ModerationPolicy::Fixed(micros) => ModerationState::Fixed(micros.min(MAX_INTERVAL_US)),
            ModerationPolicy::Adaptive(adaptive) => {
                let interval = interval_us(interrupt_frequency(0, &adaptive));
                ModerationState::Adaptive(adaptive, PacketRateMeter::default(), interval)
            }
            ModerationPolicy::Dynamic => ModerationState::Dynamic(DynamicModeration::default()),
            ModerationPolicy::Hybrid(hybrid) => ModerationState::Hybrid(HybridModerationState::new(hybrid)),
        })
    }

    /// Returns the interrupt interval in force, in microseconds.
    #[must_use]
    pub fn interval_us(&self) -> u32 {
        match &self.0 {
            ModerationState::Fixed(micros) | ModerationState::Adaptive(_, _, micros) => *micros,
            ModerationState::Dynamic(dynamic) => dynamic.interval_us(),
            ModerationState::Hybrid(switch) => switch.interval_us(),
        }
    }

    /// Records the received totals after a poll. Returns a new interval if the EITR register should change.
    pub fn sample(&mut self, now: Time, received: ReceivedBufferTotals) -> Option<u32> {
        let before = self.interval_us();
        match &mut self.0 {
            ModerationState::Fixed(_) => {}
            ModerationState::Adaptive(adaptive, meter, interval) => {
                if let Some(rate) = meter.sample(now, received.buffers) {
                    *interval = interval_us(interrupt_frequency(rate, adaptive));
                }
            }
            ModerationState::Dynamic(dynamic) => dynamic.interrupted(now, received),
            ModerationState::Hybrid(switch) => switch.sample(now, received),
        }
        Some(self.interval_us()).filter(|interval| *interval != before)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        AdaptiveModeration, HybridModeration, InterruptModerator, ModerationPolicy, ReceivedBufferTotals,
        interval_us, register_value,
    };
    use i82576::Time;

    fn packets(buffers: u64) -> ReceivedBufferTotals {
        ReceivedBufferTotals { buffers, bytes: 1_500 * buffers }
    }

    #[test]
    fn interrupt_intervals_fit_the_eitr_register() {
        assert_eq!(interval_us(2_000), 500);
        assert_eq!(interval_us(0), 8191);
        assert_eq!(register_value(488), 0x7a0);
        assert_eq!(register_value(u32::MAX), 0x7ffc);
    }

    #[test]
    fn adaptive_interval_follows_the_packet_rate() {
        let mut moderator =
            InterruptModerator::new(ModerationPolicy::Adaptive(AdaptiveModeration::default()));
        assert_eq!(moderator.interval_us(), 1_000);
        assert_eq!(moderator.sample(Time::ZERO, packets(0)), None);
        assert_eq!(moderator.sample(Time::from_micros(999_999), packets(81_267)), None, "too soon");
        assert_eq!(moderator.sample(Time::from_micros(1_000_000), packets(81_267)), Some(656));
        assert_eq!(moderator.sample(Time::from_micros(2_000_000), packets(162_534)), None);
        assert_eq!(moderator.sample(Time::from_micros(9_000_000), packets(162_534)), Some(1_000));
    }

    #[test]
    fn hybrid_moderation_delays_interrupts_above_a_threshold_rate() {
        let mut moderator = InterruptModerator::new(ModerationPolicy::Hybrid(HybridModeration {
            from_pps: 20_000,
            interval_us: 500,
        }));
        assert_eq!(moderator.interval_us(), 0);
        assert_eq!(moderator.sample(Time::ZERO, packets(0)), None);
        assert_eq!(moderator.sample(Time::from_micros(10_000), packets(199)), None, "19,900 a second");
        assert_eq!(moderator.sample(Time::from_micros(20_000), packets(399)), Some(500));
        assert_eq!(moderator.sample(Time::from_micros(30_000), packets(400)), Some(0));
    }

    #[test]
    fn fixed_interrupt_interval_never_changes() {
        let mut moderator = InterruptModerator::new(ModerationPolicy::Fixed(100));
        assert_eq!(moderator.sample(Time::ZERO, packets(0)), None);
        assert_eq!(moderator.sample(Time::from_micros(1_000_000), packets(1_000_000)), None);
        assert_eq!(moderator.interval_us(), 100);
    }
}
