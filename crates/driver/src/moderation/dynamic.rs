//! Dynamic interrupt moderation, as Linux' `net_dim` does it (Documentation/networking/net_dim.rst): one of five intervals is
//! in force. After each 64 interrupts it is asked whether more bytes, more packets or fewer interrupts came than with the
//! interval before. It goes on in the direction in which things get better, turns where they do not, and rests at the best
//! until something changes.
//!
//! Left out: the number of packets that may also end an interval, which the 82576 does not count.

use super::Received;
use i82576::Time;

/// The intervals, microseconds, of `net_dim`'s profiles for receive whose timer starts with an event.
const INTERVALS_US: [u32; 5] = [1, 8, 64, 128, 256];
/// The profile that a driver begins with.
const FIRST: usize = 1;
/// Interrupts of a measurement.
const EVENTS: u64 = 64;
/// Steps without rest that tire it, and measurements that it then rests.
const TIRED: u32 = 2 * INTERVALS_US.len() as u32;
/// Rates that differ by more than this many percent differ.
const SIGNIFICANT_PCT: u64 = 10;

/// Towards longer intervals, or shorter ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Longer,
    Shorter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stance {
    /// Looks for a better interval.
    Going(Way),
    /// Rests at the best until something changes.
    OnTop,
    /// Rests, since it went back and forth.
    Tired,
}

/// Bytes, packets and interrupts a millisecond.
#[derive(Debug, Clone, Copy, Default)]
struct Rates {
    bytes: u64,
    packets: u64,
    events: u64,
}

/// How two measurements compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Same,
    Better,
    Worse,
}

/// The search for the best interval.
#[derive(Debug, Clone)]
pub struct Dynamic {
    profile: usize,
    stance: Stance,
    /// Steps towards longer and shorter intervals since it last turned.
    longer: u32,
    shorter: u32,
    tired: u32,
    before: Rates,
    /// Interrupts of the measurement under way, and where it began.
    events: u64,
    began: Option<(Time, Received)>,
}

impl Default for Dynamic {
    fn default() -> Self {
        Self {
            profile: FIRST,
            stance: Stance::Going(Way::Longer),
            longer: 0,
            shorter: 0,
            tired: 0,
            before: Rates::default(),
            events: 0,
            began: None,
        }
    }
}

impl Dynamic {
    /// The interval in force, microseconds.
    #[must_use]
    pub fn interval_us(&self) -> u32 {
        INTERVALS_US[self.profile]
    }

    /// An interrupt was handled, and so much has been received in all. Another interval may be in force then.
    pub fn interrupted(&mut self, now: Time, received: Received) {
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
        let rates = Rates {
            bytes: per_ms(received.bytes.saturating_sub(before.bytes)),
            packets: per_ms(received.buffers.saturating_sub(before.buffers)),
            events: per_ms(self.events),
        };
        self.decide(rates);
        (self.events, self.began) = (0, Some((now, received)));
    }

    fn decide(&mut self, rates: Rates) {
        let rested = self.stance;
        match self.stance {
            Stance::OnTop if rates.against(&self.before) != Change::Same => self.set_off(),
            Stance::OnTop => {}
            Stance::Tired => {
                self.tired = self.tired.saturating_sub(1);
                if self.tired == 0 {
                    self.set_off();
                }
            }
            Stance::Going(way) => {
                let way = if rates.against(&self.before) == Change::Better { way } else { self.turn(way) };
                if self.has_passed_the_best(way) {
                    self.rest(Stance::OnTop);
                } else {
                    self.step(way);
                }
            }
        }
        if (rested, self.stance) != (Stance::OnTop, Stance::OnTop) {
            self.before = rates;
        }
    }

    fn set_off(&mut self) {
        let way = if self.profile == 0 { Way::Longer } else { Way::Shorter };
        self.stance = Stance::Going(way);
        self.step(way);
    }

    fn turn(&mut self, way: Way) -> Way {
        let way = match way {
            Way::Longer => {
                self.shorter = 0;
                Way::Shorter
            }
            Way::Shorter => {
                self.longer = 0;
                Way::Longer
            }
        };
        self.stance = Stance::Going(way);
        way
    }

    /// One step back after several in a row: the best is where that leads.
    fn has_passed_the_best(&self, way: Way) -> bool {
        match way {
            Way::Longer => self.shorter > 1 && self.longer == 1,
            Way::Shorter => self.longer > 1 && self.shorter == 1,
        }
    }

    fn step(&mut self, way: Way) {
        if self.tired == TIRED {
            return self.rest(Stance::Tired);
        }
        match way {
            Way::Longer if self.profile + 1 < INTERVALS_US.len() => {
                (self.profile, self.longer) = (self.profile + 1, self.longer + 1);
            }
            Way::Shorter if self.profile > 0 => {
                (self.profile, self.shorter) = (self.profile - 1, self.shorter + 1);
            }
            Way::Longer | Way::Shorter => return self.rest(Stance::OnTop),
        }
        self.tired += 1;
    }

    fn rest(&mut self, stance: Stance) {
        if stance == Stance::OnTop {
            self.tired = 0;
        }
        (self.longer, self.shorter, self.stance) = (0, 0, stance);
    }
}

impl Rates {
    /// Bytes count most, then packets; of equal ones fewer interrupts are better.
    fn against(&self, before: &Self) -> Change {
        let change = match (compare(self.bytes, before.bytes), compare(self.packets, before.packets)) {
            (Change::Same, packets) => packets,
            (bytes, _) => bytes,
        };
        match (change, compare(self.events, before.events)) {
            (Change::Same, Change::Better) if before.events > 0 => Change::Worse,
            (Change::Same, Change::Worse) => Change::Better,
            (Change::Same, _) => Change::Same,
            (change, _) => change,
        }
    }
}

/// What more of something is.
fn compare(now: u64, before: u64) -> Change {
    if before == 0 {
        return if now > 0 { Change::Better } else { Change::Same };
    }
    let far = now.abs_diff(before).saturating_mul(100) / before > SIGNIFICANT_PCT;
    match far {
        false => Change::Same,
        true if now > before => Change::Better,
        true => Change::Worse,
    }
}

#[cfg(test)]
mod tests {
    use super::{Dynamic, EVENTS, INTERVALS_US};
    use crate::moderation::Received;
    use i82576::Time;

    /// Interrupts as often as the interval allows, while packets of 1,500 bytes come at a rate.
    fn run(dynamic: &mut Dynamic, at: &mut (u64, Received), packets_per_ms: u64, measurements: u64) {
        for _ in 0..measurements * EVENTS {
            let micros = u64::from(dynamic.interval_us()).max(1_000 / packets_per_ms);
            at.0 += micros;
            at.1.buffers += packets_per_ms * micros / 1_000;
            at.1.bytes += 1_500 * packets_per_ms * micros / 1_000;
            dynamic.interrupted(Time::from_micros(at.0), at.1);
        }
    }

    #[test]
    fn a_steady_stream_leads_to_the_fewest_interrupts() {
        let (mut dynamic, mut at) = (Dynamic::default(), (0, Received::default()));
        assert_eq!(dynamic.interval_us(), 8, "as net_dim begins");
        run(&mut dynamic, &mut at, 1_000, 20);
        assert_eq!(dynamic.interval_us(), INTERVALS_US[4]);
        run(&mut dynamic, &mut at, 1_000, 50);
        assert_eq!(dynamic.interval_us(), INTERVALS_US[4], "it rests there");
    }

    #[test]
    fn a_change_of_the_rate_sets_it_off_again() {
        let (mut dynamic, mut at) = (Dynamic::default(), (0, Received::default()));
        run(&mut dynamic, &mut at, 1_000, 20);
        run(&mut dynamic, &mut at, 4, 2);
        assert_eq!(dynamic.interval_us(), INTERVALS_US[3], "it looks whether a shorter interval is better");
    }

    #[test]
    fn interrupts_in_the_same_moment_decide_nothing() {
        let mut dynamic = Dynamic::default();
        for _ in 0..1_000 {
            dynamic.interrupted(Time::ZERO, Received { buffers: 1, bytes: 1 });
        }
        assert_eq!(dynamic.interval_us(), 8);
    }
}
