//! Repetitions and their median. Left out: outliers told apart from the rest; a median does not mind them.

use super::{Sample, Unmeasured};
use crate::poll::Clock;

/// Nanoseconds that a repetition takes at least: little enough that most of them are not interrupted by others.
const LONG_ENOUGH: u64 = 500_000;
/// No repetition is of more operations, however fast they seem.
const MOST: u32 = 1 << 26;
const REPETITIONS: usize = 31;

/// Nanoseconds for each operation; `batch` does so many and answers how many nanoseconds they took.
pub(super) fn per_operation(
    mut batch: impl FnMut(u32) -> Result<u64, Unmeasured>,
) -> Result<Sample, Unmeasured> {
    let mut count = 16;
    while batch(count)? < LONG_ENOUGH && count < MOST {
        count *= 2;
    }
    let mut found = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        found.push(batch(count)? as f64 / f64::from(count));
    }
    found.sort_by(f64::total_cmp);
    Ok(Sample { median: found[REPETITIONS / 2], least: found[0], most: found[REPETITIONS - 1] })
}

/// As [`per_operation`], of an operation.
pub(super) fn each(mut operation: impl FnMut() -> Result<(), Unmeasured>) -> Result<Sample, Unmeasured> {
    per_operation(|count| timed(|| (0..count).try_for_each(|_| operation())))
}

/// How many nanoseconds it took.
pub(super) fn timed(work: impl FnOnce() -> Result<(), Unmeasured>) -> Result<u64, Unmeasured> {
    let begun = Clock.now_ns();
    work()?;
    Ok(Clock.now_ns() - begun)
}

impl Sample {
    /// The same times a factor.
    pub(super) fn times(self, factor: f64) -> Self {
        Self { median: self.median * factor, least: self.least * factor, most: self.most * factor }
    }
}
