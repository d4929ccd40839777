//! Histogram of the delays of mailbox answers, with two significant digits, from 0.1 us to 10 s. One class holds
//! longer delays. The longest delay is kept exactly.

use crate::control::status::{AtMost, PfAnswerStatus};
use crate::totals::MailboxAnswerTotals;
use std::time::Duration;

/// Width of the delay histogram's classes below 1 us, in nanoseconds.
const STEP_NS: u64 = 100;
/// Number of classes of the delay histogram below 1 us. `DIGITS` classes for each of `POWERS` powers of ten follow, up
/// to 10 s, and one class for longer delays.
const FINEST: usize = 10;
const DIGITS: usize = 90;
const POWERS: usize = 7;
const BUCKETS: usize = FINEST + DIGITS * POWERS + 1;

/// Bounds of the delay histogram in the metrics, in nanoseconds: 1, 2 and 5 times each power of ten, 1 us to 10 s.
/// Each is the edge of a class.
const BOUNDS_NS: [u64; 22] = {
    let mut bounds = [0; 22];
    let (mut i, mut power) = (0, 1000);
    while i < bounds.len() {
        bounds[i] = [1, 2, 5][i % 3] * power;
        i += 1;
        if i.is_multiple_of(3) {
            power *= 10;
        }
    }
    bounds
};

/// Histogram of the delays of mailbox answers: number of delays in each class.
#[derive(Debug)]
pub(super) struct MailboxAnswerDelays {
    counts: Box<[u64; BUCKETS]>,
    max_ns: u64,
    sum_ns: u64,
}

impl Default for MailboxAnswerDelays {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), max_ns: 0, sum_ns: 0 }
    }
}

/// Returns the index of a delay's histogram class: the first class whose [`edge`] is not below the delay.
fn bucket(ns: u64) -> usize {
    let (mut digits, mut from) = (ns.div_ceil(STEP_NS).saturating_sub(1), 0);
    // Each power of ten counts in units of ten of the power before.
    while digits >= 100 && from < BUCKETS {
        (digits, from) = (digits / 10, from + DIGITS);
    }
    (from + digits as usize).min(BUCKETS - 1)
}

/// Returns the longest delay that a class of the delay histogram counts, in nanoseconds.
fn edge(bucket: usize) -> u64 {
    match bucket.checked_sub(FINEST) {
        None => (bucket as u64 + 1) * STEP_NS,
        Some(above) => {
            let digits = (FINEST + above % DIGITS) as u64;
            (digits + 1) * STEP_NS * 10_u64.pow((above / DIGITS) as u32)
        }
    }
}

impl MailboxAnswerDelays {
    pub(super) fn add(&mut self, delay: Duration) {
        let ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(ns)] += 1;
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Returns the non-empty classes of the histogram, with the longest delay and the sum of all delays.
    pub(super) fn save(&self) -> MailboxAnswerTotals {
        let counts = (0..).zip(self.counts.iter().copied()).filter(|(_, count)| *count > 0).collect();
        MailboxAnswerTotals {
            max_ns: self.max_ns,
            sum_ns: self.sum_ns,
            counts,
            ..MailboxAnswerTotals::default()
        }
    }

    /// Restores the histogram of delays from saved totals. Unknown classes are ignored.
    pub(super) fn restore(totals: &MailboxAnswerTotals) -> Self {
        let mut delays = Self { max_ns: totals.max_ns, sum_ns: totals.sum_ns, ..Self::default() };
        for (class, count) in &totals.counts {
            if let Some(place) = delays.counts.get_mut(usize::from(*class)) {
                *place = *count;
            }
        }
        delays
    }

    /// Returns a percentile of all delays, in nanoseconds, rounded up to two digits.
    fn percentile(&self, hundredths: u64) -> u64 {
        let all: u64 = self.counts.iter().sum();
        let wanted = (all * hundredths).div_ceil(100);
        let mut so_far = 0;
        let found = self.counts.iter().position(|count| {
            so_far += count;
            so_far >= wanted
        });
        found.map_or(0, edge).min(self.max_ns)
    }

    fn up_to(&self, ns: u64) -> u64 {
        self.counts[..=bucket(ns)].iter().sum()
    }

    /// Returns the status of the delays of mailbox answers. The caller adds the other fields.
    pub(super) fn status(&self) -> PfAnswerStatus {
        PfAnswerStatus {
            requests: self.counts.iter().sum(),
            p50_ns: self.percentile(50),
            p99_ns: self.percentile(99),
            max_ns: self.max_ns,
            sum_ns: self.sum_ns,
            at_most: BOUNDS_NS.map(|ns| AtMost { ns, requests: self.up_to(ns) }).to_vec(),
            ..PfAnswerStatus::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BOUNDS_NS, BUCKETS, MailboxAnswerDelays, bucket, edge};
    use std::time::Duration;

    #[test]
    fn delay_histogram_classes_are_at_most_a_tenth_wide() {
        for exponent in 0..40 {
            for ns in [0, 1, 7].map(|more| (1_u64 << exponent) + more) {
                let at = bucket(ns);
                if at == BUCKETS - 1 {
                    assert!(ns > 10_000_000_000 - 100_000_000, "{ns} is below the last class");
                    continue;
                }
                assert!(ns <= edge(at) && (at == 0 || ns > edge(at - 1)), "{ns} in {at}");
                assert!(ns <= 1000 || edge(at) - edge(at - 1) <= ns / 10 + 100, "{ns} in {at}");
            }
        }
    }

    #[test]
    fn metric_bounds_are_edges_of_delay_histogram_classes() {
        for ns in BOUNDS_NS {
            assert_eq!((bucket(ns) + 1, edge(bucket(ns))), (bucket(ns + 1), ns));
        }
        assert_eq!((BOUNDS_NS[0], BOUNDS_NS[21]), (1000, 10_000_000_000));
    }

    #[test]
    fn delay_percentiles_are_at_most_the_longest_delay() {
        let mut delays = MailboxAnswerDelays::default();
        assert_eq!(delays.status().p99_ns, 0, "without delays");
        for us in 1..=100 {
            delays.add(Duration::from_micros(us));
        }
        let status = delays.status();
        assert_eq!(
            (status.requests, status.p50_ns, status.p99_ns, status.max_ns),
            (100, 50_000, 99_000, 100_000)
        );
        delays.add(Duration::from_secs(100));
        let status = delays.status();
        assert_eq!((status.max_ns, status.at_most[21].requests), (100_000_000_000, 100));
        let at_most = |ns| status.at_most.iter().find(|at_most| at_most.ns == ns).unwrap().requests;
        assert_eq!((at_most(1000), at_most(20_000), at_most(100_000)), (1, 20, 100));
    }
}
