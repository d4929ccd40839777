//! Repeats measurements and takes their median, which ignores outliers.

use super::{DurationProbeError, DurationProbeResult};
use crate::poll::MonotonicClock;

/// Minimum duration in nanoseconds of a measurement's repetition: short enough that most repetitions are not
/// interrupted.
const LONG_ENOUGH: u64 = 500_000;
/// Maximum number of operations in one repetition of a measurement.
const MOST: u32 = 1 << 26;
const REPETITIONS: usize = 31;

/// Measures an operation's duration in nanoseconds. `batch` performs the given number of operations and returns their
/// duration in nanoseconds.
pub(super) fn per_operation(
    mut batch: impl FnMut(u32) -> Result<u64, DurationProbeError>,
) -> Result<DurationProbeResult, DurationProbeError> {
    let mut count = 16;
    while batch(count)? < LONG_ENOUGH && count < MOST {
        count *= 2;
    }
    let mut found = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        found.push(batch(count)? as f64 / f64::from(count));
    }
    found.sort_by(f64::total_cmp);
    Ok(DurationProbeResult { median: found[REPETITIONS / 2], least: found[0], most: found[REPETITIONS - 1] })
}

/// Measures the nanoseconds that one call of `operation` takes.
pub(super) fn each(
    mut operation: impl FnMut() -> Result<(), DurationProbeError>,
) -> Result<DurationProbeResult, DurationProbeError> {
    per_operation(|count| timed(|| (0..count).try_for_each(|_| operation())))
}

/// Runs `work`, and returns its duration in nanoseconds.
pub(super) fn timed(
    work: impl FnOnce() -> Result<(), DurationProbeError>,
) -> Result<u64, DurationProbeError> {
    let begun = MonotonicClock.now_ns();
    work()?;
    Ok(MonotonicClock.now_ns() - begun)
}

impl DurationProbeResult {
    /// Multiplies the median, the smallest and the largest value of a measurement by a factor.
    pub(super) fn times(self, factor: f64) -> Self {
        Self { median: self.median * factor, least: self.least * factor, most: self.most * factor }
    }
}
