//! A guest that plays audio beside a service domain that is always busy, both on one processor. The device consumes a
//! period of samples after the other and interrupts for each; the guest's player makes new ones. When the device finds
//! none, it has run under. Left out: the device's registers, and other guests.

use super::credit::{ACCOUNTING_MS, Credit};
use sim::{EventKey, EventQueue, Generator, Instant, Span};

/// What is varied.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The guest is of the real-time class.
    pub real_time: bool,
    /// The scheduler's tick, milliseconds.
    pub tick_ms: u16,
    /// Weights of guest and service domain.
    pub weights: (u16, u16),
    /// The guest's work for a period.
    pub work: Span,
    /// Decides phases.
    pub seed: u64,
    /// How long.
    pub span: Span,
}

/// The guest's work for a period: fitted to 2.47 underruns a second with the credit scheduler, ticks of 10 ms and weights
/// of 1 to 16 (Dong et al., SYSTOR 2009).
pub const WORK: Span = Span::from_micros(176);
/// A period: 512 samples at 48 kHz. The buffer has two, as players ask for that must not lag.
const PERIOD: Span = Span::from_nanos(10_666_667);
const PERIODS: u32 = 2;
/// How far the device's crystal may be from the processor's, in millionths.
const DRIFT: u64 = 200;

const GUEST: usize = 0;
const SERVICE: usize = 1;

#[derive(Debug, Clone, Copy)]
enum Event {
    Tick,
    Account,
    Period,
    /// The guest has made a period.
    Made,
    EndOfSlice,
}

struct Bench {
    credit: Credit,
    queue: EventQueue<Event>,
    /// The device's period by its own clock, and the mean work for one.
    period: Span,
    mean: Span,
    chance: Generator,
    /// The work for the period that is being made.
    work: Span,
    /// Periods in the buffer.
    filled: u32,
    /// Who runs; since when the guest does; what it has done of a period.
    runs: Option<usize>,
    since: Instant,
    done: Span,
    made: Option<EventKey>,
    slice: Option<EventKey>,
    underruns: u64,
}

impl Bench {
    /// Lets whoever is first run.
    fn reschedule(&mut self, now: Instant) {
        let next = self.credit.pick();
        if next == self.runs {
            return;
        }
        if self.runs == Some(GUEST) {
            self.done = self.done + now.since(self.since);
        }
        self.runs = next;
        self.since = now;
        let made = (next == Some(GUEST))
            .then(|| now + Span::from_picos(self.work.picos().saturating_sub(self.done.picos())));
        self.made = self.queue.replace(self.made, made, Event::Made);
        let end = now + Span::from_millis(ACCOUNTING_MS);
        self.slice = self.queue.replace(self.slice, Some(end), Event::EndOfSlice);
    }

    fn period(&mut self, now: Instant) {
        self.queue.schedule(now + self.period, Event::Period);
        match self.filled.checked_sub(1) {
            Some(rest) => self.filled = rest,
            None => self.underruns += 1,
        }
        self.credit.wake(GUEST);
    }

    /// The guest has made a period, and sleeps if the buffer is full.
    fn make(&mut self, now: Instant) {
        (self.made, self.done, self.since) = (None, Span::ZERO, now);
        let mean = self.mean.picos();
        self.work = Span::from_picos(self.chance.within(mean / 2..mean / 2 * 3 + 1));
        self.filled += 1;
        if self.filled >= PERIODS {
            self.credit.block();
        } else {
            self.made = Some(self.queue.schedule(now + self.work, Event::Made));
        }
    }
}

/// How often the device runs under in so much time.
#[must_use]
pub fn run(plan: &Plan) -> u64 {
    let vcpus = [(plan.weights.0, plan.real_time), (plan.weights.1, false)];
    let mut bench = Bench {
        credit: Credit::new(&vcpus, plan.tick_ms),
        queue: EventQueue::new(),
        period: PERIOD,
        mean: plan.work,
        chance: Generator::named(plan.seed, "work"),
        work: plan.work,
        filled: PERIODS,
        runs: None,
        since: Instant::ZERO,
        done: Span::ZERO,
        made: None,
        slice: None,
        underruns: 0,
    };
    let mut phases = Generator::named(plan.seed, "phases");
    let drift = phases.below(2 * DRIFT + 1);
    bench.period = Span::from_picos(PERIOD.picos() / 1_000_000 * (1_000_000 - DRIFT + drift));
    let mut phase = |period: Span| Instant::ZERO + Span::from_picos(phases.below(period.picos()));
    let tick = Span::from_millis(plan.tick_ms.max(1).into());
    let accounting = Span::from_millis(ACCOUNTING_MS);
    bench.queue.schedule(phase(tick), Event::Tick);
    bench.queue.schedule(phase(accounting), Event::Account);
    bench.queue.schedule(phase(PERIOD), Event::Period);
    bench.credit.wake(SERVICE);
    bench.reschedule(Instant::ZERO);
    let end = Instant::ZERO + plan.span;
    while let Some((now, event)) = bench.queue.pop_before(end) {
        match event {
            Event::Tick => {
                bench.queue.schedule(now + tick, event);
                bench.credit.tick();
            }
            Event::Account => {
                bench.queue.schedule(now + accounting, event);
                bench.credit.account();
            }
            Event::Period => bench.period(now),
            Event::Made => bench.make(now),
            Event::EndOfSlice => {
                bench.slice = None;
                bench.credit.end_slice();
                if bench.runs == Some(GUEST) {
                    bench.done = bench.done + now.since(bench.since);
                }
                bench.runs = None;
            }
        }
        bench.reschedule(now);
    }
    bench.underruns
}

#[cfg(test)]
mod tests {
    use super::{Plan, WORK, run};
    use sim::Span;

    fn rate(real_time: bool, tick_ms: u16, weights: (u16, u16)) -> f64 {
        let (seconds, seeds) = (60, 32);
        let span = Span::from_secs(seconds);
        let plan = |seed| Plan { real_time, tick_ms, weights, work: WORK, seed, span };
        (0..seeds).map(|seed| run(&plan(seed))).sum::<u64>() as f64 / (seconds * seeds) as f64
    }

    #[test]
    fn the_rate_that_it_was_calibrated_on_comes_out() {
        let rate = rate(false, 10, (1, 16));
        assert!((rate / 2.47 - 1.0).abs() < 0.15, "{rate}");
    }

    #[test]
    fn a_player_of_the_real_time_class_never_runs_under() {
        for tick_ms in [10, 1] {
            for weights in [(1, 16), (1, 1)] {
                assert!(rate(true, tick_ms, weights) < 1e-9);
            }
        }
    }

    #[test]
    fn more_weight_is_fewer_underruns() {
        assert!(rate(false, 10, (1, 1)) < rate(false, 10, (1, 16)));
    }
}
