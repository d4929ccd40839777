//! Measures rates of six kinds of offences of a VF, of any family, against thresholds, and decides on measures against
//! a VF that exceeds them: it is logged, throttled, or quarantined.
//!
//! A throttled VF (for ten seconds after its last offence) sends at most at 10 Mb/s, interrupts its guest at most a
//! thousand times a second, and has at most ten requests served a second. A quarantined VF moves no frame and sees
//! no link until the administrator releases it; its interrupts and requests are limited as well.
//!
//! PF driver, card and host count the events, and the PF driver has its card restrain a VF.

use core::time::Duration;
use policy::{ConductLimits, KINDS, Offence, OffenceAction};
use serde::{Deserialize, Serialize};
use units::Time;

/// Reason why a VF is quarantined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Cause")]
pub enum QuarantineCause {
    /// The VF exceeded the quarantine threshold of an offence.
    Offence(Offence),
    /// The administrator has quarantined the VF.
    Administrator,
}

impl QuarantineCause {
    /// Returns the name of the reason for a quarantine, as tables show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            QuarantineCause::Offence(offence) => offence.name(),
            QuarantineCause::Administrator => "administrator",
        }
    }
}

/// Totals of one VF's events that may be offences, by kind of offence.
pub type OffenceCounts = [u64; KINDS];

/// Judgement of a VF's offences: the exceeded threshold, and the measure to take against the VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VfConductVerdict {
    /// Kind of offence whose threshold was exceeded.
    pub offence: Offence,
    /// Rate of the offence in events per second.
    pub rate: u64,
    /// Measure against the VF that the exceeded threshold requires.
    pub action: OffenceAction,
}

/// Shortest period over which rates of offences are measured.
const PERIOD: Duration = Duration::from_secs(1);
/// Duration of a VF's throttle, counted from the VF's last offence.
const THROTTLE_TIME: Duration = Duration::from_secs(10);
/// Interval between two served requests of a throttled or quarantined VF.
pub(crate) const SERVICE: Duration = Duration::from_millis(100);
/// Transmit rate of a throttled VF in Mb/s.
pub(crate) const THROTTLED_RATE: u32 = 10;
/// Interval between two interrupts of a throttled or quarantined VF in microseconds.
pub(crate) const HELD_INTERVAL_US: u32 = 1_000;
/// Maximum of a restored counter, low enough to count for centuries and to add up all counters of a VF.
const MOST_COUNTED: u64 = 1 << 58;

/// Record of one VF's offences, and of the measures against the VF. After a hand-over the successor process continues
/// the record.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename = "Monitor")]
pub struct VfConductMonitor {
    sampled: Option<(Time, OffenceCounts)>,
    /// Number of periods with an exceeded threshold, by kind of offence.
    crossed: OffenceCounts,
    throttled_until: Option<Time>,
    quarantined: Option<QuarantineCause>,
    /// Earliest time at which the VF's next request is served, while the VF is throttled or quarantined.
    serve_at: Option<Time>,
}

impl VfConductMonitor {
    /// Creates the record of a quarantined VF that has no earlier offences.
    #[must_use]
    pub fn of_quarantined(why: QuarantineCause) -> Self {
        Self { quarantined: Some(why), ..Self::default() }
    }

    /// Returns the reason for which the VF is quarantined, or `None` if it is not.
    #[must_use]
    pub fn quarantined(&self) -> Option<QuarantineCause> {
        self.quarantined
    }

    /// Returns true if the VF is throttled for its offences.
    #[must_use]
    pub fn throttled(&self) -> bool {
        self.throttled_until.is_some()
    }

    /// Returns the number of periods with an exceeded threshold, by kind of offence.
    #[must_use]
    pub fn offences(&self) -> &OffenceCounts {
        &self.crossed
    }

    /// Returns true if the VF is throttled or quarantined.
    pub(crate) fn holds(&self) -> bool {
        self.throttled() || self.quarantined.is_some()
    }

    /// Returns true if no counter of the VF's offences is about to overflow.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.crossed.iter().all(|count| *count < MOST_COUNTED)
    }

    /// Compares new totals of events with the VF's limits once a period. Throttles the VF if the gravest exceeded
    /// threshold requires that. Returns this threshold and its measure; the caller carries out a quarantine.
    pub fn observe(
        &mut self,
        now: Time,
        totals: OffenceCounts,
        limits: &ConductLimits,
    ) -> Option<VfConductVerdict> {
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
        let mut worst: Option<VfConductVerdict> = None;
        for (i, offence) in Offence::ALL.into_iter().enumerate() {
            let rate = totals[i].saturating_sub(before[i]).saturating_mul(1_000) / millis;
            let Some(action) = limits[i].action(rate) else { continue };
            self.crossed[i] += 1;
            if worst.is_none_or(|worst| worst.action < action) {
                worst = Some(VfConductVerdict { offence, rate, action });
            }
        }
        if worst.is_some_and(|worst| worst.action == OffenceAction::Throttle) {
            self.throttled_until = Some(now + THROTTLE_TIME);
        }
        worst
    }

    /// Leaves one offence that the VF did not cause out of the next comparison with the limits.
    pub(crate) fn excuse(&mut self, offence: Offence) {
        if let Some((_, before)) = &mut self.sampled {
            before[offence as usize] += 1;
        }
    }

    /// Records that the VF is quarantined. Returns true if the VF was not quarantined before.
    pub fn quarantine(&mut self, why: QuarantineCause) -> bool {
        self.quarantined.replace(why).is_none()
    }

    /// Releases the VF, and ends its throttle. Returns true if the VF was quarantined.
    pub fn release(&mut self) -> bool {
        let before = core::mem::replace(self, Self { crossed: self.crossed, ..Self::default() });
        before.quarantined.is_some()
    }

    /// Ends the VF's throttle if the throttle has expired. Returns true if it has ended a throttle.
    pub fn end_throttle(&mut self, now: Time) -> bool {
        let over = self.throttled_until.is_some_and(|until| until <= now);
        if over {
            self.throttled_until = None;
        }
        over
    }

    /// Returns true if a request of the VF may be served now, and starts the delay of its next request.
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

    /// Returns the next time at which the VF's throttle ends or a delayed request may be served.
    #[must_use]
    pub fn deadline(&self, now: Time) -> Option<Time> {
        [self.throttled_until, self.serve_at].into_iter().flatten().filter(|at| *at > now).min()
    }

    /// Returns the VF's transmit rate limit in Mb/s, given the administrator's limit; 0 is no limit.
    #[must_use]
    pub fn rate(&self, most: u32) -> u32 {
        match (self.throttled(), most) {
            (false, most) => most,
            (true, 0) => THROTTLED_RATE,
            (true, most) => most.min(THROTTLED_RATE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{VfConductMonitor, VfConductVerdict};
    use policy::{ConductLimits, KINDS, Offence, OffenceAction, OffenceThresholds};
    use units::Time;

    const LIMITS: ConductLimits = [OffenceThresholds { warn: 10, throttle: 100, quarantine: 1_000 }; KINDS];

    fn seconds(s: u64) -> Time {
        Time::from_micros(s * 1_000_000)
    }

    /// Observes a VF whose total of one kind of offence rises by `events` in a second, and returns the exceeded
    /// threshold and the measure, if any.
    fn found(kind: Offence, events: u64) -> Option<VfConductVerdict> {
        let mut monitor = VfConductMonitor::default();
        assert_eq!(monitor.observe(seconds(5), [7; KINDS], &LIMITS), None, "nothing to compare with");
        let mut totals = [7; KINDS];
        totals[kind as usize] += events;
        monitor.observe(seconds(6), totals, &LIMITS)
    }

    #[test]
    fn offence_rate_selects_warning_throttle_or_quarantine() {
        for offence in Offence::ALL {
            assert_eq!(found(offence, 9), None);
            for (rate, action) in [
                (10, OffenceAction::Warn),
                (99, OffenceAction::Warn),
                (100, OffenceAction::Throttle),
                (999, OffenceAction::Throttle),
                (1_000, OffenceAction::Quarantine),
                (u64::MAX / 2, OffenceAction::Quarantine),
            ] {
                let verdict = found(offence, rate).unwrap();
                assert_eq!((verdict.offence, verdict.action), (offence, action), "{rate}");
            }
        }
    }

    #[test]
    fn offence_threshold_of_zero_is_never_reached() {
        let never = [OffenceThresholds { warn: 0, throttle: 0, quarantine: 0 }; KINDS];
        let mut monitor = VfConductMonitor::default();
        monitor.observe(seconds(0), [0; KINDS], &never);
        assert_eq!(monitor.observe(seconds(1), [u64::MAX; KINDS], &never), None);
    }

    #[test]
    fn offence_rates_are_measured_over_a_second() {
        let mut monitor = VfConductMonitor::default();
        monitor.observe(seconds(0), [0; KINDS], &LIMITS);
        assert_eq!(monitor.observe(Time::from_micros(999_999), [1_000; KINDS], &LIMITS), None, "too soon");
        let verdict = monitor.observe(seconds(20), [1_000; KINDS], &LIMITS).unwrap();
        assert_eq!((verdict.rate, verdict.action), (50, OffenceAction::Warn));
    }

    #[test]
    fn only_the_gravest_offence_is_acted_on_but_all_are_counted() {
        let mut monitor = VfConductMonitor::default();
        monitor.observe(seconds(0), [0; KINDS], &LIMITS);
        let verdict = monitor.observe(seconds(1), [20, 0, 200, 0, 20, 0], &LIMITS).unwrap();
        assert_eq!((verdict.offence, verdict.action), (Offence::Storm, OffenceAction::Throttle));
        assert_eq!(monitor.crossed, [1, 0, 1, 0, 1, 0]);
        let verdict = monitor.observe(seconds(2), [40, 0, 200, 0, 40, 0], &LIMITS).unwrap();
        assert_eq!(verdict.offence, Offence::Mailbox, "of equal ones the first");
    }
}
