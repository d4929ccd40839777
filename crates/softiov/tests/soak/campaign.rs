//! Performs the events of the soak campaign (hand-overs and crashes), one after the other, and the checks
//! after each.

use crate::SoakOptions;
use crate::embedded::EmbeddedGuests;
use crate::holding::{ProcessResources, ProcessorTicks};
use crate::machines::LinuxGuestGroup;
use crate::random::RandomGenerator;
use crate::report::{SoakFailure, SoakInterruptions, SoakOutcome};
use crate::served::HostWithKeeper;
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// Minimum pause between two events of the soak campaign. The maximum of the random time that is added to it follows.
const PAUSE: Duration = Duration::from_millis(200);
const MORE: Duration = Duration::from_millis(2_800);
/// Number of soak campaign events between two checks of recovery. A check covers links, connections and file
/// descriptors.
const REST: u32 = 10;
/// Timeout for the number of open file descriptors to return to its value at the start.
const SETTLING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// Number of further answered requests that proves that two embedded guests reach each other.
const ALIVE: u64 = 30;
/// Memory in KiB by which keeper and host may grow in the campaign: allocators do not return everything.
const GROWTH: u64 = 2_048;
/// Log message of the keeper process for a host that has died. The message for a delayed start, after too many deaths,
/// follows.
const DEATH: &str = "; starting the host again";
const WAITS: &str = "the next start is in";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SoakEvent {
    HandOver,
    Kill,
}

impl SoakEvent {
    /// Returns the maximum interruption of guests that this event should cause on an otherwise idle machine.
    fn goal(self) -> Duration {
        match self {
            Self::HandOver => Duration::from_millis(50),
            Self::Kill => Duration::from_millis(1_500),
        }
    }
}

/// Traffic between guests while an event happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SoakTraffic {
    /// No traffic between guests before the event; requests begin with the event.
    Idle,
    Requests,
    Streams,
}

/// Running soak campaign with its host, guests and results so far. Guests are dropped before their host.
#[derive(Debug)]
pub(crate) struct SoakCampaign {
    seed: u64,
    wait: String,
    random: RandomGenerator,
    /// Number of hand-overs that the campaign still has to perform.
    hand_overs: u32,
    kills: u32,
    embedded: EmbeddedGuests,
    machines: LinuxGuestGroup,
    served: HostWithKeeper,
    host: Pid,
    before: [ProcessResources; 2],
    ticks: ProcessorTicks,
    gaps: SoakInterruptions,
    losses: Vec<SoakFailure>,
}

impl SoakCampaign {
    /// Starts the campaign's host and guests, performs a first hand-over, and reads the resources before the
    /// events.
    pub(crate) fn begin(options: &SoakOptions, seed: u64) -> Result<Self> {
        let served = HostWithKeeper::start(&format!("[[port]]\nwait = \"{}\"\n", options.wait))?;
        let machines =
            if options.embedded_only { LinuxGuestGroup::none() } else { LinuxGuestGroup::boot(&served)? };
        let embedded = EmbeddedGuests::attach(&served)?;
        let host = served.host(None)?;
        // A successor holds more than the first host: the descriptors that were handed over.
        served.softiov("upgrade")?;
        let host = served.host(Some(host))?;
        embedded.wait_links()?;
        std::thread::sleep(PAUSE);
        let before = ProcessResources::of(&served, host)?;
        Ok(Self {
            seed,
            wait: options.wait.clone(),
            random: RandomGenerator(seed),
            hand_overs: options.hand_overs,
            kills: options.kills,
            embedded,
            machines,
            served,
            host,
            before,
            ticks: ProcessorTicks::now()?,
            gaps: SoakInterruptions::default(),
            losses: Vec::new(),
        })
    }

    /// Runs the campaign to its end, or to the first event after which no connection recovers.
    pub(crate) fn run(mut self) -> Result<SoakOutcome> {
        let start = Instant::now();
        let all = self.hand_overs + self.kills;
        for number in 1..=all {
            let (event, load) = self.draw();
            let what = format!("event {number}, {event:?} with {load:?}");
            let mut happened = self.happen(event, load).map(|gap| {
                if gap > event.goal() {
                    eprintln!("{what}: silent for {gap:.1?}");
                }
            });
            if number % REST == 0 || number == all {
                happened = happened.and_then(|()| self.rest());
                self.gaps.say(number, all, start, self.losses.len());
            }
            self.look(&what);
            if let Err(error) = happened {
                self.losses.push(SoakFailure::Other(format!("{what}: {error:#}")));
                eprintln!("{}", self.served.log());
                return self.outcome(start);
            }
        }
        if let Err(error) = self.machines.finish() {
            self.losses.push(SoakFailure::Connection(format!("at the end: {error:#}")));
        }
        self.embedded.finish();
        self.look("at the end");
        self.outcome(start)
    }

    /// Draws the next event, in proportion to the events that remain, and the traffic during it.
    fn draw(&mut self) -> (SoakEvent, SoakTraffic) {
        let left = u64::from(self.hand_overs + self.kills);
        let event = if self.random.below(left) < self.hand_overs.into() {
            self.hand_overs -= 1;
            SoakEvent::HandOver
        } else {
            self.kills -= 1;
            SoakEvent::Kill
        };
        let load =
            [SoakTraffic::Idle, SoakTraffic::Requests, SoakTraffic::Streams][self.random.below(3) as usize];
        (event, load)
    }

    /// Performs an event under traffic, and records and returns the longest interruption of the embedded
    /// guests.
    fn happen(&mut self, event: SoakEvent, load: SoakTraffic) -> Result<Duration> {
        self.embedded.let_flow(load == SoakTraffic::Streams);
        self.machines.let_flow(load != SoakTraffic::Idle)?;
        let before = if load == SoakTraffic::Idle { None } else { Some(self.embedded.pulse()?) };
        if let Some(pulse) = &before {
            self.embedded.wait_answers(pulse, ALIVE)?;
            pulse.take_longest();
        }
        std::thread::sleep(PAUSE + self.random.time(MORE));
        if let Some(pulse) = &before {
            self.gaps.quiet.push(pulse.take_longest());
        }
        let waits = self.keepers_waits();
        let pulse = match event {
            SoakEvent::HandOver => {
                let pulse = before.map_or_else(|| self.embedded.pulse(), Ok)?;
                self.served.softiov("upgrade")?;
                pulse
            }
            SoakEvent::Kill => {
                kill_process(self.host, Signal::KILL).context("cannot kill the host")?;
                before.map_or_else(|| self.embedded.pulse(), Ok)?
            }
        };
        self.host = self.served.host(Some(self.host))?;
        self.embedded.wait_answers(&pulse, ALIVE)?;
        let gap = pulse.take_longest();
        self.embedded.let_flow(false);
        match event {
            SoakEvent::HandOver => self.gaps.hand_overs.push(gap),
            SoakEvent::Kill if self.keepers_waits() == waits => self.gaps.kills.push(gap),
            SoakEvent::Kill => self.gaps.kills_with_wait.push(gap),
        }
        self.embedded.wait_links().map(|()| gap)
    }

    /// Returns the number of times that the keeper process delayed the start of a host.
    fn keepers_waits(&self) -> usize {
        self.served.log().matches(WAITS).count()
    }

    /// Returns the number of hosts that died without having been killed.
    fn unwanted_deaths(&self) -> usize {
        let killed = self.gaps.kills.len() + self.gaps.kills_with_wait.len();
        self.served.log().matches(DEATH).count().saturating_sub(killed)
    }

    /// Checks that every connection of Linux guests carries bytes, and that keeper and host hold as many file
    /// descriptors as at the start.
    fn rest(&mut self) -> Result<()> {
        let back = self.machines.wait_moving()?;
        if self.machines.count() > 0 {
            self.gaps.recoveries.push(back);
        }
        let deadline = Instant::now() + SETTLING;
        loop {
            let now = ProcessResources::of(&self.served, self.host)?.map(|holding| holding.descriptors);
            let before = self.before.each_ref().map(|holding| &holding.descriptors);
            if now.each_ref() == before {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "keeper and host hold descriptors {now:?} instead of {before:?}"
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Records Linux guests and connections that have ended as losses of the campaign.
    fn look(&mut self, what: &str) {
        for [machines, connections] in [self.embedded.losses(), self.machines.losses()] {
            let machines = machines.into_iter().map(|loss| SoakFailure::Machine(format!("{what}: {loss}")));
            let connections =
                connections.into_iter().map(|loss| SoakFailure::Connection(format!("{what}: {loss}")));
            self.losses.extend(machines.chain(connections));
        }
    }

    fn outcome(mut self, start: Instant) -> Result<SoakOutcome> {
        let after = ProcessResources::of(&self.served, self.host).unwrap_or_default();
        for ((who, before), after) in ["keeper", "host"].into_iter().zip(&self.before).zip(&after) {
            if after.own_kib > before.own_kib + GROWTH {
                let (before, after) = (before.own_kib, after.own_kib);
                self.losses
                    .push(SoakFailure::Other(format!("the {who} has grown from {before} to {after} KiB")));
            }
        }
        let deaths = self.unwanted_deaths();
        if deaths > 0 {
            eprintln!("{}", self.served.log());
            self.losses.push(SoakFailure::Other(format!("{deaths} hosts have died by themselves")));
        }
        let [busy, stolen] = ProcessorTicks::now()?.since(self.ticks);
        Ok(SoakOutcome {
            seed: self.seed,
            wait: self.wait.clone(),
            seconds: start.elapsed().as_secs(),
            embedded_guests: self.embedded.count(),
            linux_guests: self.machines.count(),
            silences: self.gaps.distributions(),
            bytes_embedded: self.embedded.bytes(),
            bytes_linux: self.machines.bytes(),
            keeper: [self.before[0].clone(), after[0].clone()],
            host: [self.before[1].clone(), after[1].clone()],
            busy,
            stolen,
            losses: self.losses,
        })
    }
}
