//! Round trips of two guests while other guests flood the port: as a table in every test run, and judged by the clock in a campaign.

use crate::support::eventually;
use rustix::process::Pid;
use rustix::thread::gettid;
use std::process::Command;
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

/// Slices in which a flood is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FloodSchedule {
    /// Number of pairs of a quiet and a flooded slice.
    pairs: usize,
    /// Number of round trips in a slice.
    count: usize,
    /// True if the clock judges the slices. The flooding guests then get the processors that the port and the measured guests
    /// leave, and flood nothing if none is left.
    judged: bool,
}

/// Round trips of two guests.
struct MeasuredRoundTrips {
    /// Times of the round trips, shortest first.
    times: Vec<Duration>,
    lost: usize,
    /// Number of the actions of each flooding guest meanwhile.
    actions: Vec<u64>,
}

impl MeasuredRoundTrips {
    /// Measures `count` round trips. `exchange` makes one, and returns false if a frame is lost.
    fn measure(count: usize, exchange: &mut dyn FnMut(usize) -> bool) -> Self {
        let mut measured = Self { times: Vec::with_capacity(count), lost: 0, actions: Vec::new() };
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

    /// Returns the time below which this share of the round trips is. A lost one takes [`LOST`].
    fn at(&self, permille: usize) -> Duration {
        let all = self.times.len() + self.lost;
        self.times.get((all * permille / 1000).min(all.saturating_sub(1))).copied().unwrap_or(LOST)
    }

    /// Returns the number of actions of the flooding guest with the fewest, or `None` without such guests.
    fn least_actions(&self) -> Option<u64> {
        self.actions.iter().copied().min()
    }
}

/// Switch of the flooding guests.
struct FloodSwitch {
    /// [`SPINNING`], [`FLOODING`] or [`ENDED`].
    state: AtomicU8,
    /// Number of actions by which each guest has flooded the port.
    actions: Vec<AtomicU64>,
}

impl FloodSwitch {
    fn actions(&self) -> Vec<u64> {
        self.actions.iter().map(|actions| actions.load(Ordering::Relaxed)).collect()
    }
}

const SPINNING: u8 = 0;
const FLOODING: u8 = 1;
const ENDED: u8 = 2;

/// Slices of round trips, quiet and flooded in turn.
pub(crate) struct FloodSlices(Vec<[MeasuredRoundTrips; 2]>);

/// Measures slices of round trips while guests, each on a thread of its own, spin or repeat `flood` in turn. `exchange` makes a round
/// trip, and returns false if a frame is lost.
pub(crate) fn measure_beside<G: Send>(
    guests: Vec<G>,
    flood: impl Fn(&mut G) + Sync,
    schedule: FloodSchedule,
    exchange: &mut dyn FnMut(usize) -> bool,
) -> FloodSlices {
    let actions = guests.iter().map(|_| AtomicU64::new(0)).collect();
    let switch = FloodSwitch { state: AtomicU8::new(SPINNING), actions };
    thread::scope(|scope| {
        for (mut guest, actions) in guests.into_iter().zip(&switch.actions) {
            let (state, flood) = (&switch.state, &flood);
            scope.spawn(move || {
                if schedule.judged {
                    // A flood is judged by what it costs the port. A guest with processors of its own takes no time of the two.
                    leave_processors(gettid());
                }
                loop {
                    match state.load(Ordering::Relaxed) {
                        SPINNING => (0..1000).for_each(|_| std::hint::spin_loop()),
                        FLOODING => {
                            flood(&mut guest);
                            actions.fetch_add(1, Ordering::Relaxed);
                        }
                        _ => break drop(guest),
                    }
                }
            });
        }
        let _end = FloodEnd(&switch.state);
        slices(&switch, schedule, exchange)
    })
}

/// Lets a thread run only while a processor has nothing else to do (`SCHED_IDLE`). At the lowest nice value it would keep its
/// processor for up to a millisecond from a thread that wakes up.
fn leave_processors(thread: Pid) {
    let id = thread.as_raw_nonzero().to_string();
    let ended = Command::new("chrt").args(["--idle", "--pid", "0", &id]).status();
    assert!(ended.expect("cannot run chrt; install util-linux").success());
}

/// Ends the flooding guests when it is dropped, also by a failed check.
struct FloodEnd<'a>(&'a AtomicU8);

impl Drop for FloodEnd<'_> {
    fn drop(&mut self) {
        self.0.store(ENDED, Ordering::Relaxed);
    }
}

/// Measures pairs of slices. The machine's speed changes over minutes, and a pair of slices takes seconds.
fn slices(
    switch: &FloodSwitch,
    schedule: FloodSchedule,
    exchange: &mut dyn FnMut(usize) -> bool,
) -> FloodSlices {
    let mut slice = |state| {
        let before = switch.actions();
        switch.state.store(state, Ordering::Relaxed);
        if state == FLOODING && !schedule.judged {
            let floods = || switch.actions().iter().zip(&before).all(|(now, before)| now > before);
            eventually("each guest floods the port", floods);
        }
        MeasuredRoundTrips::measure(SETTLING, exchange);
        let before = switch.actions();
        let measured = MeasuredRoundTrips::measure(schedule.count, exchange);
        let actions = switch.actions().iter().zip(before).map(|(now, before)| now - before).collect();
        MeasuredRoundTrips { actions, ..measured }
    };
    FloodSlices((0..schedule.pairs).map(|_| [SPINNING, FLOODING].map(&mut slice)).collect())
}

/// Floods by name, each an action of a flooding guest.
type NamedFloods<'a, F> = &'a [(&'a str, F)];

/// Judges the floods by the clock if the environment has the number of round trips of a slice, or else prints few round trips.
/// `measure` returns the slices of a flood by a number of guests. `broadcasts` reach the two guests too.
pub(crate) fn test_floods<F: Copy>(
    floods: NamedFloods<'_, F>,
    broadcasts: NamedFloods<'_, F>,
    measure: impl Fn(F, u8, FloodSchedule) -> FloodSlices,
) {
    match std::env::var("SOFTIOV_NEIGHBOUR_ROUNDS").ok().and_then(|count| count.parse().ok()) {
        Some(count) => judge_floods([floods, broadcasts], count, measure),
        None => [floods, broadcasts].iter().for_each(|floods| print_floods(floods, &measure)),
    }
}

/// Prints the round trips beside each flood by one guest, which may not starve the two.
fn print_floods<F: Copy>(floods: NamedFloods<'_, F>, measure: &impl Fn(F, u8, FloodSchedule) -> FloodSlices) {
    println!("| flood | p50, us | p99 | lost | quiet p50, p99 |");
    println!("|---|--:|--:|--:|--:|");
    for &(what, flood) in floods {
        for [quiet, flooded] in measure(flood, 1, FloodSchedule { pairs: 1, count: FEW, judged: false }).0 {
            let [before, after] =
                [&quiet, &flooded].map(|slice| [500, 990].map(|at| slice.at(at).as_micros()));
            let lost = flooded.lost;
            println!("| {what} | {} | {} | {lost} | {}, {} |", after[0], after[1], before[0], before[1]);
            assert!(flooded.at(500) < LOST, "{what} starves the pair");
        }
    }
}

/// Judges floods by one guest and by six, and prints a table. A guest that receives broadcasts has to handle each of them before
/// its own frame, so only the loss is judged beside those.
fn judge_floods<F: Copy>(
    [floods, broadcasts]: [NamedFloods<'_, F>; 2],
    count: usize,
    measure: impl Fn(F, u8, FloodSchedule) -> FloodSlices,
) {
    println!(
        "| flood | VFs | quiet p50 (p99), us | flooded p50 (p99), us | p99 added, us | lost | actions of each guest in a slice, at \
         least | verdict |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|---|");
    let (mut failed, mut undecided) = (Vec::new(), Vec::new());
    // Part of the names of the floods that are judged.
    let wanted = std::env::var("SOFTIOV_NEIGHBOUR_FLOOD").unwrap_or_default();
    if !floods.iter().chain(broadcasts).any(|(what, _)| what.contains(&wanted)) {
        println!("no flood of these has {wanted:?} in its name");
    }
    for (flooders, bound) in BOUNDS {
        let bounded = floods.iter().map(|flood| (flood, Some(bound)));
        let all = bounded.chain(broadcasts.iter().map(|flood| (flood, None)));
        for (&(what, flood), bound) in all.filter(|((what, _), _)| what.contains(&wanted)) {
            let slices = measure(flood, flooders, FloodSchedule { pairs: PAIRS, count, judged: true });
            let verdict = slices.judge(bound);
            println!("| {what} | {flooders} | {} | {} |", slices.row(), verdict.name());
            match verdict {
                FloodVerdict::Holds => {}
                FloodVerdict::Fails => failed.push(format!("{what} by {flooders}")),
                FloodVerdict::NoFlood => undecided.push(format!("{what} by {flooders}")),
            }
        }
    }
    assert!(
        failed.is_empty() && undecided.is_empty(),
        "floods beyond their bounds: {failed:?}; no verdict, since a guest flooded nothing in a slice (give the machine more \
         processors, or end its other load): {undecided:?}"
    );
}

/// Verdict on a flood of the campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FloodVerdict {
    Holds,
    Fails,
    /// A guest has flooded nothing in a slice, without a processor left for it.
    NoFlood,
}

impl FloodVerdict {
    fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "FAILS",
            Self::NoFlood => "no flood",
        }
    }
}

impl FloodSlices {
    /// Judges a flood. The 99th percentile of a flooded slice may be that of the quiet slice before it and the bound, if there is one,
    /// in the median of the pairs. Less than 1 % of the flooded round trips may be lost.
    fn judge(&self, bound: Option<Duration>) -> FloodVerdict {
        let is_fast = bound.is_none_or(|bound| self.added() <= micros(bound));
        match self.least_actions() {
            Some(1..) if is_fast && self.loss() < MOST_LOSS => FloodVerdict::Holds,
            Some(1..) => FloodVerdict::Fails,
            Some(0) | None => FloodVerdict::NoFlood,
        }
    }

    /// Returns the least number of actions of a guest in a flooded slice.
    fn least_actions(&self) -> Option<u64> {
        self.0.iter().map(|[_, flooded]| flooded.least_actions()).min().flatten()
    }

    /// Returns the cells of a flood's row: percentiles, the addition, the loss and the actions.
    fn row(&self) -> String {
        let [quiet, flooded] = [0, 1].map(|at| {
            let of_pairs = |permille| median(self.0.iter().map(|pair| micros(pair[at].at(permille))));
            format!("{} ({})", of_pairs(500), of_pairs(990))
        });
        let least = self.least_actions().unwrap_or(0);
        format!("{quiet} | {flooded} | {} | {:.1} % | {least}", self.added(), self.loss())
    }

    /// Returns by how much the flood raises the 99th percentile in microseconds, in the median of the pairs.
    fn added(&self) -> i64 {
        median(self.0.iter().map(|[quiet, flooded]| micros(flooded.at(990)) - micros(quiet.at(990))))
    }

    /// Returns the share of lost round trips beside the flood, in percent.
    fn loss(&self) -> f64 {
        let flooded = || self.0.iter().map(|[_, flooded]| flooded);
        let lost: usize = flooded().map(|slice| slice.lost).sum();
        let arrived: usize = flooded().map(|slice| slice.times.len()).sum();
        100.0 * lost as f64 / (lost + arrived) as f64
    }
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

/// Returns a slice of `arrived` round trips of 50 us.
fn slice_of(arrived: usize, lost: usize, actions: &[u64]) -> MeasuredRoundTrips {
    MeasuredRoundTrips { times: vec![Duration::from_micros(50); arrived], lost, actions: actions.to_vec() }
}

#[test]
fn lost_round_trips_count_in_the_percentiles() {
    let [few, many] = [slice_of(21, 19, &[]), slice_of(19, 21, &[])].map(|slice| slice.at(500));
    assert_eq!([few, many], [Duration::from_micros(50), LOST]);
}

#[test]
fn flood_without_an_action_of_each_guest_gets_no_verdict() {
    let judge = |lost, actions: &[u64]| {
        FloodSlices(vec![[slice_of(1000, 0, &[]), slice_of(1000, lost, actions)]]).judge(Some(BOUNDS[0].1))
    };
    assert_eq!(judge(0, &[12, 0]), FloodVerdict::NoFlood);
    assert_eq!(judge(0, &[1, 1]), FloodVerdict::Holds);
    assert_eq!(judge(30, &[1, 1]), FloodVerdict::Fails);
}
