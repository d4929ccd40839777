//! What has come out: distributions of gaps, what keeper and host held, what was lost.

use crate::served::Holding;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Silences, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Distribution {
    pub(crate) count: usize,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Distribution {
    pub(crate) fn of(gaps: &[Duration]) -> Self {
        let mut sorted: Vec<f64> = gaps.iter().map(|gap| gap.as_secs_f64() * 1e3).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().unwrap_or_default()
        };
        Self { count: sorted.len(), p50: at(50), p99: at(99), max: at(100) }
    }
}

/// The outcome of a campaign.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) seed: u64,
    pub(crate) seconds: u64,
    /// Longest silence between two embedded guests, milliseconds an event.
    pub(crate) hand_over: Distribution,
    pub(crate) crash: Distribution,
    /// The longest silence while nothing was done to the host: what the machine itself adds.
    pub(crate) quiet: Distribution,
    /// Bytes of streams that were compared.
    pub(crate) bytes: u64,
    /// Keeper and host, before and after.
    pub(crate) before: [Holding; 2],
    pub(crate) after: [Holding; 2],
    pub(crate) losses: Vec<String>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, {} s, 4 embedded guests", self.seed, self.seconds)?;
        writeln!(
            f,
            "{:>20} {:>7} {:>9} {:>9} {:>9}",
            "longest silence", "count", "p50 ms", "p99 ms", "max ms"
        )?;
        let rows = [("hand-over", self.hand_over), ("crash", self.crash), ("nothing done", self.quiet)];
        for (what, Distribution { count, p50, p99, max }) in rows {
            writeln!(f, "{what:>20} {count:>7} {p50:>9.1} {p99:>9.1} {max:>9.1}")?;
        }
        for (who, place) in [("keeper", 0), ("host", 1)] {
            let (before, after) = (self.before[place], self.after[place]);
            writeln!(
                f,
                "{who:>20} descriptors {} then {}, memory of its own {} then {} KiB",
                before.descriptors, after.descriptors, before.memory_kib, after.memory_kib
            )?;
        }
        writeln!(f, "{:>20} {} MiB compared, {} lost", "streams", self.bytes >> 20, self.losses.len())?;
        self.losses.iter().try_for_each(|loss| writeln!(f, "LOST: {loss}"))
    }
}
