//! The events, one after the other, and what is checked after each.

use crate::Options;
use crate::embedded::Embedded;
use crate::random::Random;
use crate::report::{Distribution, Outcome};
use crate::served::{Holding, Served};
use anyhow::{Result, ensure};
use rustix::process::Pid;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The keeper waits before it starts a host if so many have died within so long, and forgets them after a hand-over.
const DEATHS: usize = 4;
const PERIOD: Duration = Duration::from_secs(61);
/// Until an event at most.
const PAUSE: Duration = Duration::from_millis(400);
/// How long descriptors may take to be as many as they were.
const SETTLING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// Answers that show that a path is alive.
const ALIVE: u64 = 30;
/// So often something is said.
const SIGN_OF_LIFE: u32 = 10;
/// What keeper and host may grow by, KiB: allocators do not give everything back.
const GROWTH: u64 = 2_048;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    HandOver,
    Kill,
}

/// What goes on when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// Nothing: requests begin with the event.
    Idle,
    Requests,
    Streams,
}

/// A campaign under way. Guests end before their host.
#[derive(Debug)]
pub(crate) struct Campaign {
    options: Options,
    seed: u64,
    random: Random,
    embedded: Embedded,
    served: Served,
    host: Pid,
    before: [Holding; 2],
    deaths: VecDeque<Instant>,
    hand_overs: Vec<Duration>,
    kills: Vec<Duration>,
    quiet: Vec<Duration>,
    losses: Vec<String>,
}

impl Campaign {
    /// Starts host and guests.
    pub(crate) fn begin(options: &Options, seed: u64) -> Result<Self> {
        let served = Served::start()?;
        let embedded = Embedded::attach(&served)?;
        let host = served.host(None)?;
        // A host that has taken over holds more than the first: what it was given.
        served.hand_over()?;
        let host = served.host(Some(host))?;
        embedded.wait_links()?;
        std::thread::sleep(PAUSE);
        let before = served.holding(host)?;
        Ok(Self {
            options: options.clone(),
            seed,
            random: Random(seed),
            embedded,
            served,
            host,
            before,
            deaths: VecDeque::new(),
            hand_overs: Vec::new(),
            kills: Vec::new(),
            quiet: Vec::new(),
            losses: Vec::new(),
        })
    }

    /// Runs it to its end, or to the first event that nobody comes back from.
    pub(crate) fn run(mut self) -> Outcome {
        let start = Instant::now();
        let all = self.options.hand_overs + self.options.kills;
        for number in 1..=all {
            let (event, load) = self.draw();
            let what = format!("event {number}, {event:?} with {load:?}");
            let happened = self.happen(event, load);
            let lost = self.embedded.losses();
            self.losses.extend(lost.into_iter().map(|loss| format!("{what}: {loss}")));
            match happened.and_then(|gap| self.settle().map(|()| gap)) {
                Ok(gap) if event == Event::HandOver => self.hand_overs.push(gap),
                Ok(gap) => self.kills.push(gap),
                Err(error) => {
                    self.losses.push(format!("{what}: {error:#}"));
                    eprintln!("{}", self.served.log());
                    break;
                }
            }
            if number % SIGN_OF_LIFE == 0 || number == all {
                self.say(number, all, start);
            }
        }
        self.embedded.finish();
        self.losses.extend(self.embedded.losses());
        self.outcome(start)
    }

    fn say(&self, number: u32, all: u32, start: Instant) {
        let worst = |gaps: &[Duration]| gaps.iter().max().copied().unwrap_or_default();
        eprintln!(
            "{number} of {all} after {} s; longest silence: hand-over {:.1?}, crash {:.1?}; {} lost",
            start.elapsed().as_secs(),
            worst(&self.hand_overs),
            worst(&self.kills),
            self.losses.len()
        );
    }

    /// What happens next: each of what is left is as likely.
    fn draw(&mut self) -> (Event, Load) {
        let hand_overs = u64::from(self.options.hand_overs) - self.hand_overs.len() as u64;
        let kills = u64::from(self.options.kills) - self.kills.len() as u64;
        while self.deaths.front().is_some_and(|death| death.elapsed() > PERIOD) {
            self.deaths.pop_front();
        }
        let full = self.deaths.len() >= DEATHS;
        let drawn = self.random.below(hand_overs + kills);
        let event =
            if hand_overs > 0 && (drawn < hand_overs || full) { Event::HandOver } else { Event::Kill };
        if event == Event::Kill && full {
            let wait =
                self.deaths.front().map_or(Duration::ZERO, |death| PERIOD.saturating_sub(death.elapsed()));
            std::thread::sleep(wait);
        }
        let load = [Load::Idle, Load::Requests, Load::Streams][self.random.below(3) as usize];
        (event, load)
    }

    /// Has it happen, and answers the longest silence.
    fn happen(&mut self, event: Event, load: Load) -> Result<Duration> {
        self.embedded.let_flow(load == Load::Streams);
        let before = if load == Load::Idle { None } else { Some(self.embedded.pulse()?) };
        if let Some(pulse) = &before {
            self.embedded.wait_answers(pulse, ALIVE)?;
            pulse.take_longest();
        }
        std::thread::sleep(self.random.time(PAUSE));
        if let Some(pulse) = &before {
            self.quiet.push(pulse.take_longest());
        }
        let after = match event {
            Event::HandOver => {
                let pulse = before.map_or_else(|| self.embedded.pulse(), Ok)?;
                self.served.hand_over()?;
                self.deaths.clear();
                pulse
            }
            Event::Kill => {
                self.served.kill(self.host)?;
                self.deaths.push_back(Instant::now());
                before.map_or_else(|| self.embedded.pulse(), Ok)?
            }
        };
        self.host = self.served.host(Some(self.host))?;
        self.embedded.wait_answers(&after, ALIVE)?;
        let gap = after.take_longest();
        self.embedded.wait_links()?;
        Ok(gap)
    }

    /// Descriptors are as many as they were, after a while.
    fn settle(&mut self) -> Result<()> {
        self.embedded.let_flow(false);
        let deadline = Instant::now() + SETTLING;
        loop {
            let now = self.served.holding(self.host)?.map(|holding| holding.descriptors);
            let before = self.before.map(|holding| holding.descriptors);
            if now == before {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "keeper and host hold {now:?} descriptors instead of {before:?}"
            );
            std::thread::sleep(LOOK);
        }
    }

    fn outcome(mut self, start: Instant) -> Outcome {
        let after = self.served.holding(self.host).unwrap_or(self.before);
        for ((who, before), after) in ["keeper", "host"].into_iter().zip(self.before).zip(after) {
            if after.memory_kib > before.memory_kib + GROWTH {
                self.losses.push(format!("the {who} has grown from {before:?} to {after:?}"));
            }
        }
        Outcome {
            seed: self.seed,
            seconds: start.elapsed().as_secs(),
            hand_over: Distribution::of(&self.hand_overs),
            crash: Distribution::of(&self.kills),
            quiet: Distribution::of(&self.quiet),
            bytes: self.embedded.bytes(),
            before: self.before,
            after,
            losses: self.losses,
        }
    }
}
