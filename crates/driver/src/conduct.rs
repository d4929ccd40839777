//! The conduct of VFs, of every family: what each does a second, in six kinds, against thresholds; and what is done to one
//! that goes beyond them: it is logged, throttled, or quarantined. Counts come in, verdicts go out.
//!
//! One that is throttled (for ten seconds after the last crossing) sends at 10 Mb/s, interrupts its guest a
//! thousand times a second, and has its requests served ten times a second, at the most. One that is quarantined moves
//! no frame and sees no link until the administrator releases it; its interrupts and requests are held back as well.
//!
//! Left out: counting, which PF driver, card and host do; and how a card is made to hold a VF back, which its PF driver
//! knows.

use core::time::Duration;
use policy::{Action, ConductLimits, KINDS, Offence};
use serde::{Deserialize, Serialize};
use units::Time;

/// Why a VF is quarantined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// It did too much.
    Offence(Offence),
    /// The administrator wants it so.
    Administrator,
}

impl Cause {
    /// A name for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cause::Offence(offence) => offence.name(),
            Cause::Administrator => "administrator",
        }
    }
}

/// Events of each kind since the beginning.
pub type Totals = [u64; KINDS];

/// What was found, and done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The kind.
    pub offence: Offence,
    /// Events a second.
    pub rate: u64,
    /// What is done.
    pub action: Action,
}

/// Rates are taken over this time, or as much longer as nobody looked.
const PERIOD: Duration = Duration::from_secs(1);
/// How long a VF stays throttled.
const PENANCE: Duration = Duration::from_secs(10);
/// Between two requests of a VF that is throttled or quarantined.
pub(crate) const SERVICE: Duration = Duration::from_millis(100);
/// What a VF that is throttled may send, Mb/s.
pub(crate) const THROTTLED_RATE: u32 = 10;
/// Between two interrupts of a VF that is throttled or quarantined.
pub(crate) const HELD_INTERVAL_US: u32 = 1_000;
/// Counters below this can go on counting for centuries, and all of a VF's can be added up.
const MOST_COUNTED: u64 = 1 << 58;

/// What is known of one VF's conduct. It is state as a whole: a successor goes on with it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Monitor {
    sampled: Option<(Time, Totals)>,
    /// Periods in which a threshold was crossed.
    crossed: Totals,
    throttled_until: Option<Time>,
    quarantined: Option<Cause>,
    /// Not before then is a request served, while it is throttled or quarantined.
    serve_at: Option<Time>,
}

impl Monitor {
    /// A VF that was quarantined before anything was counted.
    #[must_use]
    pub fn of_quarantined(why: Cause) -> Self {
        Self { quarantined: Some(why), ..Self::default() }
    }

    /// Why the VF is quarantined, if it is.
    #[must_use]
    pub fn quarantined(&self) -> Option<Cause> {
        self.quarantined
    }

    /// Whether the VF is throttled.
    #[must_use]
    pub fn throttled(&self) -> bool {
        self.throttled_until.is_some()
    }

    /// In how many periods the VF crossed a threshold, by kind.
    #[must_use]
    pub fn offences(&self) -> &Totals {
        &self.crossed
    }

    /// Whether the VF is held back in any way.
    pub(crate) fn holds(&self) -> bool {
        self.throttled() || self.quarantined.is_some()
    }

    /// Whether no counter is about to overflow.
    pub(crate) fn is_sound(&self) -> bool {
        self.crossed.iter().all(|count| *count < MOST_COUNTED)
    }

    /// Compares new totals with the limits once a period, and throttles the VF if they say so. Returns the gravest finding; a
    /// quarantine is left to the caller.
    pub(crate) fn observe(&mut self, now: Time, totals: Totals, limits: &ConductLimits) -> Option<Verdict> {
        let Some((then, before)) = self.sampled else {
            self.sampled = Some((now, totals));
            return None;
        };
        let elapsed = now.since(then);
        if elapsed < PERIOD {
            return None;
        }
        self.sampled = Some((now, totals));
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let mut worst: Option<Verdict> = None;
        for (i, offence) in Offence::ALL.into_iter().enumerate() {
            let rate = totals[i].saturating_sub(before[i]).saturating_mul(1_000) / millis;
            let Some(action) = limits[i].action(rate) else { continue };
            self.crossed[i] += 1;
            if worst.is_none_or(|worst| worst.action < action) {
                worst = Some(Verdict { offence, rate, action });
            }
        }
        if worst.is_some_and(|worst| worst.action == Action::Throttle) {
            self.throttled_until = Some(now + PENANCE);
        }
        worst
    }

    /// One event of a kind is not the VF's doing.
    pub(crate) fn excuse(&mut self, offence: Offence) {
        if let Some((_, before)) = &mut self.sampled {
            before[offence as usize] += 1;
        }
    }

    /// Quarantines the VF; whether it was not yet.
    pub(crate) fn quarantine(&mut self, why: Cause) -> bool {
        self.quarantined.replace(why).is_none()
    }

    /// Releases the VF, and lifts its throttle; whether it was quarantined.
    pub(crate) fn release(&mut self) -> bool {
        let before = core::mem::replace(self, Self { crossed: self.crossed, ..Self::default() });
        before.quarantined.is_some()
    }

    /// Lifts a throttle whose time is over; whether there was one.
    pub(crate) fn forgive(&mut self, now: Time) -> bool {
        let over = self.throttled_until.is_some_and(|until| until <= now);
        if over {
            self.throttled_until = None;
        }
        over
    }

    /// Whether a request may be served now; a VF that is held back waits its time.
    pub(crate) fn may_serve(&mut self, now: Time) -> bool {
        if !self.holds() {
            self.serve_at = None;
            return true;
        }
        let due = self.serve_at.is_none_or(|at| at <= now);
        if due {
            self.serve_at = Some(now + SERVICE);
        }
        due
    }

    /// When a throttle ends, or a request may be served that has to wait.
    pub(crate) fn deadline(&self, now: Time) -> Option<Time> {
        [self.throttled_until, self.serve_at].into_iter().flatten().filter(|at| *at > now).min()
    }

    /// The most that the VF may send, Mb/s, where the administrator allows `most`; 0 is no limit.
    pub(crate) fn rate(&self, most: u32) -> u32 {
        match (self.throttled(), most) {
            (false, most) => most,
            (true, 0) => THROTTLED_RATE,
            (true, most) => most.min(THROTTLED_RATE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Monitor, Verdict};
    use policy::{Action, ConductLimits, KINDS, Offence, Thresholds};
    use units::Time;

    const LIMITS: ConductLimits = [Thresholds { warn: 10, throttle: 100, quarantine: 1_000 }; KINDS];

    fn seconds(s: u64) -> Time {
        Time::from_micros(s * 1_000_000)
    }

    /// What is found of a VF that did this much of one kind in the second after the first look.
    fn found(kind: Offence, events: u64) -> Option<Verdict> {
        let mut monitor = Monitor::default();
        assert_eq!(monitor.observe(seconds(5), [7; KINDS], &LIMITS), None, "nothing to compare with");
        let mut totals = [7; KINDS];
        totals[kind as usize] += events;
        monitor.observe(seconds(6), totals, &LIMITS)
    }

    #[test]
    fn each_threshold_calls_for_its_action() {
        for offence in Offence::ALL {
            assert_eq!(found(offence, 9), None);
            for (rate, action) in [
                (10, Action::Warn),
                (99, Action::Warn),
                (100, Action::Throttle),
                (999, Action::Throttle),
                (1_000, Action::Quarantine),
                (u64::MAX / 2, Action::Quarantine),
            ] {
                let verdict = found(offence, rate).unwrap();
                assert_eq!((verdict.offence, verdict.action), (offence, action), "{rate}");
            }
        }
    }

    #[test]
    fn a_threshold_of_zero_is_never_reached() {
        let never = [Thresholds { warn: 0, throttle: 0, quarantine: 0 }; KINDS];
        let mut monitor = Monitor::default();
        monitor.observe(seconds(0), [0; KINDS], &never);
        assert_eq!(monitor.observe(seconds(1), [u64::MAX; KINDS], &never), None);
    }

    #[test]
    fn rates_are_of_a_second_at_least() {
        let mut monitor = Monitor::default();
        monitor.observe(seconds(0), [0; KINDS], &LIMITS);
        assert_eq!(monitor.observe(Time::from_micros(999_999), [1_000; KINDS], &LIMITS), None, "too soon");
        let verdict = monitor.observe(seconds(20), [1_000; KINDS], &LIMITS).unwrap();
        assert_eq!((verdict.rate, verdict.action), (50, Action::Warn));
    }

    #[test]
    fn of_several_offences_the_gravest_is_judged_and_all_are_counted() {
        let mut monitor = Monitor::default();
        monitor.observe(seconds(0), [0; KINDS], &LIMITS);
        let verdict = monitor.observe(seconds(1), [20, 0, 200, 0, 20, 0], &LIMITS).unwrap();
        assert_eq!((verdict.offence, verdict.action), (Offence::Storm, Action::Throttle));
        assert_eq!(monitor.crossed, [1, 0, 1, 0, 1, 0]);
        let verdict = monitor.observe(seconds(2), [40, 0, 200, 0, 40, 0], &LIMITS).unwrap();
        assert_eq!(verdict.offence, Offence::Mailbox, "of equal ones the first");
    }
}
