//! Round trips of two guests while other guests flood the port: as a table in every test run, and judged by the clock in a campaign.

use rustix::process::setpriority_process;
use rustix::thread::gettid;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time after which a frame of the two measured guests counts as lost.
pub(crate) const LOST: Duration = Duration::from_secs(1);
/// Number of lost frames after which a slice ends: its loss is beyond every bound.
const MOST_LOST: usize = 30;
/// Number of round trips before each slice, which no slice counts.
const SETTLING: usize = 20;
/// Number of round trips in a table of a test run.
const FEW: usize = 40;
/// Pairs of a quiet and a flooded slice for each flood of the campaign.
const PAIRS: usize = 4;
/// Greatest share of lost round trips, in percent.
const MOST_LOSS: f64 = 1.0;
/// Numbers of flooding VFs, with the most by which each may raise the 99th percentile.
const BOUNDS: [(u8, Duration); 2] = [(1, Duration::from_micros(200)), (6, Duration::from_millis(1))];

/// Round trips of two guests.
pub(crate) struct MeasuredRoundTrips {
    /// Times of the round trips, shortest first.
    times: Vec<Duration>,
    lost: usize,
    /// Number of the flooding guests' actions meanwhile.
    actions: u64,
}

impl MeasuredRoundTrips {
    /// Measures `count` round trips. `exchange` makes one, and returns false if a frame is lost.
    fn measure(count: usize, exchange: &mut dyn FnMut(usize) -> bool) -> Self {
        let mut measured = Self { times: Vec::with_capacity(count), lost: 0, actions: 0 };
        for number in 0..count {
            let begun = Instant::now();
            match exchange(number) {
                true => measured.times.push(begun.elapsed()),
                false => measured.lost += 1,
            }
            if measured.lost == MOST_LOST {
                break;
            }
        }
        measured.times.sort();
        measured
    }

    /// Returns the time below which this share of the round trips is.
    fn at(&self, permille: usize) -> Duration {
        let last = self.times.len().saturating_sub(1);
        self.times.get((self.times.len() * permille / 1000).min(last)).copied().unwrap_or(LOST)
    }
}

/// Switch of the flooding guests.
pub(crate) struct FloodSwitch {
    /// [`SPINNING`], [`FLOODING`] or [`ENDED`].
    state: AtomicU8,
    /// Number of actions by which the guests have flooded the port.
    actions: AtomicU64,
}

/// Nice value of the flooding guests' threads, so that they get the processors that the port and the measured guests leave.
const LOWEST_PRIORITY: i32 = 19;

const SPINNING: u8 = 0;
const FLOODING: u8 = 1;
const ENDED: u8 = 2;

/// Calls `measure` while guests, each on a thread of its own, spin or repeat `flood`, as the switch says. They spin at first.
pub(crate) fn beside<G: Send, R>(
    guests: Vec<G>,
    flood: impl Fn(&mut G) + Sync,
    measure: impl FnOnce(&FloodSwitch) -> R,
) -> R {
    let switch = FloodSwitch { state: AtomicU8::new(SPINNING), actions: AtomicU64::new(0) };
    thread::scope(|scope| {
        for mut guest in guests {
            scope.spawn(|| {
                // A flood is judged by what it costs the port. A guest with processors of its own takes no time of the two.
                setpriority_process(Some(gettid()), LOWEST_PRIORITY).unwrap();
                loop {
                    match switch.state.load(Ordering::Relaxed) {
                        SPINNING => (0..1000).for_each(|_| std::hint::spin_loop()),
                        FLOODING => {
                            flood(&mut guest);
                            switch.actions.fetch_add(1, Ordering::Relaxed);
                        }
                        _ => break drop(guest),
                    }
                }
            });
        }
        let result = measure(&switch);
        switch.state.store(ENDED, Ordering::Relaxed);
        result
    })
}

/// Slices of round trips, quiet and flooded in turn.
pub(crate) type FloodSlices = Vec<[MeasuredRoundTrips; 2]>;

/// Measures `pairs` pairs of slices, each of `count` round trips. The machine's speed changes over minutes, and a pair of slices
/// takes seconds.
pub(crate) fn slices(
    switch: &FloodSwitch,
    (pairs, count): (usize, usize),
    exchange: &mut dyn FnMut(usize) -> bool,
) -> FloodSlices {
    let mut slice = |state| {
        switch.state.store(state, Ordering::Relaxed);
        MeasuredRoundTrips::measure(SETTLING, exchange);
        let before = switch.actions.load(Ordering::Relaxed);
        let measured = MeasuredRoundTrips::measure(count, exchange);
        MeasuredRoundTrips { actions: switch.actions.load(Ordering::Relaxed) - before, ..measured }
    };
    (0..pairs).map(|_| [SPINNING, FLOODING].map(&mut slice)).collect()
}

/// Judges the floods by the clock if the environment has the number of round trips of a slice, or else prints few round trips.
/// `measure` returns slices of a flood by a number of guests, given as pairs and round trips.
pub(crate) fn test_floods<F: Copy>(
    floods: &[(&str, F)],
    measure: impl Fn(F, u8, (usize, usize)) -> FloodSlices,
) {
    match std::env::var("SOFTIOV_NEIGHBOUR_ROUNDS").ok().and_then(|count| count.parse().ok()) {
        Some(count) => judge_floods(floods, count, measure),
        None => print_floods(floods, measure),
    }
}

/// Prints the round trips beside each flood by one guest, which may not starve the two.
fn print_floods<F: Copy>(floods: &[(&str, F)], measure: impl Fn(F, u8, (usize, usize)) -> FloodSlices) {
    println!("| flood | p50, us | p99 | lost | quiet p50, p99 |");
    println!("|---|--:|--:|--:|--:|");
    for &(what, flood) in floods {
        for [quiet, flooded] in measure(flood, 1, (1, FEW)) {
            let [before, after] =
                [&quiet, &flooded].map(|slice| [500, 990].map(|at| slice.at(at).as_micros()));
            let lost = flooded.lost;
            println!("| {what} | {} | {} | {lost} | {}, {} |", after[0], after[1], before[0], before[1]);
            assert!(flooded.at(500) < LOST, "{what} starves the pair");
        }
    }
}

/// Judges floods by one guest and by six. The 99th percentile of a flooded slice may be that of the quiet slice before it and the
/// bound, in the median of the pairs, and less than 1 % of the flooded round trips may be lost. Prints a table.
fn judge_floods<F: Copy>(
    floods: &[(&str, F)],
    count: usize,
    measure: impl Fn(F, u8, (usize, usize)) -> FloodSlices,
) {
    println!(
        "| flood | VFs | quiet p50 (p99), us | flooded p50 (p99), us | p99 added, us | lost | actions | verdict |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|---|");
    let mut failed = Vec::new();
    for (flooders, bound) in BOUNDS {
        for &(what, flood) in floods {
            let slices = measure(flood, flooders, (PAIRS, count));
            let [quiet, flooded] =
                [0, 1].map(|at| [500, 990].map(|permille| median_at(&slices, at, permille)));
            let added =
                median(slices.iter().map(|[quiet, flooded]| micros(flooded.at(990)) - micros(quiet.at(990))));
            let lost: usize = slices.iter().map(|[_, flooded]| flooded.lost).sum();
            let arrived: usize = slices.iter().map(|[_, flooded]| flooded.times.len()).sum();
            let loss = 100.0 * lost as f64 / (lost + arrived) as f64;
            // Without processors left for them, the guests flood nothing.
            let actions: u64 = slices.iter().map(|[_, flooded]| flooded.actions).sum();
            let floods = slices.iter().all(|[_, flooded]| flooded.actions >= flooders.into());
            let holds = floods && added <= micros(bound) && loss < MOST_LOSS;
            let verdict = match (floods, holds) {
                (false, _) => "no flood",
                (true, true) => "holds",
                (true, false) => "FAILS",
            };
            println!(
                "| {what} | {flooders} | {} ({}) | {} ({}) | {added} | {loss:.1} % | {actions} | {verdict} |",
                quiet[0], quiet[1], flooded[0], flooded[1]
            );
            if !holds {
                failed.push(format!("{what} by {flooders}"));
            }
        }
    }
    assert!(failed.is_empty(), "floods beyond their bounds: {failed:?}");
}

/// Returns the median over all pairs of a percentile of their quiet slices (0) or their flooded slices (1), in microseconds.
fn median_at(slices: &FloodSlices, at: usize, permille: usize) -> i64 {
    median(slices.iter().map(|pair| micros(pair[at].at(permille))))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// Returns the median of some numbers, rounded up.
fn median(numbers: impl Iterator<Item = i64>) -> i64 {
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}
