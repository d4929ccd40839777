//! Reports a campaign: distributions of interruptions, resources of keeper and host, and losses.

use crate::holding::ProcessResources;
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};

/// Longest interruptions of the embedded guests' traffic, one per event, by kind of event.
#[derive(Debug, Default)]
pub(crate) struct SoakInterruptions {
    pub(crate) hand_overs: Vec<Duration>,
    /// Interruptions of guests by crashes after which the keeper process started the next host at once.
    pub(crate) kills: Vec<Duration>,
    /// Interruptions of guests by crashes after which the keeper process delayed the next host, because hosts had
    /// crashed too often.
    pub(crate) kills_with_wait: Vec<Duration>,
    /// Longest interruptions of guests in the times before the campaign's events, which this machine itself causes.
    pub(crate) quiet: Vec<Duration>,
    /// Durations from an event until every connection of Linux guests had carried more bytes.
    pub(crate) recoveries: Vec<Duration>,
}

impl SoakInterruptions {
    /// Prints the campaign's progress to standard error.
    pub(crate) fn say(&self, number: u32, all: u32, start: Instant, lost: usize) {
        let worst = |gaps: &[Duration]| gaps.iter().max().copied().unwrap_or_default();
        eprintln!(
            "{number} of {all} after {} s; longest silence: hand-over {:.1?}, crash {:.1?}, with the keeper's wait {:.1?}; \
             Linux guests went on after {:.1?}; {lost} lost",
            start.elapsed().as_secs(),
            worst(&self.hand_overs),
            worst(&self.kills),
            worst(&self.kills_with_wait),
            self.recoveries.last().copied().unwrap_or_default(),
        );
    }

    pub(crate) fn distributions(&self) -> Vec<InterruptionDistribution> {
        let all_kills = [&self.kills[..], &self.kills_with_wait].concat();
        vec![
            InterruptionDistribution::of("hand-over", &self.hand_overs),
            InterruptionDistribution::of("crash", &all_kills),
            InterruptionDistribution::of("- started at once", &self.kills),
            InterruptionDistribution::of("- keeper waited", &self.kills_with_wait),
            InterruptionDistribution::of("nothing done", &self.quiet),
            InterruptionDistribution::of("Linux guests go on", &self.recoveries),
        ]
    }
}

/// Distribution of the interruptions by one kind of event: count, percentiles and maximum, milliseconds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct InterruptionDistribution {
    pub(crate) what: &'static str,
    pub(crate) count: usize,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl InterruptionDistribution {
    fn of(what: &'static str, gaps: &[Duration]) -> Self {
        let mut sorted: Vec<f64> = gaps.iter().map(|gap| gap.as_secs_f64() * 1e3).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().unwrap_or_default()
        };
        Self { what, count: sorted.len(), p50: at(50), p90: at(90), p99: at(99), max: at(100) }
    }
}

/// Kind and description of a loss that makes the campaign fail.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SoakFailure {
    Machine(String),
    /// A connection has ended, or carried bytes other than those sent.
    Connection(String),
    Other(String),
}

/// Outcome of a soak campaign, as the JSON report has it.
#[derive(Debug, Serialize)]
pub(crate) struct SoakOutcome {
    pub(crate) seed: u64,
    /// Way in which the port waits for doorbells: `sleep`, `mapped` or `busy`.
    pub(crate) wait: String,
    pub(crate) seconds: u64,
    pub(crate) embedded_guests: usize,
    pub(crate) linux_guests: usize,
    /// Longest interruption between two embedded guests per event, milliseconds.
    pub(crate) silences: Vec<InterruptionDistribution>,
    /// Number of compared bytes between embedded guests.
    pub(crate) bytes_embedded: u64,
    pub(crate) bytes_linux: u64,
    /// Resources of the keeper process before and after the campaign. The next field has those of the host process.
    pub(crate) keeper: [ProcessResources; 2],
    pub(crate) host: [ProcessResources; 2],
    /// Share of time in percent in which this machine's processors were in use. The next field is the share in which
    /// they served another machine.
    pub(crate) busy: f64,
    pub(crate) stolen: f64,
    pub(crate) losses: Vec<SoakFailure>,
}

impl SoakOutcome {
    /// Returns the numbers of lost machines, lost connections, and other losses.
    fn lost(&self) -> [usize; 3] {
        let count = |is: fn(&SoakFailure) -> bool| self.losses.iter().filter(|loss| is(loss)).count();
        [
            count(|loss| matches!(loss, SoakFailure::Machine(_))),
            count(|loss| matches!(loss, SoakFailure::Connection(_))),
            count(|loss| matches!(loss, SoakFailure::Other(_))),
        ]
    }
}

impl fmt::Display for SoakOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, wait, seconds, embedded_guests, linux_guests, busy, stolen, .. } = self;
        writeln!(
            f,
            "seed {seed}, {seconds} s, a port that waits \"{wait}\", {embedded_guests} embedded and {linux_guests} Linux guests"
        )?;
        writeln!(f, "processors busy {busy:.0} %, of which another machine's {stolen:.1} %")?;
        let title = "longest silence";
        writeln!(
            f,
            "{title:>20} {:>6} {:>9} {:>9} {:>9} {:>9}",
            "count", "p50 ms", "p90 ms", "p99 ms", "max ms"
        )?;
        for InterruptionDistribution { what, count, p50, p90, p99, max } in
            self.silences.iter().filter(|row| row.count > 0)
        {
            writeln!(f, "{what:>20} {count:>6} {p50:>9.1} {p90:>9.1} {p99:>9.1} {max:>9.1}")?;
        }
        for (who, [before, after]) in [("keeper", &self.keeper), ("host", &self.host)] {
            writeln!(
                f,
                "{who:>20} descriptors {} then {}; KiB of its own {} then {}, RSS {} then {}, PSS {} then {}",
                before.open(),
                after.open(),
                before.own_kib,
                after.own_kib,
                before.rss_kib,
                after.rss_kib,
                before.pss_kib,
                after.pss_kib,
            )?;
        }
        let mib = [self.bytes_embedded >> 20, self.bytes_linux >> 20];
        writeln!(f, "{:>20} {} MiB of embedded, {} MiB of Linux guests", "compared", mib[0], mib[1])?;
        let [machines, connections, others] = self.lost();
        writeln!(f, "{:>20} {machines} machines, {connections} connections, {others} others", "lost")?;
        for loss in &self.losses {
            let (SoakFailure::Machine(text) | SoakFailure::Connection(text) | SoakFailure::Other(text)) =
                loss;
            writeln!(f, "LOST: {text}")?;
        }
        Ok(())
    }
}
