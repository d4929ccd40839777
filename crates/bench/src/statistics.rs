//! Computes medians over comparable slices: those of one round between which the machine's speed differs by a tenth at
//! most. The spread is that of the middle half of the values.

use crate::contender::{Contender, ContenderKind, NotificationCounts};
use crate::raw::MachineSpeed;
use crate::report::rows::{BenchmarkRow, NotificationRates, RateRatio};
use crate::rounds::{MeasuredTimeSlice, RoundMeasurements};

/// Largest difference between the machine's speeds before two comparable slices, as a part of the smaller speed.
const TOLERANCE: f64 = 0.1;

/// Sorts measured values and returns their median.
#[must_use]
pub fn median(values: &mut [f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Sorts measured values and returns the quantile `part`: 0.5 is the median.
#[must_use]
pub fn quantile(values: &mut [f64], part: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    values.get((last as f64 * part).round() as usize).copied()
}

/// Returns true if two measured speeds of the machine differ by a tenth at most.
#[must_use]
pub fn alike(a: MachineSpeed, b: MachineSpeed) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * a.min(b);
    near(a.copy_ns, b.copy_ns) && near(a.line_ns, b.line_ns)
}

/// Returns the measured slices of two contenders in the rounds in which their slices are comparable.
pub fn comparable(
    rounds: &[RoundMeasurements],
    one: usize,
    other: usize,
) -> impl Iterator<Item = (&MeasuredTimeSlice, &MeasuredTimeSlice)> {
    pairs(rounds, one, other).filter(|(one, other)| alike(one.reference, other.reference))
}

/// Returns the measured slices of two contenders in all rounds, comparable or not.
fn pairs(
    rounds: &[RoundMeasurements],
    one: usize,
    other: usize,
) -> impl Iterator<Item = (&MeasuredTimeSlice, &MeasuredTimeSlice)> {
    rounds.iter().filter_map(move |round| Some((round.get(one)?, round.get(other)?)))
}

/// Returns the report's row for each contender, from the slices of all rounds.
#[must_use]
pub fn rows(
    bench: &str,
    contenders: &[Box<dyn Contender>],
    rounds: &[RoundMeasurements],
    size: usize,
) -> Vec<BenchmarkRow> {
    let of = |at: usize, value: &dyn Fn(&MeasuredTimeSlice) -> Option<f64>| -> Vec<f64> {
        rounds.iter().filter_map(|round| value(round.get(at)?)).collect()
    };
    let rate = |at: usize| median(&mut of(at, &|turn| Some(turn.slice.mpps())));
    let peers = (0..contenders.len()).filter(|&at| contenders[at].mode() == ContenderKind::Peer);
    let best = peers.max_by(|&a, &b| rate(a).unwrap_or(0.0).total_cmp(&rate(b).unwrap_or(0.0)));
    let ratio = |at: usize, other: usize| {
        let divide =
            |(own, other): (&MeasuredTimeSlice, &MeasuredTimeSlice)| own.slice.mpps() / other.slice.mpps();
        let mut ratios: Vec<f64> = comparable(rounds, at, other).map(divide).collect();
        let mut all: Vec<f64> = pairs(rounds, at, other).map(divide).collect();
        RateRatio {
            to: contenders[other].name().to_owned(),
            mode: contenders[other].mode(),
            median: median(&mut ratios),
            spread: quantile(&mut ratios, 0.25).zip(quantile(&mut ratios, 0.75)),
            pairs: ratios.len(),
            median_of_all: median(&mut all),
            spread_of_all: quantile(&mut all, 0.25).zip(quantile(&mut all, 0.75)),
        }
    };
    let is = |at: usize, modes: &[ContenderKind]| modes.contains(&contenders[at].mode());
    let row = |at: usize| {
        let contender = &contenders[at];
        let mut row = BenchmarkRow::new(bench, contender.name(), size, contender.mode());
        row.set_variation(contender.variation());
        row.set_rate(rate(at));
        row.cycles_per_packet = median(&mut of(at, &|turn| turn.slice.cycles_per_frame()));
        row.instructions_per_packet = median(&mut of(at, &|turn| turn.slice.instructions_per_frame()));
        let events = |count: fn(&NotificationCounts) -> u64| {
            median(&mut of(at, &|turn| turn.slice.per_1000_frames(count)))
        };
        let rates = events(|counts| counts.kicks)
            .zip(events(|counts| counts.messages))
            .zip(events(|counts| counts.interrupts));
        row.notifications =
            rates.map(|((kicks, messages), interrupts)| NotificationRates { kicks, messages, interrupts });
        row.unfairness = median(&mut of(at, &|turn| turn.slice.unfairness));
        row.under_way = median(&mut of(at, &|turn| turn.slice.under_way));
        row.slices = Some(rounds.len());
        if let Some(best) = best {
            let RateRatio { median, spread, pairs, .. } = ratio(at, best);
            (row.ratio_to_best_peer, row.ratio_spread, row.pairs) = (median, spread, Some(pairs));
        }
        if contenders[at].mode().is_card() {
            // Without a peer, the machine's limit is the reference.
            let counts = |other| other != at && (best.is_none() || !is(other, &[ContenderKind::Raw]));
            let others = (0..contenders.len()).filter(|&other| counts(other));
            row.ratios = others.map(|other| ratio(at, other)).collect();
        }
        row
    };
    (0..contenders.len()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::ContenderMeasurement;
    use anyhow::Result;
    use std::time::Duration;

    struct NamedContender(&'static str, ContenderKind);

    impl Contender for NamedContender {
        fn name(&self) -> &str {
            self.0
        }

        fn mode(&self) -> ContenderKind {
            self.1
        }

        fn slice(&mut self, _: Duration) -> Result<ContenderMeasurement> {
            unreachable!("the slices are given")
        }
    }

    fn turn(copy_ns: f64, millions: u64) -> MeasuredTimeSlice {
        let slice = ContenderMeasurement::new(millions * 1_000_000, Duration::from_secs(1), None);
        MeasuredTimeSlice { reference: MachineSpeed { copy_ns, line_ns: 40.0 }, slice }
    }

    fn contenders() -> Vec<Box<dyn Contender>> {
        let named = |name, mode| Box::new(NamedContender(name, mode)) as Box<dyn Contender>;
        vec![
            named("ours", ContenderKind::Posted),
            named("slow", ContenderKind::Peer),
            named("fast", ContenderKind::Peer),
        ]
    }

    #[test]
    fn benchmark_slices_at_different_cpu_speeds_are_not_compared() {
        let rounds = [
            vec![turn(20.0, 8), turn(20.0, 2), turn(21.0, 4)],
            // The machine became three times as fast before the peers' slices, so this round does not count.
            vec![turn(60.0, 3), turn(20.0, 2), turn(20.0, 4)],
            vec![turn(60.0, 3), turn(61.0, 1), turn(62.0, 1)],
        ];
        let rows = rows("", &contenders(), &rounds, 64);
        assert_eq!((rows[0].pairs, rows[0].slices), (Some(2), Some(3)));
        assert_eq!(rows[0].ratio_to_best_peer, Some(3.0));
        assert_eq!(rows[0].ratio_spread, Some((2.0, 3.0)));
    }

    #[test]
    fn benchmark_row_has_the_throughput_ratio_to_each_peer() {
        let row = &rows("", &contenders(), &[vec![turn(20.0, 6), turn(20.0, 2), turn(20.0, 4)]], 64)[0];
        let ratios: Vec<_> = row.ratios.iter().map(|ratio| (ratio.to.as_str(), ratio.median)).collect();
        assert_eq!(ratios, [("slow", Some(3.0)), ("fast", Some(1.5))]);
    }

    #[test]
    fn benchmark_ratio_of_the_best_peer_to_the_best_peer_is_one() {
        let rounds = [vec![turn(20.0, 6), turn(20.0, 2), turn(20.0, 4)]];
        let ratios: Vec<_> =
            rows("", &contenders(), &rounds, 64).iter().map(|row| row.ratio_to_best_peer).collect();
        assert_eq!(ratios, [Some(1.5), Some(0.5), Some(1.0)]);
    }

    #[test]
    fn throughput_ratio_needs_two_slices_at_equal_cpu_speed() {
        let rounds = [vec![turn(20.0, 6), turn(30.0, 2), turn(40.0, 4)]];
        let row = &rows("", &contenders(), &rounds, 64)[0];
        assert_eq!((row.ratio_to_best_peer, row.pairs), (None, Some(0)));
        assert!(row.mpps.is_some(), "the rate needs no pair");
        let all: Vec<_> = row.ratios.iter().map(|ratio| (ratio.median, ratio.median_of_all)).collect();
        assert_eq!(all, [(None, Some(3.0)), (None, Some(1.5))], "without the reference, every round counts");
    }

    #[test]
    fn quantiles_of_a_benchmark_are_measured_values() {
        let mut values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 1.0].map(|part| quantile(&mut values, part)),
            [1.0, 2.0, 3.0, 5.0].map(Some)
        );
        assert_eq!(median(&mut []), None);
    }
}
