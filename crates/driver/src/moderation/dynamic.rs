//! Dynamic interrupt moderation, after Linux's `net_dim` (Documentation/networking/net_dim.rst): one of five
//! intervals is in force. Every 64 interrupts the search compares bytes, packets and interrupts with the previous
//! interval. It continues in a direction while results improve, turns when they worsen, and rests at the best
//! interval until the load changes.
//!
//! The 82576 cannot end an interval by a number of packets, so that parameter is not used.

use super::ReceivedBufferTotals;
use i82576::Time;

/// Intervals between interrupts in microseconds (`net_dim`'s profiles for receive with an event-started timer).
const INTERVALS_US: [u32; 5] = [1, 8, 64, 128, 256];
/// Index of the initial interrupt interval in [`INTERVALS_US`].
const FIRST: usize = 1;
/// Number of interrupts in one measurement of the interval search.
const EVENTS: u64 = 64;
/// Number of changes of the interrupt interval without a rest after which the search pauses. The pause lasts for as
/// many measurements.
const PAUSE_AFTER: u32 = 2 * INTERVALS_US.len() as u32;
/// Smallest difference of two rates that the interval search does not ignore, in percent.
const SIGNIFICANT_PCT: u64 = 10;

/// Direction of the interval search: towards longer or shorter interrupt intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IntervalSearchDirection {
    Longer,
    Shorter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IntervalSearchState {
    /// Searching for a better interrupt interval by changing it in one direction.
    Searching(IntervalSearchDirection),
    /// Resting at the best interval until the load changes.
    AtBest,
    /// Pausing the search after many changes of the interrupt interval back and forth.
    Paused,
}

/// Rates of a measurement: bytes, packets and interrupts per millisecond.
#[derive(Debug, Clone, Copy, Default)]
struct MeasuredTrafficRates {
    bytes: u64,
    packets: u64,
    events: u64,
}

/// Result of comparing the rates of a measurement with those of the previous measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MeasuredRateChange {
    Same,
    Better,
    Worse,
}

/// Search for the best interrupt interval of an interrupt vector.
#[derive(Debug, Clone)]
pub struct DynamicModeration {
    profile: usize,
    stance: IntervalSearchState,
    /// Number of changes to a longer interval since the search last turned.
    longer: u32,
    /// Number of changes to a shorter interval since the search last turned.
    shorter: u32,
    tired: u32,
    before: MeasuredTrafficRates,
    /// Number of interrupts in the current measurement.
    events: u64,
    /// Time and received totals at the start of the current measurement.
    began: Option<(Time, ReceivedBufferTotals)>,
}

impl Default for DynamicModeration {
    fn default() -> Self {
        Self {
            profile: FIRST,
            stance: IntervalSearchState::Searching(IntervalSearchDirection::Longer),
            longer: 0,
            shorter: 0,
            tired: 0,
            before: MeasuredTrafficRates::default(),
            events: 0,
            began: None,
        }
    }
}

impl DynamicModeration {
    /// Returns the interrupt interval in force, in microseconds.
    #[must_use]
    pub fn interval_us(&self) -> u32 {
        INTERVALS_US[self.profile]
    }

    /// Records a handled interrupt and the totals received so far. May change the interrupt interval.
    pub fn interrupted(&mut self, now: Time, received: ReceivedBufferTotals) {
        let Some((then, before)) = self.began else {
            self.began = Some((now, received));
            return;
        };
        self.events += 1;
        let micros = u64::try_from(now.since(then).as_micros()).unwrap_or(u64::MAX);
        if self.events < EVENTS || micros == 0 {
            return;
        }
        let per_ms = |count: u64| count.saturating_mul(1_000).div_ceil(micros);
        let rates = MeasuredTrafficRates {
            bytes: per_ms(received.bytes.saturating_sub(before.bytes)),
            packets: per_ms(received.buffers.saturating_sub(before.buffers)),
            events: per_ms(self.events),
        };
        self.decide(rates);
        (self.events, self.began) = (0, Some((now, received)));
    }

    fn decide(&mut self, rates: MeasuredTrafficRates) {
        let rested = self.stance;
        match self.stance {
            IntervalSearchState::AtBest if rates.against(&self.before) != MeasuredRateChange::Same => {
                self.set_off();
            }
            IntervalSearchState::AtBest => {}
            IntervalSearchState::Paused => {
                self.tired = self.tired.saturating_sub(1);
                if self.tired == 0 {
                    self.set_off();
                }
            }
            IntervalSearchState::Searching(way) => {
                let way = if rates.against(&self.before) == MeasuredRateChange::Better {
                    way
                } else {
                    self.turn(way)
                };
                if self.has_passed_the_best(way) {
                    self.rest(IntervalSearchState::AtBest);
                } else {
                    self.step(way);
                }
            }
        }
        if (rested, self.stance) != (IntervalSearchState::AtBest, IntervalSearchState::AtBest) {
            self.before = rates;
        }
    }

    fn set_off(&mut self) {
        let way = if self.profile == 0 {
            IntervalSearchDirection::Longer
        } else {
            IntervalSearchDirection::Shorter
        };
        self.stance = IntervalSearchState::Searching(way);
        self.step(way);
    }

    fn turn(&mut self, way: IntervalSearchDirection) -> IntervalSearchDirection {
        let way = match way {
            IntervalSearchDirection::Longer => {
                self.shorter = 0;
                IntervalSearchDirection::Shorter
            }
            IntervalSearchDirection::Shorter => {
                self.longer = 0;
                IntervalSearchDirection::Longer
            }
        };
        self.stance = IntervalSearchState::Searching(way);
        way
    }

    /// Returns true if the search has just turned after several changes in one direction: the interval is the best one
    /// now.
    fn has_passed_the_best(&self, way: IntervalSearchDirection) -> bool {
        match way {
            IntervalSearchDirection::Longer => self.shorter > 1 && self.longer == 1,
            IntervalSearchDirection::Shorter => self.longer > 1 && self.shorter == 1,
        }
    }

    fn step(&mut self, way: IntervalSearchDirection) {
        if self.tired == PAUSE_AFTER {
            return self.rest(IntervalSearchState::Paused);
        }
        match way {
            IntervalSearchDirection::Longer if self.profile + 1 < INTERVALS_US.len() => {
                (self.profile, self.longer) = (self.profile + 1, self.longer + 1);
            }
            IntervalSearchDirection::Shorter if self.profile > 0 => {
                (self.profile, self.shorter) = (self.profile - 1, self.shorter + 1);
            }
            IntervalSearchDirection::Longer | IntervalSearchDirection::Shorter => {
                return self.rest(IntervalSearchState::AtBest);
            }
        }
        self.tired += 1;
    }

    fn rest(&mut self, stance: IntervalSearchState) {
        if stance == IntervalSearchState::AtBest {
            self.tired = 0;
        }
        (self.longer, self.shorter, self.stance) = (0, 0, stance);
    }
}

impl MeasuredTrafficRates {
    /// Compares the rates of two measurements: bytes first, then packets; if both are equal, fewer interrupts are
    /// better.
    fn against(&self, before: &Self) -> MeasuredRateChange {
        let change = match (compare(self.bytes, before.bytes), compare(self.packets, before.packets)) {
            (MeasuredRateChange::Same, packets) => packets,
            (bytes, _) => bytes,
        };
        match (change, compare(self.events, before.events)) {
            (MeasuredRateChange::Same, MeasuredRateChange::Better) if before.events > 0 => {
                MeasuredRateChange::Worse
            }
            (MeasuredRateChange::Same, MeasuredRateChange::Worse) => MeasuredRateChange::Better,
            (MeasuredRateChange::Same, _) => MeasuredRateChange::Same,
            (change, _) => change,
        }
    }
}

/// Compares a rate with its value in the measurement before; a higher rate is better.
fn compare(now: u64, before: u64) -> MeasuredRateChange {
    if before == 0 {
        return if now > 0 { MeasuredRateChange::Better } else { MeasuredRateChange::Same };
    }
    let far = now.abs_diff(before).saturating_mul(100) / before > SIGNIFICANT_PCT;
    match far {
        false => MeasuredRateChange::Same,
        true if now > before => MeasuredRateChange::Better,
        true => MeasuredRateChange::Worse,
    }
}

#[cfg(test)]
mod tests {
    use super::{DynamicModeration, EVENTS, INTERVALS_US};
    use crate::moderation::ReceivedBufferTotals;
    use i82576::Time;

    /// Makes the moderation handle interrupts, as many as its interval allows, for some measurements of a stream of
    /// packets of 1,500 bytes.
    fn run(
        dynamic: &mut DynamicModeration,
        at: &mut (u64, ReceivedBufferTotals),
        packets_per_ms: u64,
        measurements: u64,
    ) {
        for _ in 0..measurements * EVENTS {
            let micros = u64::from(dynamic.interval_us()).max(1_000 / packets_per_ms);
            at.0 += micros;
            at.1.buffers += packets_per_ms * micros / 1_000;
            at.1.bytes += 1_500 * packets_per_ms * micros / 1_000;
            dynamic.interrupted(Time::from_micros(at.0), at.1);
        }
    }

    #[test]
    fn dynamic_interval_grows_to_the_longest_under_steady_load() {
        let (mut dynamic, mut at) = (DynamicModeration::default(), (0, ReceivedBufferTotals::default()));
        assert_eq!(dynamic.interval_us(), 8, "net_dim's initial interval");
        run(&mut dynamic, &mut at, 1_000, 20);
        assert_eq!(dynamic.interval_us(), INTERVALS_US[4]);
        run(&mut dynamic, &mut at, 1_000, 50);
        assert_eq!(dynamic.interval_us(), INTERVALS_US[4], "the search rests");
    }

    #[test]
    fn packet_rate_change_restarts_dynamic_interval_search() {
        let (mut dynamic, mut at) = (DynamicModeration::default(), (0, ReceivedBufferTotals::default()));
        run(&mut dynamic, &mut at, 1_000, 20);
        run(&mut dynamic, &mut at, 4, 2);
        assert_eq!(dynamic.interval_us(), INTERVALS_US[3], "a shorter interval is tried");
    }

    #[test]
    fn interrupts_without_elapsed_time_keep_the_interval() {
        let mut dynamic = DynamicModeration::default();
        for _ in 0..1_000 {
            dynamic.interrupted(Time::ZERO, ReceivedBufferTotals { buffers: 1, bytes: 1 });
        }
        assert_eq!(dynamic.interval_us(), 8);
    }
}
